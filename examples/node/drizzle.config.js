import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "postgresql",
  schema: "./schema.mjs",
  out: "./drizzle",
  dbCredentials: { host: process.env.PGHOST, user: process.env.PGUSER, database: process.env.PGDATABASE, ssl: false },
});
