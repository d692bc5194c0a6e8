package flakeids;

import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicInteger;

/** IDs that a process has fetched and not used yet, and how many to fetch next. clients/README.md has the rules. Except for a Batch, all
 *  of it wants the lock of the Ids. Times are nanoseconds of System.nanoTime(). */
class Buffer {
    /** The IDs of one answer. Whoever increments `next` has the ID there, so that no two threads get the same one. Before `soon`, and below
     *  `quiet`, a thread needs no lock. */
    static final class Batch {
        final long[] ids;
        final AtomicInteger next = new AtomicInteger();
        final long sent, until;
        volatile int quiet;
        volatile long soon;
        boolean hasSaid;

        Batch(long[] ids, long sent, long maxAge) {
            this.ids = ids;
            this.sent = sent;
            until = sent + maxAge;
            soon = sent + maxAge / 4 * 3;
            quiet = ids.length - Math.max(1, ids.length / 4);
        }

        int left() { return Math.max(0, ids.length - next.get()); }
    }

    private static final Batch NONE = new Batch(new long[0], System.nanoTime(), 0);
    volatile Batch first = NONE;
    private final ArrayDeque<Batch> batches = new ArrayDeque<>();
    private final long maxAge, span;
    private final int most;
    /** How many IDs are waited for, by how many threads, and how many threads have an answer and have not looked at it yet. The round is
     *  the number of answers. */
    long waited, round;
    int waiting, woken;
    long fetched, expired;
    private long counted, at = System.nanoTime();
    /** How many IDs were used in the last span, at the last request. */
    private double rate;

    Buffer(long maxAge, int most) {
        this.maxAge = maxAge;
        this.most = most;
        span = maxAge == Long.MAX_VALUE / 2 ? 1_000_000_000L : maxAge;
    }

    /** Adds IDs to those that are taken, until they are all there. Returns how many there are. IDs that are too old are for a thread that
     *  waited already when they were asked for: on a slow connection, it would get none otherwise. */
    int take(long[] taken, int count, long now, long since) {
        for (Batch batch; count < taken.length && (batch = batches.peek()) != null; ) {
            if (now - batch.until < 0 || since - batch.sent <= 0) {
                for (int n; count < taken.length && (n = batch.next.getAndIncrement()) < batch.ids.length; ) taken[count++] = batch.ids[n];
                if (count == taken.length) break;
            } else {
                int n = batch.next.getAndSet(batch.ids.length);
                expired += Math.max(0, batch.ids.length - n);
            }
            batches.remove();
            first = batches.isEmpty() ? NONE : batches.peek();
        }
        return count;
    }

    /** Whether to fetch the next batch now. Each batch says so once. */
    boolean runsLow(long now) {
        Batch batch = batches.peekLast();
        if (batch == null || batch.hasSaid || batch.next.get() < batch.quiet && now - batch.soon < 0) return false;
        batch.hasSaid = true;
        batch.quiet = batch.ids.length;
        batch.soon = batch.until;
        return true;
    }

    /** How many IDs to ask for. This is called once before each request, and counts what was used since the last one. */
    int wanted(long now) {
        long used = fetched - expired;
        for (Batch batch : batches) used -= batch.left();
        double spans = Math.max(1e-9, (double) (now - at) / span);
        rate = rate * Math.max(0, 1 - spans) + (used - counted) * Math.min(1, 1 / spans);
        at = now;
        counted = used;
        return (int) Math.max(1, Math.min(most, Math.max(waited, Math.round(rate))));
    }

    void add(long[] ids, long sent) {
        fetched += ids.length;
        batches.add(new Batch(ids, sent, maxAge));
        first = batches.peek();
    }

    void wake() {
        woken += waiting;
        waited = waiting = 0;
        round++;
    }

    void clear() {
        batches.clear();
        first = NONE;
    }
}
