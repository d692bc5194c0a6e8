package flakeids;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import javax.sql.DataSource;

/** IDs of flake for a program that needs them before it inserts the rows, from a buffer. One object is for all threads of a process, and
 *  not for a copy of its memory: create it after CRaC or SnapStart have restored the image. */
public final class Ids implements AutoCloseable, LongSupplier {
    /** Opens a connection of its own. */
    public interface Opening { Connection open() throws SQLException; }

    /** Takes what is worth a line of a log. */
    public interface Log { void log(System.Logger.Level level, String message, Throwable problem); }

    /** What need not be given. */
    public static final class Options {
        long maxAge = SECOND, patience = 5 * SECOND;
        int most = 10_000;
        Log log = (level, message, problem) -> System.getLogger("flakeids").log(level, message, problem);

        /** IDs that were fetched so long ago are thrown away; 1 second by default. Null keeps them. */
        public Options maxAge(Duration maxAge) {
            if (maxAge != null && (maxAge.isZero() || maxAge.isNegative())) throw new IllegalArgumentException("maxAge is above 0");
            this.maxAge = maxAge == null ? Long.MAX_VALUE / 2 : maxAge.toNanos();
            return this;
        }

        /** How many IDs one statement fetches at most; 10,000 by default. */
        public Options most(int most) {
            if (most < 1) throw new IllegalArgumentException("most is above 0");
            this.most = most;
            return this;
        }

        /** How long an ID is waited for; 5 seconds by default. */
        public Options patience(Duration patience) {
            if (patience.isNegative()) throw new IllegalArgumentException("patience is not below 0");
            this.patience = patience.toNanos();
            return this;
        }

        public Options log(Log log) {
            this.log = log;
            return this;
        }
    }

    private static final long SECOND = 1_000_000_000L;
    /** A thread that had nothing to do for so long ends, and closes its connection. */
    private static final long IDLE = 10 * SECOND;
    private static final Set<String> PERMANENT = Set.of("42501", "42883", "22023", "2200H", "3D000", "28000", "28P01");
    private final String layout;
    private final Supplier<Database> databases;
    private final Options options;
    private final Buffer buffer;
    // For moments only, never while the database is asked.
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition wanted = lock.newCondition(), changed = lock.newCondition();
    private final Map<String, Long> counters = new TreeMap<>();
    private Thread thread;
    private boolean runsLow, closed, isRefused;
    private Throwable problem;
    private int failed;
    private long retryAt = System.nanoTime();

    public Ids(String layout, String url) { this(layout, url, new Properties(), new Options()); }

    public Ids(String layout, String url, Properties properties, Options options) {
        this(layout, Database.opening(url, properties), options);
    }

    public Ids(String layout, Opening opening, Options options) { this(layout, () -> new Database(opening, false), options); }

    /** Takes a connection of a pool for the time of a request. */
    public Ids(String layout, DataSource pool, Options options) {
        this(layout, () -> new Database(pool::getConnection, true), options);
    }

    Ids(String layout, Supplier<Database> databases, Options options) {
        this.layout = layout;
        this.databases = databases;
        this.options = options;
        buffer = new Buffer(options.maxAge, options.most);
    }

    /** An ID. Throws Unavailable after the patience, Refused where waiting is of no use, Closed, and Interrupted. */
    public long next() {
        Buffer.Batch batch = buffer.first;
        if (batch.next.get() < batch.quiet && System.nanoTime() - batch.soon < 0) {
            int n = batch.next.getAndIncrement();
            if (n < batch.ids.length) return batch.ids[n];
        }
        return taken(1, options.patience)[0];
    }

    /** As next(), for LongStream.generate(ids). */
    @Override
    public long getAsLong() { return next(); }

    /** An ID of the buffer, or null if there is none now. */
    public Long tryNext() {
        try {
            return taken(1, 0)[0];
        } catch (FlakeException.Unavailable | FlakeException.Refused none) {
            return null;
        }
    }

    /** So many IDs, or an exception as of next(). */
    public long[] take(int count) { return taken(count, options.patience); }

    /** How many requests and failures there were, how many IDs were fetched, and how many expired. */
    public Map<String, Long> counters() {
        lock.lock();
        try {
            counters.put("ids", buffer.fetched);
            counters.put("expired", buffer.expired);
            return Map.copyOf(counters);
        } finally {
            lock.unlock();
        }
    }

    /** Closes the connection. Those who wait get the exception Closed. */
    @Override
    public void close() {
        Thread fetching;
        lock.lock();
        try {
            closed = true;
            buffer.clear();
            changed.signalAll();
            wanted.signal();
            fetching = thread;
        } finally {
            lock.unlock();
        }
        try {
            if (fetching != null && fetching != Thread.currentThread()) fetching.join(4000);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    // Those who want IDs.

    private long[] taken(int count, long patience) {
        long[] ids = new long[count];
        long since = System.nanoTime();
        int there = 0;
        boolean hasWaited = false;
        lock.lock();
        try {
            for (;;) {
                long now = System.nanoTime();
                if (closed) throw new FlakeException.Closed();
                // What others wait for is not taken.
                if (hasWaited || buffer.waiting + buffer.woken == 0) there = buffer.take(ids, there, now, since);
                if (buffer.runsLow(now)) {
                    runsLow = true;
                    want();
                }
                if (there == count) return ids;
                if (isRefused && now - retryAt < 0) throw new FlakeException.Refused("no IDs of " + layout + ": " + problem.getMessage(), problem);
                if (now - since >= patience) throw none();
                await(count - there, patience - (now - since));
                hasWaited = true;
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new FlakeException.Interrupted(interrupted);
        } finally {
            lock.unlock();
        }
    }

    private void await(int lacks, long pause) throws InterruptedException {
        long round = buffer.round;
        buffer.waited += lacks;
        buffer.waiting++;
        want();
        try {
            changed.awaitNanos(pause);
        } finally {
            if (round == buffer.round) {
                buffer.waited -= lacks;
                buffer.waiting--;
            } else {
                buffer.woken--;
            }
        }
    }

    private FlakeException.Unavailable none() {
        String why = problem == null ? "no answer yet" : problem.getMessage();
        return new FlakeException.Unavailable("no ID of " + layout + " in time: " + why, problem);
    }

    private void want() {
        if (thread == null || !thread.isAlive()) {
            Thread another = new Thread(this::run, "flake-ids " + layout);
            another.setDaemon(true);
            try {
                another.start();
                thread = another;
            } catch (Throwable full) {
                // No thread can be started now. The next ID tries again.
                problem = full;
                throw none();
            }
        }
        wanted.signal();
    }

    // The thread that fetches.

    private void run() {
        Database database = databases.get();
        try {
            for (int count; (count = wanted()) > 0; ) fetch(database, count);
        } finally {
            database.close();
        }
    }

    /** Waits until IDs are wanted, and returns how many. Returns 0 when this thread has to end. */
    private int wanted() {
        long idleAt = System.nanoTime() + IDLE;
        lock.lock();
        try {
            while (!closed) {
                long now = System.nanoTime();
                boolean isDue = now - retryAt >= 0, isAhead = buffer.waited == 0;
                if (isDue && (!isAhead || runsLow)) {
                    runsLow = false;
                    int count = buffer.wanted(now);
                    // A single ID that was fetched ahead would be too old when it is used.
                    if (!isAhead || count > 1) return count;
                }
                runsLow = false;
                if (isAhead && now - idleAt >= 0) break;
                wanted.awaitNanos((isAhead ? idleAt : retryAt) - now);
            }
            thread = null;
            return 0;
        } catch (InterruptedException interrupted) {
            return 0;
        } finally {
            lock.unlock();
        }
    }

    private void fetch(Database database, int count) {
        boolean wasUsed = database.isUsed();
        long sent = System.nanoTime();
        long[] ids = null;
        Throwable thrown = null;
        try {
            ids = database.batch(layout, count);
        } catch (Throwable failure) {
            thrown = failure;
        }
        lock.lock();
        try {
            counters.merge("requests", 1L, Long::sum);
            if (thrown == null) {
                if (!closed) buffer.add(ids, sent);
                problem = null;
                isRefused = false;
                failed = 0;
            } else {
                failed(thrown, wasUsed);
            }
            buffer.wake();
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        if (thrown != null) {
            System.Logger.Level level = isRefused ? System.Logger.Level.ERROR : System.Logger.Level.WARNING;
            options.log.log(level, layout + ": IDs could not be fetched", thrown);
        }
    }

    private void failed(Throwable thrown, boolean wasUsed) {
        counters.merge("failures", 1L, Long::sum);
        problem = thrown;
        isRefused = thrown instanceof SQLException error && error.getSQLState() != null && PERMANENT.contains(error.getSQLState());
        long pause = SECOND;
        if (!isRefused) {
            long longest = Math.min(SECOND, SECOND / 10 << failed);
            pause = wasUsed && failed == 0 ? 0 : longest / 2 + ThreadLocalRandom.current().nextLong(longest);
            failed = Math.min(failed + 1, 9);
        }
        retryAt = System.nanoTime() + pause;
    }
}
