import pg from "pg";
import { DataSource, EntitySchema } from "typeorm";
import { parse, stringify } from "./json.mjs";
import { report, setUp } from "./report.mjs";

if (setUp) {
  pg.types.setTypeParser(pg.types.builtins.JSON, parse);
  pg.types.setTypeParser(pg.types.builtins.JSONB, parse);
}
const key = { type: "bigint", primary: true, default: () => "flake_next('twitter')" };
const item = { type: "text", nullable: true };
const kept = new EntitySchema({
  name: "kept",
  columns: {
    n: { type: "int", primary: true, generated: true },
    id: { type: "bigint", nullable: true },
    many: { type: "bigint", array: true, nullable: true },
    document: { type: "jsonb", nullable: true },
  },
});
const made = new EntitySchema({ name: "made", columns: { id: key, item } });
const manyRows = new EntitySchema({ name: "many", columns: { id: key, item } });
const db = await new DataSource({ type: "postgres", entities: [kept, made, manyRows] }).initialize();
const of = (table) => db.getRepository(table);

await report({
  keep: async (id, other) => {
    const { n } = await of(kept).save({ id, many: [id, other] });
    const row = await of(kept).findOneBy({ n });
    return [row.id, row.many, await of(kept).countBy({ id: row.id })];
  },
  keepNull: async () => (await of(kept).save({ id: null })).id,
  read: async (id) => (await db.query("SELECT jsonb_build_object('id', $1::bigint) AS document", [id]))[0].document.id,
  write: async (id) => {
    const document = setUp ? () => `'${stringify({ id: BigInt(id) })}'` : { id: Number(id) };
    const { identifiers } = await of(kept).insert({ document });
    return (await db.query("SELECT document ->> 'id' AS id FROM kept WHERE n = $1", [identifiers[0].n]))[0].id;
  },
  make: async () => {
    const { id } = await of(made).save({ item: null });
    return [id, await of(made).countBy({ id })];
  },
  insert: async (rows) => (await of(manyRows).insert(rows)).identifiers,
  select: () => of(manyRows).find(),
  fail: () => db.query("SELECT flake_timestamp($1::bigint)", ["-1"]),
});
await db.destroy();
