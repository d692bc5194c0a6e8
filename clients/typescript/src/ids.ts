import { Database, type Client } from "./database.js";
import { Closed, isPermanent, messageOf, NoLease, Refused } from "./errors.js";
import { SECOND, Window } from "./window.js";

export interface Options {
  /** Opens a connection of its own, such as `() => new pg.Client()`. It is not one of a pool: it stays open as long as this. */
  connect: () => Client;
  /** How many seconds an ID waits for a lease; 5 by default. */
  patience?: number;
  /** How many IDs the database is asked for at once while there is no lease; none by default. */
  bridge?: number;
  /** The functions, if they are not the extension's own. */
  lease?: string;
  release?: string;
  log?: (level: "debug" | "info" | "warn" | "error", message: string, problem?: unknown) => void;
}

/** How many requests, leases, failures, IDs of the bridge, and refusals by their reason there were. */
export type Counters = Record<string, number>;

interface Waiter {
  deadline: number;
  give(id: bigint | undefined): void;
  fail(problem: unknown): void;
  takes: boolean;
}

const clock = { steady: () => performance.now() * 1000, wall: () => Date.now() * 1000 };

/** For a process. Worker threads and the processes of a cluster have their own. */
export class Ids {
  readonly counters: Counters = {};
  private window = new Window();
  private database: Database;
  private problem: unknown;
  private reason: string | undefined;
  private waiters: Waiter[] = [];
  private batch: { came: number; id: bigint }[] = [];
  private timer: NodeJS.Timeout | undefined;
  private asking: Promise<void> | undefined;
  private alarm: NodeJS.Timeout | undefined;
  private closed = false;
  private patience: number;

  constructor(private layout: string, private options: Options) {
    this.patience = (options.patience ?? 5) * SECOND;
    this.database = new Database(options.connect, {
      lease: options.lease ?? "flake_lease",
      release: options.release ?? "flake_release",
    });
    this.plan();
  }

  /** An ID, or undefined if there is none now. */
  tryNext(): bigint | undefined {
    if (this.waiters.length > 0) return undefined;
    return this.take();
  }

  /** An ID. Rejects with NoLease after the patience, Refused where waiting is of no use, Closed, or the reason of the signal. */
  async next(signal?: AbortSignal): Promise<bigint> {
    signal?.throwIfAborted();
    return this.tryNext() ?? ((await this.wait(true, signal)) as bigint);
  }

  /** Waits until there is a lease, as next() does. */
  async ready(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.window.pause(clock.steady()) === undefined) await this.wait(false, signal);
  }

  /** Releases the lease, so that another process has the worker at once. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.timer);
    const [token, last] = this.window.release();
    this.serve();
    await this.asking;
    // A renewal may have been on its way.
    const [later] = this.window.release();
    try {
      if (later ?? token) await this.database.release(this.layout, (later ?? token)!, last);
    } catch (problem) {
      this.log("info", "a lease could not be released", problem);
    }
    this.database.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private take(): bigint | undefined {
    if (this.closed) return undefined;
    const now = clock.steady();
    const id = this.window.id(now, clock.wall);
    if (id !== undefined || this.batch.length === 0) return id;
    while (this.batch.length > 0) {
      const { came, id } = this.batch.shift()!;
      if (now - came <= SECOND) return id;
    }
    return undefined;
  }

  private wait(takes: boolean, signal: AbortSignal | undefined): Promise<bigint | undefined> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.waiters = this.waiters.filter((one) => one !== waiter);
        reject(signal!.reason);
      };
      const done = () => signal?.removeEventListener("abort", leave);
      const waiter: Waiter = {
        deadline: clock.steady() + this.patience,
        takes,
        give: (id) => (done(), resolve(id)),
        fail: (problem) => (done(), reject(problem)),
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.waiters.push(waiter);
      if (this.waiters.length === 1) this.serve();
    });
  }

  /** Gives IDs to those who wait, in their order, and sets an alarm for when there may be more or the first one gives up. */
  private serve(): void {
    clearTimeout(this.alarm);
    this.alarm = undefined;
    for (let waiter = this.waiters[0]; waiter; waiter = this.waiters[0]) {
      const now = clock.steady();
      const id = waiter.takes ? this.take() : undefined;
      const pause = this.window.pause(now);
      const problem = this.hopeless() ?? (now >= waiter.deadline ? this.none() : undefined);
      if (id !== undefined || (!waiter.takes && pause !== undefined)) {
        this.waiters.shift();
        waiter.give(id);
      } else if (problem && (pause === undefined || now >= waiter.deadline)) {
        this.waiters.shift();
        waiter.fail(problem);
      } else {
        // Node fires a timer of more than 24 days at once.
        const until = Math.min(waiter.deadline - now, pause ?? Infinity, 3600 * SECOND);
        this.alarm = setTimeout(() => this.serve(), Math.ceil(until / 1000));
        this.plan();
        return;
      }
    }
  }

  private none(): NoLease {
    const why = this.problem === undefined ? "no answer yet" : messageOf(this.problem);
    return new NoLease(`no lease of a worker of ${this.layout}: ${why}`, this.reason, { cause: this.problem });
  }

  private hopeless(): Error | undefined {
    if (this.closed) return new Closed("close() was called");
    if (!isPermanent(this.problem)) return undefined;
    return new Refused(`${this.layout} cannot be leased: ${messageOf(this.problem)}`, { cause: this.problem });
  }

  /** Sets the timer for the next request. A process may end meanwhile, but not while somebody waits. */
  private plan(): void {
    if (this.closed || this.asking) return;
    clearTimeout(this.timer);
    const now = clock.steady();
    const isDue = this.window.asks(now, clock.wall());
    const pause = isDue || this.hasToBridge(now) ? 0 : Math.min(500, Math.max(1, (this.window.due - now) / 1000));
    this.timer = setTimeout(() => this.step(), pause).unref();
  }

  private step(): void {
    const now = clock.steady();
    if (this.window.asks(now, clock.wall())) this.asking = this.ask();
    else if (this.hasToBridge(now)) this.asking = this.bridge();
    else return this.plan();
    void this.asking.finally(() => {
      this.asking = undefined;
      this.serve();
      this.plan();
    });
  }

  private hasToBridge(now: number): boolean {
    const isWanted = this.options.bridge && this.waiters.some(({ takes }) => takes) && this.window.pause(now) === undefined;
    return Boolean(isWanted) && this.batch.length === 0 && this.problem instanceof NoLease;
  }

  private async ask(): Promise<void> {
    this.count("requests");
    const { token } = this.window;
    const sent = clock.steady();
    try {
      const row = await this.database.lease(this.layout, token);
      const came = clock.steady();
      // A renewal of a window that was given up begins when that one ends.
      const isOfUse = this.closed || token === this.window.token;
      const reason = isOfUse ? this.window.answered(row, sent, came, clock.wall()) : "clock";
      this.count(reason ?? "leases");
      this.reason = reason;
      this.problem = reason && new NoLease(`${reason}, for ${Math.round(row.wait / SECOND)} s`, reason);
      if (reason) this.window.due += (Math.random() * Math.max(0, this.window.due - came)) / 4;
      this.log(reason ? "info" : "debug", reason ? `there is no lease: ${reason}` : `worker ${row.worker} is leased`);
    } catch (problem) {
      this.failed(problem);
    }
  }

  private async bridge(): Promise<void> {
    try {
      const ids = await this.database.batch(this.layout, this.options.bridge!);
      const came = clock.steady();
      this.batch.push(...ids.map((id) => ({ came, id })));
      this.count("bridged", ids.length);
    } catch (problem) {
      this.failed(problem);
    }
  }

  private failed(problem: unknown): void {
    this.count("failures");
    [this.problem, this.reason] = [problem, undefined];
    const pause = isPermanent(problem) ? 30 * SECOND : SECOND / 2 + Math.random() * SECOND;
    this.window.failed(clock.steady(), pause);
    this.log(isPermanent(problem) ? "error" : "warn", "a request for a lease has failed", problem);
  }

  private count(name: string, more = 1): void {
    this.counters[name] = (this.counters[name] ?? 0) + more;
  }

  private log(level: "debug" | "info" | "warn" | "error", message: string, problem?: unknown): void {
    try {
      this.options.log?.(level, `${this.layout}: ${message}`, problem);
    } catch {
      // Leases are renewed whatever happens to a line of a log.
    }
  }
}
