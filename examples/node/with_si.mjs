// IDs of layout si fit a number, so programs that expect numbers need one line and no other change.
import pg from "pg";
import { DataSource, EntitySchema } from "typeorm";

pg.types.setTypeParser(pg.types.builtins.INT8, Number);

const db = new pg.Client();
await db.connect();
await db.query("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('si'), item text)");

const items = Array.from({ length: 1000 }, (_, number) => `cup ${number}`);
const { rows } = await db.query("INSERT INTO orders (item) SELECT unnest($1::text[]) RETURNING id, to_jsonb(orders) AS order", [items]);
const found = await db.query("SELECT count(*) FROM orders WHERE id = ANY ($1)", [rows.map((row) => row.id)]);
console.log(typeof rows[0].id, found.rows[0].count, rows.every((row) => row.order.id === row.id));
await db.end();

const Order = new EntitySchema({
  name: "orders",
  columns: {
    id: { type: Number, primary: true, generated: true },
    item: { type: "text" },
  },
});
const source = await new DataSource({ type: "postgres", entities: [Order], parseInt8: true }).initialize();
const orders = source.getRepository(Order);
const order = await orders.save({ item: "tea" });
console.log(typeof order.id, (await orders.findOneBy({ id: order.id })).item);
await source.destroy();
