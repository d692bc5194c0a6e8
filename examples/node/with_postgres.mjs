// postgres.js: an ID is a string, which keeps all digits. Pass it back as it is.
import postgres from "postgres";
import { parse, stringify } from "./json.mjs";

// For IDs in json and jsonb, which would be rounded.
const json = { to: 114, from: [114, 3802], serialize: stringify, parse };
const sql = postgres({ types: { json } });
await sql`CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)`;

const orders = Array.from({ length: 1000 }, (_, number) => ({ item: `cup ${number}` }));
const ids = (await sql`INSERT INTO orders ${sql(orders)} RETURNING id`).map((row) => row.id);
const [found] = await sql`SELECT count(*)::integer FROM orders WHERE id = ANY (${ids})`;
console.log(typeof ids[0], found.count);

const [{ order }] = await sql`SELECT to_jsonb(o) AS order FROM orders o WHERE id = ${ids[0]}`;
console.log(typeof order.id, String(order.id) === ids[0], stringify(order) === `{"id":"${ids[0]}","item":"cup 0"}`);

try {
  await sql`SELECT flake_timestamp(${-1n}::bigint)`;
} catch (error) {
  console.log(error.code, error.hint);
}
await sql.end();
