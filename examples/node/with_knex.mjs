// Knex with node-postgres: an ID is a string.
import Knex from "knex";

const knex = Knex({ client: "pg", connection: {} });
await knex.schema.createTable("orders", (table) => {
  table.bigInteger("id").primary().defaultTo(knex.raw("flake_next('twitter')"));
  table.text("item");
});

const items = Array.from({ length: 1000 }, (_, number) => ({ item: `cup ${number}` }));
const ids = (await knex("orders").insert(items).returning("id")).map((row) => row.id);
console.log(typeof ids[0], (await knex("orders").whereIn("id", ids)).length);

// As text in JSON.
const [{ order }] = await knex("orders").select(knex.raw("jsonb_build_object('id', id::text) AS order")).where({ id: ids[0] });
console.log(order.id === ids[0]);

try {
  await knex.raw("SELECT flake_timestamp(?::bigint)", ["-1"]);
} catch (error) {
  console.log(error.code, error.hint);
}
await knex.destroy();
