// Inserts and finds posts by TypeORM and Knex, and prints what TypeORM's synchronize would change. It prints no key.
import knex from "knex";
import { DataSource, EntitySchema } from "typeorm";

const Post = new EntitySchema({
  name: "Post",
  tableName: "posts",
  columns: { id: { type: "bigint", primary: true, generated: "increment" }, title: { type: "text", nullable: true } },
});
const source = new DataSource({
  type: "postgres", host: process.env.PGHOST, username: process.env.PGUSER, database: process.env.PGDATABASE,
  entities: [Post], synchronize: process.argv[2] === "create",
});
await source.initialize();
const posts = source.getRepository("Post");
if (process.argv[2] === "create") {
  await posts.save(Array.from({ length: 20 }, (_, n) => ({ title: `old ${n}` })));
} else {
  const made = await posts.save(Array.from({ length: 20 }, (_, n) => ({ title: `new ${n}` })));
  const found = await Promise.all(made.map(({ id }) => posts.findOneBy({ id })));
  console.log("TypeORM", found.filter((post, n) => post.title === `new ${n}`).length, new Set(made.map(({ id }) => id)).size);
  if (process.argv[3]) {
    const { upQueries } = await source.driver.createSchemaBuilder().log();
    console.log("TypeORM would run", upQueries.length);
  }
  const db = knex({ client: "pg", connection: { host: process.env.PGHOST, user: process.env.PGUSER, database: process.env.PGDATABASE } });
  const [{ id }] = await db("posts").insert({ title: "by Knex" }).returning("id");
  console.log("Knex", (await db("posts").where({ id }))[0].title, await db("posts").where({ id }).del());
  await db.destroy();
}
await source.destroy();
