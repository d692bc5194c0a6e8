// The connection that leases are asked for on: one of its own, that nobody else has to give back. A request has two seconds. One that
// takes longer loses the connection, because what comes later would be an answer to another question.
import { Refused } from "./errors.js";
import { COLUMNS, toRow, type Row } from "./window.js";

/** A client of `pg` that is not connected yet. */
export interface Client {
  connect(): Promise<unknown>;
  query(text: string, values: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
  end(): Promise<void>;
  unref?(): void;
  on(event: "error", listener: (problem: Error) => void): unknown;
}

const LIMIT = 2000;
const NAMED = "SELECT pg_catalog.set_config('application_name', $1, false) WHERE pg_catalog.current_setting('application_name') = ''";

export class Database {
  private client: Client | undefined;

  constructor(private connect: () => Client, private names: { lease: string; release: string }) {}

  async lease(layout: string, token: bigint | undefined): Promise<Row> {
    const query = `SELECT protocol, ${COLUMNS.join(", ")} FROM ${this.names.lease}($1, $2::bigint)`;
    const [columns] = await this.rows(query, layout, token?.toString() ?? null);
    if (Number(columns?.["protocol"]) !== 1) {
      throw new Refused(`the server speaks protocol ${columns?.["protocol"]} of leases, and this client protocol 1`);
    }
    return toRow(columns!);
  }

  async release(layout: string, token: bigint, lastTick: number | undefined): Promise<void> {
    await this.rows(`SELECT ${this.names.release}($1, $2::bigint, $3::bigint)`, layout, token.toString(), lastTick ?? null);
  }

  async batch(layout: string, count: number): Promise<bigint[]> {
    const rows = await this.rows("SELECT flake_batch($1, $2::integer)::text AS id", layout, count);
    return rows.map(({ id }) => BigInt(id as string));
  }

  /** Ends the connection without a wait for the server. */
  close(): void {
    const client = this.client as (Client & { connection?: { stream?: { destroy?(): void } } }) | undefined;
    this.client = undefined;
    client?.end().catch(() => undefined);
    client?.connection?.stream?.destroy?.();
  }

  private async rows(text: string, ...values: unknown[]): Promise<Record<string, unknown>[]> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error("the database has not answered for 2 s")), LIMIT);
    });
    try {
      const answer = this.answer(text, values);
      answer.catch(() => undefined);
      return await Promise.race([answer, late]);
    } catch (problem) {
      this.close();
      throw problem;
    } finally {
      clearTimeout(timer);
    }
  }

  private async answer(text: string, values: unknown[]): Promise<Record<string, unknown>[]> {
    if (!this.client) {
      const client = (this.client = this.connect());
      // An idle connection that the server ends is noticed by the next request.
      client.on("error", () => undefined);
      await client.connect();
      // It does not keep a process that has nothing else to do.
      client.unref?.();
      await client.query(NAMED, [`pgflake ${process.pid}`]);
    }
    return (await this.client.query(text, values)).rows;
  }
}
