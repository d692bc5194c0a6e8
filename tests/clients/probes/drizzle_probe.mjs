import { count, eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { bigint, integer, jsonb, pgTable, text } from "drizzle-orm/pg-core";
import pg from "pg";
import { parse, stringify } from "./json.mjs";
import { report, setUp } from "./report.mjs";

if (setUp) {
  pg.types.setTypeParser(pg.types.builtins.JSON, parse);
  pg.types.setTypeParser(pg.types.builtins.JSONB, parse);
}
const id = () => bigint({ mode: setUp ? "bigint" : "number" });
const native = setUp ? BigInt : Number;
const kept = pgTable("kept", { n: integer().primaryKey(), id: id(), many: id().array(), document: jsonb() });
const made = pgTable("made", { id: id().primaryKey().default(sql`flake_next('twitter')`), item: text() });
const manyRows = pgTable("many", { id: id().primaryKey().default(sql`flake_next('twitter')`), item: text() });
const pool = new pg.Pool();
const db = drizzle(pool);
const found = async (table, id) => (await db.select({ count: count() }).from(table).where(eq(table.id, id)))[0].count;
let n = 0;

await report({
  keep: async (id, other) => {
    const values = { n: ++n, id: native(id), many: [native(id), other && native(other)] };
    const [row] = await db.insert(kept).values(values).returning();
    return [row.id, row.many, await found(kept, row.id)];
  },
  keepNull: async () => (await db.insert(kept).values({ n: ++n }).returning())[0].id,
  read: async (id) => (await db.execute(sql`SELECT jsonb_build_object('id', ${id}::bigint) AS document`)).rows[0].document.id,
  write: async (id) => {
    const document = setUp ? sql`${stringify({ id: BigInt(id) })}::jsonb` : { id: native(id) };
    const written = { id: sql`document ->> 'id'` };
    return (await db.insert(kept).values({ n: ++n, document }).returning(written))[0].id;
  },
  make: async () => {
    const [row] = await db.insert(made).values({}).returning();
    return [row.id, await found(made, row.id)];
  },
  insert: (rows) => db.insert(manyRows).values(rows).returning(),
  select: () => db.select().from(manyRows),
  fail: () => db.execute(sql`SELECT flake_timestamp(${"-1"}::bigint)`),
});
await pool.end();
