// Loads PostgreSQL, and starts as many servers of it as are asked for, each with the database of the build.
import { sizes } from './pglite/sizes.js'

const ALL = Object.values(sizes).reduce((sum, size) => sum + size)
let files = null, loaded = 0

async function unpacked(name, progress) {
    const response = await fetch(new URL(`pglite/${name}`, import.meta.url))
    if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`)
    const count = new TransformStream({
        transform(chunk, controller) {
            loaded += chunk.length
            progress(Math.min(99, Math.floor((100 * loaded) / ALL)))
            controller.enqueue(chunk)
        },
    })
    return response.body.pipeThrough(count).pipeThrough(new DecompressionStream('gzip'))
}

const blob = async (stream) => new Response(await stream).blob()
const module = async (stream) => WebAssembly.compileStreaming(new Response(await stream, { headers: { 'Content-Type': 'application/wasm' } }))

// Loads once. After an error, the next call begins again.
export function load(progress) {
    loaded = 0
    files ??= Promise.all([
        import('./pglite/index.js'),
        module(unpacked('pglite.wasm.packed', progress)),
        blob(unpacked('pglite.data.packed', progress)),
        blob(unpacked('database.packed', progress)),
    ]).catch((error) => {
        files = null
        throw error
    })
    return files
}

// PGlite asks for initdb in any case, and does not run it where a database is given: this is the smallest module.
const initdbWasmModule = new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0))

export async function server(progress) {
    const [{ PGlite }, pgliteWasmModule, fsBundle, loadDataDir] = await load(progress)
    return PGlite.create({ initdbWasmModule, pgliteWasmModule, fsBundle, loadDataDir })
}

export const megabytes = Math.round(ALL / 1e6)
