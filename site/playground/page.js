// Makes each block of SQL on this page a cell: a text to edit, a button that runs it, and its results. PostgreSQL starts with the first run.
import { PGlite } from './pglite/index.js'
import { statements } from './statements.js'

const status = document.getElementById('status')
let database = null

async function started() {
    const db = await PGlite.create()
    await db.exec(await (await fetch(new URL('flake.sql', import.meta.url))).text())
    return db
}

async function start() {
    if (!database) {
        status.textContent = 'PostgreSQL is starting: 16 megabytes'
        database = started()
    }
    try {
        const db = await database
        status.textContent = 'PostgreSQL is running in this page'
        return db
    } catch (error) {
        database = null
        status.textContent = `PostgreSQL did not start: ${error.message}`
        throw error
    }
}

function make(name, text, ...children) {
    const element = document.createElement(name)
    element.append(text, ...children)
    return element
}

// Everything as PostgreSQL prints it: JavaScript would round numbers and write times in its own way.
function asText(db) {
    return { rowMode: 'array', parsers: Object.fromEntries(Object.keys(db.parsers).map((type) => [type, (text) => text])) }
}

// PGlite leaves out what was created.
function shown({ fields, rows, command, affectedRows }, statement) {
    const [, object] = /^\s*(?:create|alter|drop)\s+(\w+)/i.exec(statement) ?? []
    if (!fields.length) return make('p', `${command} ${/^(INSERT|UPDATE|DELETE|MERGE)$/.test(command) ? affectedRows : (object ?? '').toUpperCase()}`)
    const head = make('tr', '', ...fields.map(({ name }) => make('th', name)))
    const body = rows.map((row) => make('tr', '', ...row.map((value) => make('td', value ?? 'NULL'))))
    return make('div', '', make('table', '', make('thead', '', head), make('tbody', '', ...body)), make('p', `${rows.length} row${rows.length === 1 ? '' : 's'}`))
}

// The statement that failed, with a mark at the place that PostgreSQL names.
function failed(statement, error) {
    const characters = [...statement], place = error.position ? Number(error.position) - 1 : characters.length
    const end = place + (/^(\w+|.)?/su.exec(characters.slice(place).join(''))[0].length)
    const code = make('pre', characters.slice(0, place).join(''), make('mark', characters.slice(place, end).join('')), characters.slice(end).join(''))
    const lines = [`${error.severity ?? 'ERROR'}: ${error.message} (${error.code ?? 'no SQLSTATE'})`]
    if (error.detail) lines.push(`DETAIL: ${error.detail}`)
    if (error.hint) lines.push(`HINT: ${error.hint}`)
    const element = make('div', code, ...lines.map((line) => make('p', line)))
    element.className = 'error'
    return element
}

// Runs the statements one after the other, as psql does, and stops at an error.
async function run(cell) {
    const { editor, result, button } = cell
    button.disabled = true
    result.replaceChildren()
    try {
        const db = await start()
        for (const statement of statements(editor.value)) {
            try {
                for (const found of await db.exec(statement, asText(db))) result.append(shown(found, statement))
            } catch (error) {
                result.append(failed(statement, error))
                return false
            }
        }
        return true
    } finally {
        button.disabled = false
        result.dataset.ran = Number(result.dataset.ran ?? 0) + 1
    }
}

function cellOf(block) {
    const editor = document.createElement('textarea')
    editor.value = block.textContent.trimEnd()
    editor.spellcheck = false
    editor.setAttribute('aria-label', 'SQL')
    const button = make('button', 'Run')
    const result = make('div', '')
    result.className = 'result'
    const cell = { editor, button, result }
    const fit = () => {
        editor.style.height = 'auto'
        editor.style.height = `${editor.scrollHeight + 2}px`
    }
    editor.addEventListener('input', fit)
    button.addEventListener('click', () => run(cell))
    editor.addEventListener('keydown', (event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) run(cell)
        // mdBook turns the page at arrow keys.
        event.stopPropagation()
    })
    const element = make('div', '', editor, button, result)
    element.className = 'cell'
    block.closest('pre').replaceWith(element)
    fit()
    return cell
}

const cells = [...document.querySelectorAll('main code.language-sql:not(.reading)')].map(cellOf)
document.getElementById('all').addEventListener('click', async () => {
    for (const cell of cells) if (!(await run(cell))) break
})
document.getElementById('anew').addEventListener('click', async () => {
    const before = database
    database = null
    for (const { result } of cells) result.replaceChildren()
    status.textContent = 'The next run starts with an empty database'
    await (await before)?.close()
})
