import pg from "pg";
import { parse, stringify } from "./json.mjs";
import { report, setUp } from "./report.mjs";

if (setUp) {
  pg.types.setTypeParser(pg.types.builtins.JSON, parse);
  pg.types.setTypeParser(pg.types.builtins.JSONB, parse);
}
const db = new pg.Client();
await db.connect();
const row = async (query, ...parameters) => (await db.query(query, parameters)).rows[0];
const count = async (table, id) => (await row(`SELECT count(*) FROM ${table} WHERE id = $1`, id)).count;

await report({
  keep: async (id, other) => {
    const kept = await row("INSERT INTO kept (id, many) VALUES ($1, $2) RETURNING id, many", id, [id, other]);
    return [kept.id, kept.many, await count("kept", kept.id)];
  },
  keepNull: async () => (await row("INSERT INTO kept (id) VALUES ($1) RETURNING id", null)).id,
  read: async (id) => (await row("SELECT jsonb_build_object('id', $1::bigint) AS document", id)).document.id,
  write: async (id) => (await row("SELECT $1::jsonb ->> 'id' AS id", setUp ? stringify({ id: BigInt(id) }) : { id: BigInt(id) })).id,
  make: async () => {
    const { id } = await row("INSERT INTO made DEFAULT VALUES RETURNING id");
    return [id, await count("made", id)];
  },
  fail: () => row("SELECT flake_timestamp($1::bigint)", "-1"),
});
await db.end();
