// Makes the database in which the steps begin, so that a page need not: `database.mjs PGLITE FLAKE_SQL TAR`.
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const [pglite, edition, tar] = process.argv.slice(2)
const { PGlite } = await import(pathToFileURL(`${pglite}/dist/index.js`))
const db = await PGlite.create()
await db.exec(readFileSync(edition, 'utf8'))
// The log of what was done up to here is a third of all. A checkpoint in a new file of the log makes the earlier one superfluous.
await db.exec('SELECT pg_switch_wal()')
await db.exec('CHECKPOINT')
console.log((await db.query('SELECT pg_walfile_name(redo_lsn) AS name FROM pg_control_checkpoint()')).rows[0].name)
writeFileSync(tar, Buffer.from(await (await db.dumpDataDir('none')).arrayBuffer()))
process.exit(0)
