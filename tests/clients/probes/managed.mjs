// The edition in plain SQL in PGlite, a PostgreSQL in this process. The argument is the file. It prints what it has found.
import { readFileSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import { pgcrypto } from '@electric-sql/pglite/contrib/pgcrypto'

const db = new PGlite({ extensions: { pgcrypto } })
await db.exec(readFileSync(process.argv[2], 'utf8'))
await db.exec("CREATE EXTENSION pgcrypto; SELECT flake_create_key('usr', 'twitter')")
await db.exec("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")
await db.exec('INSERT INTO orders SELECT FROM generate_series(1, 1000)')
await db.exec(readFileSync(process.argv[3], 'utf8'))
await db.exec("CREATE TABLE carts (id bigserial PRIMARY KEY, item text); CALL flake_adopt('carts', 'si'); INSERT INTO carts (item) VALUES ('tea')")
const { rows } = await db.query(`
  SELECT count(DISTINCT id)::integer AS ids, bool_and(flake_timestamp(id) <= clock_timestamp()) AS timely,
         flake_unseal(flake_seal(42, 'usr'), 'usr')::integer AS opened, (SELECT bool_and(ok) FROM flake_check()) AS ok,
         (SELECT lastval() = max(id) AND max(id) > 1e12 FROM carts) AS adopted FROM orders`)
console.log(JSON.stringify(rows[0]))
