// Where IDs come from: a connection of its own, or one of a pool for the time of a request. A request has two seconds. One that takes
// longer loses its connection, because what comes later would be an answer to another question.
import { FlakeError } from "./errors.js";

/** A client of `pg` that is not connected yet. */
export interface Client {
  connect(): Promise<unknown>;
  query(config: any): Promise<{ rows: any[] }>;
  end(): Promise<void>;
  unref?(): void;
  on(event: "error", listener: (problem: Error) => void): unknown;
}

/** A client that a pool has lent. */
interface Pooled {
  query(config: any): Promise<{ rows: any[] }>;
  release(problem?: Error | boolean): void;
  on(event: "error", listener: () => void): unknown;
  removeListener(event: "error", listener: () => void): unknown;
}

/** A pool of `pg`. */
export interface Pool {
  connect(): Promise<Pooled>;
  readonly totalCount: number;
}

export type Connect = (() => Client) | Pool;

/** Milliseconds. */
const LIMIT = 2000;
// Libraries that fake the timers of a test replace them after this module was loaded.
export const { setTimeout, clearTimeout } = globalThis;

export class Database {
  private client: Client | undefined;

  constructor(private connect: Connect) {}

  /** Whether the next request is on a connection that was there before. The server may have ended it meanwhile. */
  get isUsed(): boolean {
    return typeof this.connect === "function" ? this.client !== undefined : this.connect.totalCount > 0;
  }

  /** Rejects with the driver's error, or after two seconds. */
  async batch(layout: string, count: number): Promise<bigint[]> {
    const config = { text: "SELECT flake_batch($1, $2)", values: [layout, count], rowMode: "array", types: { getTypeParser: () => BigInt } };
    const { rows } = await (typeof this.connect === "function" ? this.own(this.connect, config) : pooled(this.connect, config));
    if (rows.length !== count) throw new FlakeError(`flake_batch has returned ${rows.length} IDs instead of ${count}`);
    return (rows as [bigint][]).map(([id]) => id);
  }

  /** Ends the connection, and waits no longer for the server than a request does. */
  async close(): Promise<void> {
    const client = this.client as (Client & { connection?: { stream?: { destroy?(): void } } }) | undefined;
    this.client = undefined;
    if (!client) return;
    await limited(client.end(), true).catch(() => undefined);
    client.connection?.stream?.destroy?.();
  }

  private async own(connect: () => Client, config: object): Promise<{ rows: unknown[] }> {
    try {
      return await limited(this.asked(connect, config));
    } catch (problem) {
      void this.close();
      throw problem;
    }
  }

  private async asked(connect: () => Client, config: object): Promise<{ rows: unknown[] }> {
    if (!this.client) {
      const client = (this.client = connect());
      // The next request notices that the server has ended a connection without use.
      client.on("error", () => undefined);
      await client.connect();
      // It does not keep a process that has nothing else to do.
      client.unref?.();
    }
    return this.client.query(config);
  }
}

async function pooled(pool: Pool, config: object): Promise<{ rows: unknown[] }> {
  const getting = pool.connect();
  const client = await limited(getting).catch((problem: unknown) => {
    getting.then((late) => late.release(), () => undefined);
    throw problem;
  });
  // A lent client has no listener of the pool's. If its connection breaks, `query` rejects; the event would end the process.
  const ignore = (): void => undefined;
  client.on("error", ignore);
  try {
    const answer = await limited(client.query(config));
    client.removeListener("error", ignore);
    client.release();
    return answer;
  } catch (problem) {
    client.release(true);
    throw problem;
  }
}

/** A process that has nothing else to do goes on only if it `isNeeded`. */
async function limited<T>(answer: Promise<T>, isNeeded = false): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the database has not answered for ${LIMIT / 1000} s`)), LIMIT);
    if (!isNeeded) timer.unref();
  });
  answer.catch(() => undefined);
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
