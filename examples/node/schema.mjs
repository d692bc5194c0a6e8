// Drizzle's tables. With { mode: "number" }, IDs would be rounded.
import { relations, sql } from "drizzle-orm";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";

// As PostgreSQL shows the default, so that drizzle-kit sees no difference.
const flakeId = () => bigint({ mode: "bigint" }).primaryKey().default(sql`flake.flake_next('twitter'::text)`);

export const orders = pgTable("orders", { id: flakeId(), item: text().notNull() });

export const lines = pgTable("lines", {
  id: flakeId(),
  orderId: bigint("order_id", { mode: "bigint" }).notNull().references(() => orders.id),
  cups: text().notNull(),
});

export const ordersHave = relations(orders, ({ many }) => ({ lines: many(lines) }));
export const linesHave = relations(lines, ({ one }) => ({ order: one(orders, { fields: [lines.orderId], references: [orders.id] }) }));
