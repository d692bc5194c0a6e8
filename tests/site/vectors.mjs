// Reads the IDs of tests/vectors by the WebAssembly of the reader, and compares each number: `vectors.mjs WASM DIRECTORY`. It prints
// how many it has read of each file.
import { deepStrictEqual, ok } from 'node:assert'
import { readFileSync } from 'node:fs'

const [wasm, folder] = process.argv.slice(2)
const { instance } = await WebAssembly.instantiate(readFileSync(wasm), {})
const { memory, space, read, answer } = instance.exports
const definitions = JSON.parse(readFileSync(`${folder}/layouts.json`))

function ask(question) {
    const bytes = Buffer.from(JSON.stringify(question))
    const at = space(bytes.length)
    Buffer.from(memory.buffer).set(bytes, at)
    const length = read()
    return JSON.parse(Buffer.from(memory.buffer, answer(), length).toString())
}

function rows(name) {
    const [head, ...lines] = readFileSync(`${folder}/${name}.csv`, 'utf8').trim().split('\n')
    const columns = head.split(',')
    return lines.map((line) => Object.fromEntries(line.split(',').map((value, place) => [columns[place], value])))
}

// The built-in layouts' own epochs are not written here: a definition has the vector's.
function definition({ layout, epoch_ms }) {
    return JSON.stringify({ ...(definitions[layout] ?? { like: layout }), epoch: new Date(Number(epoch_ms)).toISOString() })
}

function check(row) {
    const found = []
    for (const text of [row.id, row.text].filter(Boolean)) {
        const { readings, fault } = ask({ text, definition: definition(row) })
        deepStrictEqual(fault, null, JSON.stringify(row))
        found.push(...readings.filter(({ layout, forms }) => layout === 'your layout' && forms[0][1] === row.id))
    }
    ok(found.length >= (row.text ? 2 : 1), JSON.stringify(row))
    for (const { at, numbers, forms, own_form, bits } of found) {
        deepStrictEqual(at, row.unix_us)
        const wanted = Object.fromEntries(row.fields.split(' ').map((pair) => pair.split('=')))
        deepStrictEqual(Object.fromEntries(numbers.filter(([name]) => name !== 'timestamp')), wanted, JSON.stringify(row))
        deepStrictEqual(BigInt.asIntN(64, BigInt(`0b${bits.map(({ digits }) => digits).join('')}`)).toString(), row.id)
        if (row.text) deepStrictEqual(new Map(forms).get(own_form), row.text)
    }
}

function checkSno(row) {
    for (const text of [row.text, `\\x${row.bytes}`]) {
        const { readings } = ask({ text })
        const { at, numbers, forms } = readings.find(({ layout }) => layout === 'sno')
        const { tick_tock, metabyte, partition, sequence } = Object.fromEntries(numbers)
        deepStrictEqual([at, tick_tock, metabyte, partition, sequence], [row.starts_us, row.tick_tock, row.metabyte, row.partition, row.sequence])
        deepStrictEqual(forms, [['text', row.text], ['bytea', `\\x${row.bytes}`]])
    }
}

const read_of = {}
for (const name of ['twitter', 'si', 'uniqueid', 'base64id', 'relatives', 'presets', 'published', 'sno']) {
    const all = rows(name)
    all.forEach(name === 'sno' ? checkSno : check)
    read_of[name] = all.length
}
console.log(JSON.stringify(read_of))
