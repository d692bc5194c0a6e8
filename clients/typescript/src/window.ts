// What the server has granted, and how much of it is used. tests/vectors/lease.csv tests it.

/** An answer. Where `reason` is not null there is no lease, and what follows `wait` is 0, but `now`. */
export interface Row {
  reason: string | null;
  wait: number;
  token: bigint;
  worker: bigint;
  tick_from: number;
  tick_until: number;
  shift: number;
  low: bigint;
  step: number;
  count: number;
  epoch: number;
  tick: number;
  now: number;
  until: number;
}

const BIG = ["token", "worker", "low"] as const;
const SMALL = ["wait", "tick_from", "tick_until", "shift", "step", "count", "epoch", "tick", "now", "until"] as const;
export const COLUMNS = ["reason", ...BIG, ...SMALL];

/** A row as a driver has it, which gives a `bigint` as a string, a number or a bigint. All but three are below 2^53. */
export function toRow(columns: Record<string, unknown>): Row {
  const row: Record<string, unknown> = { reason: columns["reason"] || null };
  for (const name of BIG) row[name] = BigInt((columns[name] as string | null) || 0);
  for (const name of SMALL) row[name] = Number(columns[name] ?? 0);
  return row as unknown as Row;
}

export const SECOND = 1_000_000;

/** Instants are microseconds, of the steady and of the wall clock. */
export class Window {
  /** What renews the lease; without it, another lease is asked for. */
  token: bigint | undefined;
  due = -Infinity;
  private row: Row | undefined;
  private came = 0;
  private wall = 0;
  private last = 0;
  private n = 0;
  private bits = 0n;
  private step = 0n;

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
    if (n === 0) this.bits = (BigInt(tick) << BigInt(row.shift)) + row.low;
    [this.last, this.n] = [tick, n];
    return BigInt.asIntN(64, this.bits + (BigInt(n) << this.step));
  }

  /** In how many microseconds there may be another ID, 0 for now, or undefined if that takes another lease. */
  pause(steady: number): number | undefined {
    const row = this.row;
    if (!row) return undefined;
    const now = row.now + steady - this.came - row.epoch;
    let tick = Math.max(Math.floor(now / row.tick), this.last);
    if (tick === this.last && this.n + 1 >= row.count) tick++;
    tick = Math.max(tick, row.tick_from);
    return tick < row.tick_until ? Math.max(0, tick * row.tick - now) : undefined;
  }

  /** Whether to ask now, with the token. */
  asks(steady: number, wall: number): boolean {
    this.parted(steady, wall);
    return steady >= this.due;
  }

  /** Returns the reason if the answer is of no use, else undefined. */
  answered(row: Row, sent: number, came: number, wall: number): string | undefined {
    if (row.reason !== null) {
      if (row.reason === "lost") this.token = undefined;
      this.due = came + Math.min(5 * SECOND, row.wait);
      return row.reason;
    }
    if (came - sent > 2 * SECOND) {
      // The process may have stood still: what the answer says of the clock is old.
      [this.token, this.due] = [undefined, came + SECOND];
      return "late";
    }
    [this.token, this.due] = [row.token, sent + Math.min(5 * SECOND, Math.floor((row.until - row.now) / 2))];
    const old = this.row;
    const continues = old !== undefined && old.low === row.low && old.tick_until === row.tick_from;
    this.row = continues ? { ...row, tick_from: old.tick_from } : row;
    // The server's clock was ahead, and is corrected. Nobody has used a tick of this window.
    if (row.tick_until <= this.last) this.last = this.n = 0;
    this.bits = (BigInt(this.last) << BigInt(row.shift)) + row.low;
    [this.came, this.wall, this.step] = [came, wall, BigInt(row.step)];
    return undefined;
  }

  /** There was no answer. The same token is tried again, because the server knows whether it was used. */
  failed(steady: number, pause: number): void {
    this.due = steady + pause;
  }

  /** The token and the last tick used. There is no ID afterwards. */
  release(): [token: bigint | undefined, last: number | undefined] {
    const token = this.token;
    this.row = this.token = undefined;
    return [token, this.last || undefined];
  }

  /** Whether the machine was suspended since the answer, or a clock was set. */
  private parted(steady: number, wall: number): boolean {
    const parted = this.row !== undefined && Math.abs(wall - this.wall - (steady - this.came)) > SECOND;
    if (parted) {
      this.row = this.token = undefined;
      this.due = steady;
    }
    return parted;
  }
}
