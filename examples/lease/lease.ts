// IDs of flake that this process makes itself, on a worker number that the database leases to it. docs/how-to/applications.md says
// when to use it. Worker threads and processes of a cluster have their own.

/** An answer. Where `wait` is not 0, the other columns are null. */
export type Row = Record<
  "worker" | "tick_from" | "tick_until" | "shift" | "low" | "count" | "epoch" | "tick" | "now" | "until" | "wait", number>;
/** The worker and the end of a window that is to be continued, or twice null for another worker. */
export type Ask = [worker: number | null, until: number | null];

/** Asks a database by `pg`, whose `bigint`s are strings. All these numbers are below 2^53. */
export const leaseFrom = (pool: { query(text: string, values: unknown[]): Promise<{ rows: object[] }> }) =>
  async (layout: string, ...ask: Ask): Promise<Row> => {
    const { rows } = await pool.query("SELECT * FROM flake_lease($1, $2, $3)", [layout, ...ask]);
    return Object.fromEntries(Object.entries(rows[0]).map(([name, value]) => [name, Number(value)])) as Row;
  };

const SECOND = 1_000_000;

/** What the server has granted, and how much of it is used. Instants are microseconds, of the steady and of the wall clock. */
export class Window {
  private row?: Row;
  private came = 0;
  private wall = 0;
  private due = -Infinity;
  ask: Ask = [null, null];
  private last = 0;
  private n = 0;
  private bits = 0n;

  /** The next ID, or undefined if there is none now. */
  id(steady: number, wall: () => number): bigint | undefined {
    const row = this.row;
    if (!row) return undefined;
    // The server's clock was read before its answer came, so this never runs ahead of it. A tick never falls.
    let tick = Math.floor((row.now + steady - this.came - row.epoch) / row.tick);
    const n = tick > this.last ? 0 : this.n + 1;
    if (tick > this.last && this.parted(steady, wall())) return undefined;
    tick = Math.max(tick, this.last);
    // Whatever happened meanwhile, an ID of this window belongs to nobody else.
    if (n >= row.count || tick < row.tick_from || tick >= row.tick_until) return undefined;
    if (n === 0) this.bits = BigInt(tick) << BigInt(row.shift);
    [this.last, this.n] = [tick, n];
    return BigInt.asIntN(64, this.bits | BigInt(row.low + n));
  }

  /** How the lease is to be renewed now, or undefined. */
  asks(steady: number, wall: number): Ask | undefined {
    this.parted(steady, wall);
    return steady >= this.due ? this.ask : undefined;
  }

  /** Returns the reason if the answer grants no lease, else undefined. */
  answered(row: Row, sent: number, came: number, wall: number): string | undefined {
    if (row.wait > 0) {
      this.due = came + Math.min(5 * SECOND, row.wait);
      return `the database grants none for ${row.wait / SECOND} s`;
    }
    if (came - sent > 2 * SECOND) {
      // The process may have stood still: what the answer says of the clock is old.
      this.failed(came);
      return "the answer took more than 2 s";
    }
    this.ask = [row.worker, row.until];
    this.due = sent + Math.min(5 * SECOND, (row.until - row.now) / 2);
    const continues = this.row?.worker === row.worker && this.row.tick_until === row.tick_from;
    this.row = continues ? { ...row, tick_from: this.row!.tick_from } : row;
    // The server's clock was ahead, and is corrected. Nobody has used a tick of this window.
    if (row.tick_until <= this.last) this.last = 0;
    [this.came, this.wall] = [came, wall];
    return undefined;
  }

  /** An answer that was lost may have been a renewal, which nobody can continue then. */
  failed(steady: number) {
    this.ask = [null, null];
    this.due = steady + SECOND;
  }

  /** Whether the machine was suspended since the answer, or a clock was set. */
  private parted(steady: number, wall: number): boolean {
    const parted = this.row !== undefined && Math.abs(wall - this.wall - (steady - this.came)) > SECOND;
    if (parted) [this.row, this.ask, this.due] = [undefined, [null, null], steady];
    return parted;
  }
}

const steady = () => performance.now() * 1000;
const wall = () => Date.now() * 1000;
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Begins to ask for a lease, and renews it as long as the process runs. `next` waits for it up to `patience` seconds. */
export class Ids {
  private window = new Window();
  private problem: unknown;

  constructor(private layout: string, private lease: (layout: string, ...ask: Ask) => Promise<Row>, private patience = 5) {
    void this.renew();
  }

  private async renew() {
    const ask = this.window.asks(steady(), wall());
    if (ask) {
      const sent = steady();
      try {
        const row = await this.lease(this.layout, ...ask);
        // A renewal of a window that was given up begins when that one ends.
        const isOfUse = ask === this.window.ask || ask[0] === null;
        const reason = isOfUse ? this.window.answered(row, sent, steady(), wall()) : "a clock was set";
        this.problem = reason && new Error(reason);
      } catch (problem) {
        this.problem = problem;
        this.window.failed(steady());
      }
    }
    setTimeout(() => void this.renew(), 50).unref();
  }

  /** Without a wait: undefined where there is none now. */
  tryNext(): bigint | undefined {
    return this.window.id(steady(), wall);
  }

  async next(): Promise<bigint> {
    const began = steady();
    for (;;) {
      const id = this.tryNext();
      if (id !== undefined) return id;
      if (steady() - began > this.patience * SECOND) throw new Error("no lease of a worker number", { cause: this.problem });
      await sleep(1);
    }
  }
}
