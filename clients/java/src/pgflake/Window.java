package pgflake;

import java.util.function.LongSupplier;

/** What the server has granted, and how much of it is used. Instants are microseconds, of the steady and of the wall clock.
 *  tests/vectors/lease.csv tests it. */
final class Window {
    /** An answer. Where the reason is not null there is no lease, and what follows `pause` is 0, but `now`. */
    record Row(String reason, long pause, long token, long worker, long tickFrom, long tickUntil, int shift, long low, int step,
               long count, long epoch, long tick, long now, long until) {}

    static final long SECOND = 1_000_000;
    /** No ID, as in every layout the greatest tick ends before all bits are set. */
    static final long NONE = -1;
    private Row row;
    private long came, wall, lastTick, lastN;
    long due = Long.MIN_VALUE;
    /** What renews the lease; without it, another lease is asked for. */
    Long token;

    /** The next ID, or NONE if there is none now. */
    long id(long steady, LongSupplier clock) {
        if (row == null) return NONE;
        // The server's clock was read before its answer came, so this never runs ahead of it. A tick never falls.
        long tick = Math.floorDiv(row.now + steady - came - row.epoch, row.tick), n = 0;
        if (tick <= lastTick) {
            tick = lastTick;
            n = lastN + 1;
        } else if (parted(steady, clock.getAsLong())) {
            return NONE;
        }
        long id = (tick << row.shift) + row.low + (n << row.step);
        // Whatever happened meanwhile, an ID of this window belongs to nobody else.
        long of = id >>> row.shift;
        if (n >= row.count || of < row.tickFrom || of >= row.tickUntil) return NONE;
        lastTick = tick;
        lastN = n;
        return id;
    }

    /** In how many microseconds there may be another ID, 0 for now, or NONE if that takes another lease. */
    long pause(long steady) {
        if (row == null) return NONE;
        long now = row.now + steady - came - row.epoch, tick = Math.max(Math.floorDiv(now, row.tick), lastTick);
        if (tick == lastTick && lastN + 1 >= row.count) tick++;
        tick = Math.max(tick, row.tickFrom);
        return tick < row.tickUntil ? Math.max(0, tick * row.tick - now) : NONE;
    }

    /** Whether to ask now, with the token. */
    boolean asks(long steady, long wall) {
        parted(steady, wall);
        return steady >= due;
    }

    /** Returns the reason if the answer is of no use, else null. */
    String answered(Row answer, long sent, long arrived, long clock) {
        if (answer.reason != null) {
            if (answer.reason.equals("lost")) token = null;
            due = arrived + Math.min(5 * SECOND, answer.pause);
            return answer.reason;
        }
        if (arrived - sent > 2 * SECOND) {
            // The process may have stood still: what the answer says of the clock is old.
            token = null;
            due = arrived + SECOND;
            return "late";
        }
        token = answer.token;
        due = sent + Math.min(5 * SECOND, (answer.until - answer.now) / 2);
        boolean continues = row != null && row.low == answer.low && row.tickUntil == answer.tickFrom;
        row = !continues ? answer : new Row(null, 0, answer.token, answer.worker, row.tickFrom, answer.tickUntil, answer.shift,
            answer.low, answer.step, answer.count, answer.epoch, answer.tick, answer.now, answer.until);
        // The server's clock was ahead, and is corrected. Nobody has used a tick of this window.
        if (row.tickUntil <= lastTick) lastTick = lastN = 0;
        came = arrived;
        wall = clock;
        return null;
    }

    /** There was no answer. The same token is tried again, because the server knows whether it was used. */
    void failed(long steady, long pause) { due = steady + pause; }

    /** The last tick used, or null. There is no ID afterwards. */
    Long release() {
        row = null;
        token = null;
        return lastTick == 0 ? null : (Long) lastTick;
    }

    /** Whether the machine was suspended since the answer, or a clock was set. */
    private boolean parted(long steady, long clock) {
        if (row == null || Math.abs((clock - wall) - (steady - came)) <= SECOND) return false;
        row = null;
        token = null;
        due = steady;
        return true;
    }
}
