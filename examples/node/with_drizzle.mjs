// Drizzle, after drizzle-kit has made the tables.
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import { parse } from "./json.mjs";
import * as schema from "./schema.mjs";

// Drizzle reads related rows as JSON, in which their IDs would be rounded.
pg.types.setTypeParser(pg.types.builtins.JSON, parse);
pg.types.setTypeParser(pg.types.builtins.JSONB, parse);

const { orders, lines } = schema;
const pool = new pg.Pool();
const db = drizzle(pool, { schema });

const items = Array.from({ length: 1000 }, (_, number) => ({ item: `cup ${number}` }));
const [{ id }] = await db.insert(orders).values(items).returning({ id: orders.id });
const [line] = await db.insert(lines).values({ orderId: id, cups: "two" }).returning();
console.log(typeof id, (await db.select().from(orders).where(eq(orders.id, id)))[0].item);

const order = await db.query.orders.findFirst({ where: eq(orders.id, id), with: { lines: true } });
console.log(order.lines[0].id === line.id, order.lines[0].orderId === id);

try {
  await db.execute("SELECT flake.flake_timestamp(-1)");
} catch (error) {
  console.log(error.cause.code, error.cause.hint);
}
await pool.end();
