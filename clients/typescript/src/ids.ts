import { Buffer, now } from "./buffer.js";
import { clearTimeout, Database, setTimeout, type Connect } from "./database.js";
import { Closed, isPermanent, messageOf, Refused, Unavailable } from "./errors.js";

export interface Options {
  /** IDs that were fetched so many seconds ago are thrown away; 1 by default, and Infinity keeps them. */
  maxAge?: number;
  /** How many IDs one statement fetches at most; 10,000 by default. */
  most?: number;
  /** How many seconds an ID is waited for; 5 by default. */
  patience?: number;
  log?: (level: "warn" | "error", message: string, problem: unknown) => void;
}

/** How many requests and failures there were, how many IDs were fetched, and how many expired. */
export type Counters = { requests: number; ids: number; expired: number; failures: number };

interface Waiter {
  count: number;
  ids: bigint[];
  since: number;
  give(ids: bigint[]): void;
  fail(problem: unknown): void;
}

/** Milliseconds without a request after which the connection is closed. */
const IDLE = 10_000;
// Node fires a timer of more than 24 days at once.
const LONGEST = 3_600_000;

/** For a process. Worker threads and the processes of a cluster have their own. */
export class Ids implements AsyncIterable<bigint> {
  private buffer: Buffer;
  private database: Database;
  private patience: number;
  private waiters: Waiter[] = [];
  private problem: unknown;
  private requests = 0;
  private failures = 0;
  private failed = 0;
  private retryAt = 0;
  private asking: Promise<void> | undefined;
  private alarm: NodeJS.Timeout | undefined;
  private idle: NodeJS.Timeout | undefined;
  private closed = false;

  /** `connect` opens a connection, such as `() => new pg.Client()`, or is a pool, such as `new pg.Pool()`. */
  constructor(private layout: string, connect: Connect, private options: Options = {}) {
    const { maxAge = 1, most = 10_000, patience = 5 } = options;
    if (!(maxAge > 0)) throw new RangeError("maxAge is a number of seconds above 0");
    if (!(most >= 1 && most < 2 ** 31)) throw new RangeError("most is a number from 1 to 2147483647");
    if (!(patience >= 0)) throw new RangeError("patience is a number of seconds");
    this.patience = patience * 1000;
    this.buffer = new Buffer(maxAge * 1000, Math.floor(most));
    this.database = new Database(connect);
  }

  get counters(): Counters {
    return { requests: this.requests, ids: this.buffer.fetched, expired: this.buffer.expired, failures: this.failures };
  }

  /** An ID of the buffer, or undefined if there is none now. */
  tryNext(): bigint | undefined {
    const batch = this.buffer.first;
    if (batch.ids.length > batch.low && now() < batch.soon) return batch.ids.pop();
    return this.taken(1)[0];
  }

  /** An ID. Rejects with Unavailable after the patience, Refused where waiting is of no use, Closed, or the reason of the signal. */
  async next(signal?: AbortSignal): Promise<bigint> {
    signal?.throwIfAborted();
    const batch = this.buffer.first;
    if (batch.ids.length > batch.low && now() < batch.soon) return batch.ids.pop()!;
    return (await this.take(1, signal))[0]!;
  }

  /** So many IDs, or an error as of next(). */
  async take(count: number, signal?: AbortSignal): Promise<bigint[]> {
    signal?.throwIfAborted();
    const ids = this.taken(count);
    if (ids.length === count) return ids;
    if (this.problem instanceof Refused && now() < this.retryAt) throw this.refusal();
    return this.wait(count, ids, signal);
  }

  /** Closes the connection. Those who wait get the error Closed. */
  async close(): Promise<void> {
    this.closed = true;
    this.buffer.clear();
    this.fail(() => new Closed("close() was called"));
    clearTimeout(this.idle);
    clearTimeout(this.alarm);
    await this.database.close();
    await this.asking;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<bigint, void, undefined> {
    for (;;) yield await this.next();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // Those who want IDs.

  /** IDs of the buffer, at most this many. What others wait for is not taken. */
  private taken(count: number): bigint[] {
    if (this.closed) throw new Closed("close() was called");
    const at = now();
    const ids = this.waiters.length > 0 ? [] : this.buffer.take(count, at);
    if (!this.asking && at >= this.retryAt && this.buffer.runsLow(at)) {
      // A single ID would be too old when it is used.
      const wanted = this.buffer.wanted(0, at);
      if (wanted > 1) this.ask(wanted);
    }
    return ids;
  }

  private wait(count: number, ids: bigint[], signal: AbortSignal | undefined): Promise<bigint[]> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.waiters = this.waiters.filter((one) => one !== waiter);
        reject(signal!.reason);
        this.serve();
      };
      const done = () => signal?.removeEventListener("abort", leave);
      const waiter: Waiter = {
        count,
        ids,
        since: now(),
        give: (all) => (done(), resolve(all)),
        fail: (problem) => (done(), reject(problem)),
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.waiters.push(waiter);
      if (this.waiters.length === 1) this.serve();
    });
  }

  /** Asks for what is waited for, now or when it is time to try again. */
  private serve(): void {
    const at = now();
    if (this.waiters.length > 0 && !this.asking && at >= this.retryAt) {
      this.ask(this.buffer.wanted(this.waiters.reduce((sum, { count, ids }) => sum + count - ids.length, 0), at));
    }
    this.watch();
  }

  /** Sets an alarm for when the first one gives up, or the next request is due. */
  private watch(): void {
    clearTimeout(this.alarm);
    this.alarm = undefined;
    const at = now();
    while (this.waiters[0] && at >= this.waiters[0].since + this.patience) this.waiters.shift()!.fail(this.none());
    const first = this.waiters[0];
    if (!first) return;
    const due = this.asking ? Infinity : this.retryAt;
    const pause = Math.min(first.since + this.patience - at, Math.max(0, due - at), LONGEST);
    this.alarm = setTimeout(() => this.serve(), Math.ceil(pause));
  }

  private fail(problem: () => Error): void {
    for (const waiter of this.waiters.splice(0)) waiter.fail(problem());
  }

  private none(): Unavailable {
    const why = this.problem === undefined ? "no answer yet" : messageOf(this.problem);
    return new Unavailable(`no ID of ${this.layout} in time: ${why}`, { cause: this.problem });
  }

  private refusal(): Refused {
    const { message, cause } = this.problem as Refused;
    return new Refused(message, { cause });
  }

  // Requests, one at a time.

  private ask(count: number): void {
    clearTimeout(this.idle);
    this.requests++;
    this.asking = this.fetch(count).finally(() => {
      this.asking = undefined;
      if (this.closed) return;
      this.idle = setTimeout(() => void (this.asking ?? this.database.close()), IDLE).unref();
      this.serve();
    });
  }

  private async fetch(count: number): Promise<void> {
    const [sent, wasUsed] = [now(), this.database.isUsed];
    try {
      const ids = await this.database.batch(this.layout, count);
      const came = now();
      [this.problem, this.failed, this.retryAt] = [undefined, 0, 0];
      this.buffer.fetched += count;
      this.buffer.add(this.given(ids, came < sent + this.buffer.maxAge, sent), sent, came);
    } catch (problem) {
      if (!this.closed) this.hasFailed(problem, wasUsed);
    }
  }

  /** Gives IDs to those who wait, in their order, and returns the rest. IDs that are not fresh are for those who waited already when
   *  they were asked for: on a slow connection, there would be none otherwise. */
  private given(ids: bigint[], areFresh: boolean, sent: number): bigint[] {
    let given = 0;
    for (let waiter = this.waiters[0]; waiter && given < ids.length; waiter = this.waiters[0]) {
      if (!areFresh && waiter.since > sent) break;
      const more = ids.slice(given, given + waiter.count - waiter.ids.length);
      given += more.length;
      waiter.ids = waiter.ids.concat(more);
      if (waiter.ids.length < waiter.count) break;
      this.waiters.shift();
      waiter.give(waiter.ids);
    }
    return ids.slice(given);
  }

  private hasFailed(problem: unknown, wasUsed: boolean): void {
    this.failures++;
    if (isPermanent(problem)) {
      this.problem = new Refused(`no IDs of ${this.layout}: ${messageOf(problem)}`, { cause: problem });
      this.retryAt = now() + 1000;
      this.fail(() => this.refusal());
    } else {
      this.problem = problem;
      const pause = wasUsed && this.failed === 0 ? 0 : Math.min(1000, 100 * 2 ** this.failed) * (0.5 + Math.random());
      this.failed = Math.min(this.failed + 1, 9);
      this.retryAt = now() + pause;
    }
    try {
      this.options.log?.(isPermanent(problem) ? "error" : "warn", `${this.layout}: IDs could not be fetched`, problem);
    } catch {
      // IDs are fetched whatever happens to a line of a log.
    }
  }
}
