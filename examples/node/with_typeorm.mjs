// TypeORM with node-postgres: an ID is a string.
import { DataSource, EntitySchema } from "typeorm";

const Order = new EntitySchema({
  name: "orders",
  columns: {
    id: { type: "bigint", primary: true, default: () => "flake_next('twitter')" },
    item: { type: "text" },
  },
});

const db = new DataSource({ type: "postgres", entities: [Order], synchronize: true });
await db.initialize();
const orders = db.getRepository(Order);

const items = Array.from({ length: 1000 }, (_, number) => ({ item: `cup ${number}` }));
const ids = (await orders.insert(items)).identifiers.map((row) => row.id);
const order = await orders.save({ item: "tea" });
console.log(typeof order.id, (await orders.findOneBy({ id: ids[7] })).item);

// The default is the one that TypeORM expects, so there is nothing to synchronize.
console.log((await db.driver.createSchemaBuilder().log()).upQueries.length);

try {
  await db.query("SELECT flake_timestamp(-1)");
} catch (error) {
  console.log(error.code, error.driverError.hint);
}
await db.destroy();
