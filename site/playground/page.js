// Makes each block of SQL on this page a step: a text to edit, a button that runs it, and its results, which begin as the sample of the
// tutorial. PostgreSQL loads and starts while the page is read.
import { load, megabytes, server } from './load.js'
import { statements } from './statements.js'
import { needed } from './steps.js'

const status = document.getElementById('status')
let database = null, work = Promise.resolve()

const say = (text) => { if (status.textContent !== text) status.textContent = text }
// A live region that changed with each percent would be read aloud all the time.
const progress = (percent) => say(`PostgreSQL is loading: ${percent - (percent % 10)} % of ${megabytes} MB`)

async function start() {
    database ??= server(progress)
    try {
        const db = await database
        say('PostgreSQL is running in this page')
        return db
    } catch (error) {
        database = null
        say(`PostgreSQL did not start: ${error.message}`)
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
    // duplicate_table
    if (error.code === '42P07') lines.push('This step has run before. “Start over” gives you an empty database.')
    const element = make('div', code, ...lines.map((line) => make('p', line)))
    element.className = 'error'
    return element
}

// Runs the statements one after the other, as psql does, and stops at an error.
async function runStatements(db, { editor, result }) {
    for (const statement of statements(editor.value)) {
        try {
            for (const found of await db.exec(statement, asText(db))) result.append(shown(found, statement))
        } catch (error) {
            result.append(failed(statement, error))
            return false
        }
    }
    return true
}

// Runs a step, and before it those that it needs and that have not run in this database.
async function run(cell) {
    cell.result.replaceChildren()
    try {
        const db = await start()
        for (const place of needed(cells.map(({ editor }) => editor.value), cells.indexOf(cell))) {
            const before = cells[place]
            if (before.ran) continue
            cell.result.append(make('p', `Step ${place + 1} has to run first.`))
            if (!(await run(before))) {
                cell.result.append(make('p', `Step ${place + 1} has failed, so this step did not run.`))
                return false
            }
        }
        cell.ran = await runStatements(db, cell)
        return cell.ran
    } finally {
        cell.result.dataset.ran = Number(cell.result.dataset.ran ?? 0) + 1
    }
}

const buttons = () => document.querySelectorAll('.cell > button, #playground button')

// One thing at a time: what a visitor clicks meanwhile comes afterwards.
function then(task) {
    work = work.then(async () => {
        for (const button of buttons()) button.disabled = true
        try {
            await task()
        } catch (error) {
            console.warn(error)
        } finally {
            for (const button of buttons()) button.disabled = false
        }
    })
    return work
}

async function startOver() {
    const before = database
    database = null
    for (const cell of cells) {
        cell.ran = false
        cell.result.replaceChildren(...cell.sample)
        delete cell.result.dataset.ran
    }
    await (await before)?.close()
    await start()
}

async function runAll() {
    await startOver()
    for (const cell of cells) if (!(await run(cell))) break
}

// The output that the tutorial shows below a step.
function sampleOf(pre) {
    const output = pre.nextElementSibling
    if (!output?.querySelector('code.language-text')) return []
    output.remove()
    const title = make('p', 'Sample output:')
    title.className = 'sample'
    return [title, output]
}

function headingOf(element) {
    for (let before = element; before; before = before.previousElementSibling) if (before.matches('h2')) return before.textContent.trim()
    return ''
}

function cellOf(block, place) {
    const pre = block.closest('pre'), editor = document.createElement('textarea')
    editor.value = block.textContent.trimEnd()
    editor.rows = 1
    editor.spellcheck = false
    editor.setAttribute('aria-label', `SQL of step ${place + 1}: ${headingOf(pre)}`)
    const button = make('button', 'Run')
    button.setAttribute('aria-label', `Run step ${place + 1}`)
    const sample = sampleOf(pre), result = make('div', '', ...sample)
    result.className = 'result'
    result.setAttribute('role', 'status')
    const cell = { editor, button, result, sample, ran: false }
    const fit = () => {
        editor.style.height = 'auto'
        editor.style.height = `${editor.scrollHeight + 2}px`
    }
    editor.addEventListener('input', fit)
    button.addEventListener('click', () => then(() => run(cell)))
    editor.addEventListener('keydown', (event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) then(() => run(cell))
        // mdBook turns the page at arrow keys.
        event.stopPropagation()
    })
    const element = make('div', '', make('span', `Step ${place + 1}`), editor, button, result)
    element.className = 'cell'
    pre.replaceWith(element)
    fit()
    return cell
}

const cells = [...document.querySelectorAll('main code.language-sql:not(.reading)')].map(cellOf)
document.getElementById('all').addEventListener('click', () => then(runAll))
document.getElementById('anew').addEventListener('click', () => then(startOver))

// After the page itself, and not where the visitor saves data.
function ahead() {
    if (navigator.connection?.saveData) return say(`PostgreSQL loads with the first run: ${megabytes} MB`)
    load(progress).then(() => start()).catch((error) => say(`PostgreSQL did not load: ${error.message}`))
}

if (document.readyState === 'complete') setTimeout(ahead)
else addEventListener('load', () => setTimeout(ahead))
