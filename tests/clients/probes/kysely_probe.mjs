import { Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { parse, stringify } from "./json.mjs";
import { report, setUp } from "./report.mjs";

if (setUp) {
  pg.types.setTypeParser(pg.types.builtins.JSON, parse);
  pg.types.setTypeParser(pg.types.builtins.JSONB, parse);
}
const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool() }) });
const count = async (table, id) =>
  (await db.selectFrom(table).select(sql`count(*)`.as("count")).where("id", "=", id).executeTakeFirst()).count;
const insert = (table, values) => db.insertInto(table).values(values);

await report({
  keep: async (id, other) => {
    const row = await insert("kept", { id, many: [id, other] }).returning(["id", "many"]).executeTakeFirst();
    return [row.id, row.many, await count("kept", row.id)];
  },
  keepNull: async () => (await insert("kept", { id: null }).returning("id").executeTakeFirst()).id,
  read: async (id) => (await sql`SELECT jsonb_build_object('id', ${id}::bigint) AS document`.execute(db)).rows[0].document.id,
  write: async (id) => {
    const document = setUp ? stringify({ id: BigInt(id) }) : { id: BigInt(id) };
    return (await insert("kept", { document }).returning(sql`document ->> 'id'`.as("id")).executeTakeFirst()).id;
  },
  make: async () => {
    const { id } = await insert("made", { item: null }).returning("id").executeTakeFirst();
    return [id, await count("made", id)];
  },
  insert: (rows) => insert("many", rows).returning("id").execute(),
  select: () => db.selectFrom("many").selectAll().execute(),
  fail: () => sql`SELECT flake_timestamp(${"-1"}::bigint)`.execute(db),
});
await db.destroy();
