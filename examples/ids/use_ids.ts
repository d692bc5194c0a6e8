// An application that knows the ID of an order before it inserts the row.
import pg from "pg";
import { Ids } from "flake-ids";

const pool = new pg.Pool();
const ids = new Ids("twitter", pool);

const order = await ids.next(); // a bigint
await pool.query("INSERT INTO orders (id, item) VALUES ($1, 'tea')", [order]);
console.log(String(order));
await ids.close();
await pool.end();
