// Shows what flake-core reads in an ID. The file before this one has the core, as base64, because a page from a file may fetch nothing.
'use strict'

const core = WebAssembly.instantiate(Uint8Array.from(atob(globalThis.flakeCore), (byte) => byte.charCodeAt(0)))
    .then(({ instance }) => instance.exports)

// Asks the core. Its memory may grow, so each view of it is made when it is used.
async function ask(question) {
    const { memory, space, read, answer } = await core
    const bytes = new TextEncoder().encode(JSON.stringify(question))
    const at = space(bytes.length)
    new Uint8Array(memory.buffer, at, bytes.length).set(bytes)
    const length = read()
    return JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, answer(), length)))
}

// Makes an element of a text and others. Texts of visitors never become HTML.
function make(name, attributes, ...children) {
    const [parent, space] = name.startsWith('svg:') ? [name.slice(4), 'http://www.w3.org/2000/svg'] : [name, 'http://www.w3.org/1999/xhtml']
    const element = document.createElementNS(space, parent)
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
    element.append(...children)
    return element
}

// Writes an instant in UTC. A tick may be shorter than the milliseconds of a Date.
function instant({ at, tick_length }) {
    const date = new Date(Number(BigInt(at) / 1000n))
    if (Number.isNaN(date.getTime())) return `${at} µs since 1970`
    const finer = Number(tick_length) % 1000 ? String(BigInt(at) % 1000n).padStart(3, '0') : ''
    return `${date.toISOString().replace('T', ' ').slice(0, -1)}${finer} UTC`
}

// One square for each bit, in the color of its field.
function picture({ bits, layout }) {
    const cells = bits.flatMap(({ digits, role, name }, run) => [...digits].map((digit) => ({ digit, role, name, run })))
    const x = (place, run) => place * 12 + run * 4
    const width = x(cells.length, bits.length - 1)
    const svg = make('svg:svg', { viewBox: `0 0 ${width} 18`, role: 'img', 'aria-label': `The bits of the ID in layout ${layout}` })
    cells.forEach(({ digit, role, name, run }, place) => {
        const square = make('svg:rect', { x: x(place, run) + 0.5, y: 1, width: 11, height: 16, rx: 1.5, class: role })
        square.append(make('svg:title', {}, name))
        svg.append(square, make('svg:text', { x: x(place, run) + 6, y: 12.5 }, digit))
    })
    return make('div', { class: 'picture' }, svg)
}

function table(rows) {
    return make('table', {}, make('tbody', {}, ...rows.map((cells) => make('tr', {}, ...cells.map((cell) => make('td', {}, ...[cell].flat()))))))
}

function shown(reading, isOpen) {
    const spans = [instant(reading)]
    if (reading.worker !== null) spans.push(`worker ${reading.worker}`)
    if (reading.sequence !== null) spans.push(`sequence ${reading.sequence}`)
    const summary = make('summary', {}, make('b', {}, reading.layout), ...spans.map((text) => make('span', {}, text)))
    const fields = reading.bits.map(({ name, role, digits, number }) =>
        [[make('i', { class: role }), name], `${digits.length} bit${digits.length > 1 ? 's' : ''}`, number ?? ''])
    const forms = reading.forms.map(([form, text]) => [form === reading.own_form ? make('b', {}, form) : form, make('code', {}, text)])
    const element = make('details', { class: 'reading', 'data-layout': reading.layout }, summary,
        make('p', {}, `${reading.source}. Read as ${reading.read_as}.`), picture(reading), table(fields), table(forms))
    element.open = isOpen
    return element
}

// Layouts that refuse the ID, by the reason.
function refused(refusals) {
    const layouts = new Map()
    for (const { layout, reasons } of refusals) {
        const reason = reasons.join('; ')
        layouts.set(reason, [...(layouts.get(reason) ?? []), layout])
    }
    return make('ul', {}, ...[...layouts].map(([reason, names]) => make('li', {}, make('b', {}, names.join(', ')), `: ${reason}`)))
}

function group(title, readings, isOpen) {
    return readings.length ? [make('h3', {}, title), ...readings.map((reading, place) => shown(reading, isOpen && place === 0))] : []
}

function result({ readings, refusals, fault, is_rounded, public_id_of }) {
    const warn = (text) => make('p', { class: 'fault' }, text)
    const parts = []
    if (fault) parts.push(warn(fault))
    if (is_rounded) parts.push(warn('JavaScript has rounded this number, so it is not the ID any more. Send IDs as text.'))
    if (public_id_of) parts.push(warn(`This is a public ID of the key ${public_id_of}. Only a server that has the key reads it.`))
    const isEarlier = ({ at }) => BigInt(at) <= BigInt(Date.now()) * 1000n
    // A text that a layout spells says more than a number, which most layouts have.
    const past = readings.filter(isEarlier).sort((one, other) => (one.read_as === 'number') - (other.read_as === 'number'))
    const future = readings.filter((reading) => !isEarlier(reading))
    parts.push(...group('It can be', past, true), ...group('It would be from the future', future, !past.length))
    if (!readings.length) parts.push(make('h3', {}, 'No layout has this ID'), refused(refusals))
    else if (refusals.length) parts.push(make('details', { id: 'refused' }, make('summary', {}, 'It cannot be'), refused(refusals)))
    return parts
}

const [id, definition, answer] = ['id', 'definition', 'answer'].map((name) => document.getElementById(name))
let asked = 0

async function show() {
    const number = ++asked
    const parts = id.value.trim() ? result(await ask({ text: id.value, definition: definition.value })) : []
    // An earlier question may be answered later.
    if (number === asked) answer.replaceChildren(...parts)
}

if (location.hash.length > 1) {
    // Where an address is not valid, the page begins without an ID.
    try { id.value = decodeURIComponent(location.hash.slice(1)) } catch { /* as if there were none */ }
}
id.addEventListener('input', show)
definition.addEventListener('input', show)
show()
