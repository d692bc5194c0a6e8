// node-postgres: an ID is a string, which keeps all digits. Pass it back as it is.
import pg from "pg";
import { parse, stringify } from "./json.mjs";

// For IDs in json and jsonb, which would be rounded.
pg.types.setTypeParser(pg.types.builtins.JSON, parse);
pg.types.setTypeParser(pg.types.builtins.JSONB, parse);

const db = new pg.Client();
await db.connect();
await db.query("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)");

const items = Array.from({ length: 1000 }, (_, number) => `cup ${number}`);
const { rows } = await db.query("INSERT INTO orders (item) SELECT unnest($1::text[]) RETURNING id", [items]);
const ids = rows.map((row) => row.id);
const found = await db.query("SELECT count(*)::integer FROM orders WHERE id = ANY ($1)", [ids]);
console.log(typeof ids[0], found.rows[0].count);

const [{ order }] = (await db.query("SELECT to_jsonb(o) AS order FROM orders o WHERE id = $1", [ids[0]])).rows;
console.log(typeof order.id, String(order.id) === ids[0], stringify(order) === `{"id":"${ids[0]}","item":"cup 0"}`);

try {
  await db.query("SELECT flake_timestamp($1::bigint)", [-1n]);
} catch (error) {
  console.log(error.code, error.hint);
}
await db.end();
