// IDs that a process has fetched and not used yet, and how many to fetch next. clients/README.md has the rules.

/** Milliseconds. A library that fakes the clocks of a test replaces them after this module was loaded. */
export const now = performance.now.bind(performance);

/** The IDs of one answer, the next one at the end. An ID is popped without further thought before `soon`, while there are more than
 *  `low`. */
export class Batch {
  readonly until: number;
  low: number;
  soon: number;
  hasSaid = false;

  constructor(readonly ids: bigint[], sent: number, maxAge: number) {
    this.until = sent + maxAge;
    this.low = Math.max(1, Math.floor(ids.length / 4));
    this.soon = sent + maxAge * 0.75;
  }
}

const NONE = new Batch([], -Infinity, 0);

export class Buffer {
  first = NONE;
  fetched = 0;
  expired = 0;
  private batches: Batch[] = [];
  private counted = 0;
  private at = now();
  /** How many IDs were used in the last `span`, at the last request. */
  private rate = 0;
  private span: number;

  constructor(readonly maxAge: number, private most: number) {
    this.span = Number.isFinite(maxAge) ? maxAge : 1000;
  }

  /** Removes this many IDs that are fresh, or all that there are. */
  take(count: number, at: number): bigint[] {
    const taken: bigint[] = [];
    for (let batch = this.batches[0]; batch && taken.length < count; batch = this.batches[0]) {
      if (at >= batch.until) this.expired += batch.ids.length;
      else {
        while (taken.length < count && batch.ids.length > 0) taken.push(batch.ids.pop()!);
        if (taken.length === count) break;
      }
      this.batches.shift();
      this.first = this.batches[0] ?? NONE;
    }
    return taken;
  }

  /** Whether to fetch the next batch now. Each batch says so once. */
  runsLow(at: number): boolean {
    const batch = this.batches.at(-1);
    if (!batch || batch.hasSaid || (batch.ids.length > batch.low && at < batch.soon)) return false;
    [batch.hasSaid, batch.low, batch.soon] = [true, 0, batch.until];
    return true;
  }

  /** How many IDs to ask for. This is called once before each request, and counts what was used since the last one. */
  wanted(waited: number, at: number): number {
    const left = this.batches.reduce((sum, batch) => sum + batch.ids.length, 0);
    const used = this.fetched - this.expired - left;
    const passed = Math.max(at - this.at, 1e-6);
    this.rate *= Math.max(0, 1 - passed / this.span);
    this.rate += (used - this.counted) * Math.min(1, this.span / passed);
    [this.at, this.counted] = [at, used];
    return Math.max(1, Math.min(this.most, Math.max(waited, Math.round(this.rate))));
  }

  /** Keeps IDs that nobody has waited for, if they are fresh. */
  add(ids: bigint[], sent: number, at: number): void {
    const batch = new Batch(ids.reverse(), sent, this.maxAge);
    if (at >= batch.until) this.expired += ids.length;
    else if (ids.length > 0) {
      this.batches.push(batch);
      this.first = this.batches[0]!;
    }
  }

  clear(): void {
    this.batches = [];
    this.first = NONE;
  }
}
