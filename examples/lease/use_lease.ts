// An application that knows the ID of an order before it inserts the row.
import pg from "pg";
import { Ids, leaseFrom } from "./lease.js";

const pool = new pg.Pool();
const ids = new Ids("twitter", leaseFrom(pool));

const order = await ids.next(); // a bigint
await pool.query("INSERT INTO orders (id, item) VALUES ($1, 'tea')", [order]);
console.log(String(order));
await pool.end();
