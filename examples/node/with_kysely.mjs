// Kysely with node-postgres: an ID is a string, and Generated<string> in the interface of the table.
import { Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";

const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool() }) });
await db.schema
  .createTable("orders")
  .addColumn("id", "bigint", (column) => column.primaryKey().defaultTo(sql`flake_next('twitter')`))
  .addColumn("item", "text")
  .execute();

const items = Array.from({ length: 1000 }, (_, number) => ({ item: `cup ${number}` }));
const ids = (await db.insertInto("orders").values(items).returning("id").execute()).map((row) => row.id);
console.log(typeof ids[0], (await db.selectFrom("orders").select("item").where("id", "in", ids).execute()).length);

// As text in JSON.
const order = await db
  .selectFrom("orders")
  .select(sql`jsonb_build_object('id', id::text)`.as("order"))
  .where("id", "=", ids[0])
  .executeTakeFirst();
console.log(order.order.id === ids[0]);

try {
  await sql`SELECT flake_timestamp(${"-1"}::bigint)`.execute(db);
} catch (error) {
  console.log(error.code, error.hint);
}
await db.destroy();
