// Shows what flake-core reads in an ID. The file before this one has the core, packed by gzip, as base64, because a page from a file may fetch nothing.
'use strict'

async function compiled() {
    const packed = Uint8Array.from(atob(globalThis.flakeCore), (byte) => byte.charCodeAt(0))
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))
    return (await WebAssembly.instantiate(await new Response(unpacked).arrayBuffer())).instance.exports
}

const core = compiled()

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
    const element = document.createElement(name)
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

// One square for each bit, in the color of its field. On a narrow screen they wrap.
function picture({ bits, layout }) {
    const runs = bits.map(({ digits, role, name }) =>
        make('span', { title: name }, ...[...digits].map((digit) => make('b', { class: role }, digit))))
    return make('div', { class: 'picture', role: 'img', 'aria-label': `The bits of the ID in layout ${layout}` }, ...runs)
}

const UNITS = [['year', 31557600], ['month', 2629800], ['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]]

// The time as the visitor's clock and calendar show it, and how long ago it was.
function nearby(at) {
    const seconds = Number(BigInt(at) / 1000000n) - Date.now() / 1000
    const date = new Date(Number(BigInt(at) / 1000n))
    if (Number.isNaN(date.getTime())) return ''
    const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? UNITS.at(-1)
    const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(Math.trunc(seconds / length), unit)
    return `${relative}, ${date.toLocaleString('en', { dateStyle: 'medium', timeStyle: 'medium' })} in ${Intl.DateTimeFormat().resolvedOptions().timeZone}`
}

function copier(text, name) {
    const button = make('button', { type: 'button', class: 'copy', 'aria-label': `Copy ${name}` }, 'Copy')
    button.addEventListener('click', () => copy(button, text))
    return button
}

async function copy(button, text) {
    const before = button.textContent
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
    setTimeout(() => { button.textContent = before }, 1500)
}

function table(rows) {
    return make('table', {}, make('tbody', {}, ...rows.map((cells) => make('tr', {}, ...cells.map((cell) => make('td', {}, ...[cell].flat()))))))
}

function shown(reading, isOpen) {
    const counted = new Set(reading.bits.filter(({ role }) => role === 'worker' || role === 'sequence').map(({ name }) => name))
    const numbers = reading.numbers.filter(([name]) => counted.has(name))
    const spans = [instant(reading), ...numbers.map(([name, number]) => `${name} ${number}`)]
    const summary = make('summary', {}, make('b', {}, reading.layout), ...spans.map((text) => make('span', {}, text)))
    const fields = reading.bits.map(({ name, role, digits, number }) =>
        [[make('i', { class: role }), name], `${digits.length} bit${digits.length > 1 ? 's' : ''}`, number ?? ''])
    const forms = reading.forms.map(([form, text]) =>
        [form === reading.own_form ? make('b', {}, form) : form, make('code', {}, text), copier(text, `the ID as ${form}`)])
    const element = make('details', { class: 'reading', 'data-layout': reading.layout }, summary,
        make('p', { class: 'nearby' }, nearby(reading.at)), make('p', {}, `${reading.source}. Read as ${reading.read_as}.`),
        picture(reading), table(fields), table(forms))
    element.open = isOpen
    return element
}

// Shows an ID that has no layout, such as a UUID.
function other({ what, at, says }) {
    const times = at === null ? [] : [make('p', {}, instant({ at, tick_length: 1000 }), ' ', copier(instant({ at, tick_length: 1000 }), 'the time')), make('p', { class: 'nearby' }, nearby(at))]
    return make('div', { class: 'other' }, make('h3', {}, what), ...times, make('p', {}, says === 'A UUID' ? '' : says))
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

const folded = (title, readings) => readings.length ? [make('details', { class: 'unlikely' }, make('summary', {}, title), ...readings.map((reading) => shown(reading, false)))] : []

// From these scores on, an ID can be, or is most likely, one of a platform; the highest ones are what the visitor or an address has named (rank.rs).
const LIKELY = 20, SURE = 50, NAMED = 1000

// Divides the readings into those that come first, others that are possible, and those whose time is not.
function divided({ readings, others }) {
    const best = readings[0]?.score ?? 0
    const isFirst = ({ score }) => score === best && best >= LIKELY && !(others.length && best < NAMED && others[0].at === null)
    const first = best >= NAMED ? readings.slice(0, 1) : readings.filter(isFirst)
    const rest = readings.filter((reading) => !first.includes(reading))
    const by = (standing) => rest.filter((reading) => reading.standing === standing)
    return { first, possible: by('possible'), early: by('early'), future: by('future') }
}

function sureness({ score, standing }) {
    if (standing !== 'possible') return 'It would be'
    return score >= NAMED ? 'It is' : score >= SURE ? 'Most likely' : 'Perhaps'
}

// One sentence, which is also read aloud.
function verdict({ readings, others, is_small }, { first, possible }) {
    const [one] = first
    const names = [...first.map(({ layout }) => layout), ...(one?.score < NAMED ? others.map(({ what }) => what) : [])]
    if (one?.standing === 'early') return `Too early for ${one.layout}: ${is_small ? 'such a small number was counted, and has no time' : instant(one)}.`
    if (one?.standing === 'future') return `Not possible for ${one.layout} yet: the time would be in the future.`
    if (names.length > 1) return `Either ${names.join(' or ')}: nothing in the ID tells which.`
    if (one) return `${one.score >= NAMED ? '' : `${sureness(one)} `}${one.layout}: ${instant(one)}.`
    if (others.length) return `${others[0].what}${others[0].at === null ? '' : `: ${instant({ at: others[0].at, tick_length: 1000 })}`}.`
    if (is_small) return 'This number is too small to be an ID of a platform. Such numbers are counted, and have no time.'
    if (possible.length) return 'Unknown: no platform makes such IDs, but these layouts can have it.'
    return readings.length ? 'Unknown: in every layout, the time would be too early or in the future.' : 'Unknown: no layout has this ID.'
}

function result(found) {
    const { readings, refusals, others, fault, is_rounded, public_id_of, beside } = found
    const warn = (text) => make('p', { class: 'fault' }, text)
    const parts = [], groups = divided(found)
    if (fault) parts.push(warn(fault))
    if (is_rounded) parts.push(warn('JavaScript has rounded this number, so it is not the ID any more. Send IDs as text.'))
    const isPublic = public_id_of && !others.length
    if (isPublic) parts.push(warn(`This can be a public ID of the key ${public_id_of}. Only a server that has the key reads it.`))
    said.textContent = isPublic ? 'It has the form of a public ID.' : verdict(found, groups)
    parts.push(...others.map(other))
    parts.push(...group(groups.first.length === 1 ? sureness(groups.first[0]) : 'One of these', groups.first, true), ...group(groups.first.length ? 'It can also be' : 'It can be', groups.possible, !groups.first.length))
    parts.push(...folded('It would be from the future', groups.future), ...folded('It would be too early', groups.early))
    if (beside.length) parts.push(make('p', {}, 'The address has other IDs: ', ...beside.map((text) => make('a', { href: `#${text}` }, text)).flatMap((link) => [link, ' '])))
    if (!readings.length && !others.length) parts.push(make('h3', {}, 'No layout has this ID'), refused(refusals))
    else if (refusals.length) parts.push(make('details', { id: 'refused' }, make('summary', {}, 'It cannot be'), refused(refusals)))
    return parts
}

const [id, as, definition, answer, said, share] = ['id', 'as', 'definition', 'answer', 'said', 'share'].map((name) => document.getElementById(name))
let asked = 0

async function show() {
    const number = ++asked
    const text = id.value.trim()
    const found = await ask({ text, definition: definition.value, platform: as.value, now: String(Date.now() * 1000) })
    // An earlier question may be answered later.
    if (number !== asked) return
    said.textContent = ''
    answer.replaceChildren(...(text ? result(found) : []))
}

// The address has what the page was asked, behind the #, which no server sees: the ID, the chosen layout, and the visitor's own.
function fragment() {
    const options = [['as', as.value], ['layout', definition.value.trim()]].filter(([, value]) => value)
    return `#${encodeURIComponent(id.value.trim())}${options.map(([name, value]) => `&${name}=${encodeURIComponent(value)}`).join('')}`
}

function follow() {
    const [text, ...options] = location.hash.slice(1).split('&')
    try {
        const values = new Map(options.map((option) => option.split('=').map(decodeURIComponent)))
        id.value = decodeURIComponent(text)
        as.value = values.get('as') ?? ''
        definition.value = values.get('layout') ?? ''
    } catch { /* Where an address is not valid, the page stays as it is. */ }
    return show()
}

function changed() {
    history.replaceState(null, '', fragment())
    return show()
}

async function begin() {
    const { layouts } = await ask({ text: '' })
    as.append(...layouts.map((name) => make('option', { value: name }, name)))
    for (const field of [id, as, definition]) field.addEventListener('input', changed)
    for (const button of document.querySelectorAll('.examples button')) {
        button.addEventListener('click', () => {
            id.value = button.value
            as.value = ''
            changed()
        })
    }
    share.addEventListener('click', () => copy(share, location.href.split('#')[0] + fragment()))
    addEventListener('hashchange', follow)
    await follow()
    document.getElementById('reader').dataset.ready = ''
}

begin()
