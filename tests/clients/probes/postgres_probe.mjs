import postgres from "postgres";
import { parse, stringify } from "./json.mjs";
import { report, setUp } from "./report.mjs";

const json = { to: 114, from: [114, 3802], serialize: stringify, parse };
const sql = postgres(setUp ? { types: { json } } : {});

await report({
  keep: async (id, other) => {
    const [kept] = await sql`INSERT INTO kept (id, many) VALUES (${id}, ${[id, other]}) RETURNING id, many`;
    return [kept.id, kept.many, (await sql`SELECT count(*) FROM kept WHERE id = ${kept.id}`)[0].count];
  },
  keepNull: async () => (await sql`INSERT INTO kept (id) VALUES (${null}) RETURNING id`)[0].id,
  read: async (id) => (await sql`SELECT jsonb_build_object('id', ${id}::bigint) AS document`)[0].document.id,
  write: async (id) => (await sql`SELECT ${sql.json({ id: BigInt(id) })}::jsonb ->> 'id' AS id`)[0].id,
  make: async () => {
    const [{ id }] = await sql`INSERT INTO made DEFAULT VALUES RETURNING id`;
    return [id, (await sql`SELECT count(*) FROM made WHERE id = ${id}`)[0].count];
  },
  fail: () => sql`SELECT flake_timestamp(${"-1"}::bigint)`,
});
await sql.end();
