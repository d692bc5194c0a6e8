// An application that knows the ID of an order before it inserts the row.
import pg from "pg";
import { Ids } from "pgflake";

const ids = new Ids("twitter", { connect: () => new pg.Client() });
const pool = new pg.Pool();

const order = await ids.next(); // a bigint
await pool.query("INSERT INTO orders (id, item) VALUES ($1, 'tea')", [order]);
console.log(String(order));
await ids.close();
await pool.end();
