import Knex from "knex";
import pg from "pg";
import { parse, stringify } from "./json.mjs";
import { report, setUp } from "./report.mjs";

if (setUp) {
  pg.types.setTypeParser(pg.types.builtins.JSON, parse);
  pg.types.setTypeParser(pg.types.builtins.JSONB, parse);
}
const knex = Knex({ client: "pg", connection: {} });
const count = async (table, id) => (await knex(table).count().where({ id }))[0].count;

await report({
  keep: async (id, other) => {
    const [row] = await knex("kept").insert({ id, many: [id, other] }).returning(["id", "many"]);
    return [row.id, row.many, await count("kept", row.id)];
  },
  keepNull: async () => (await knex("kept").insert({ id: null }).returning("id"))[0].id,
  read: async (id) => (await knex.select(knex.raw("jsonb_build_object('id', ?::bigint) AS document", [id])))[0].document.id,
  write: async (id) => {
    const document = setUp ? stringify({ id: BigInt(id) }) : { id: BigInt(id) };
    return (await knex("kept").insert({ document }).returning(knex.raw("document ->> 'id' AS id")))[0].id;
  },
  make: async () => {
    const [{ id }] = await knex("made").insert({ item: null }).returning("id");
    return [id, await count("made", id)];
  },
  insert: (rows) => knex("many").insert(rows).returning("id"),
  select: () => knex("many"),
  fail: () => knex.raw("SELECT flake_timestamp(?::bigint)", ["-1"]),
});
await knex.destroy();
