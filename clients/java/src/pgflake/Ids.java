package pgflake;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/** IDs of flake that this process makes itself, on a worker that the database leases to it. One object is for all threads of a process,
 *  and not for a copy of its memory: create it after CRaC or SnapStart have restored the image. */
public final class Ids implements AutoCloseable {
    /** Opens a connection of its own. It is not one of a pool: it stays open as long as the Ids. */
    public interface Opening { Connection open() throws SQLException; }

    /** Takes what is worth a line of a log. The problem may be null. */
    public interface Log { void log(System.Logger.Level level, String message, Throwable problem); }

    /** What need not be given. */
    public static final class Options {
        long patience = 5_000_000;
        int bridge;
        String lease = "flake_lease", release = "flake_release";
        Log log = (level, message, problem) -> System.getLogger("pgflake").log(level, message, problem);

        /** How long an ID waits for a lease; 5 seconds by default. */
        public Options patience(java.time.Duration patience) {
            this.patience = patience.toNanos() / 1000;
            return this;
        }

        /** How many IDs the database is asked for at once while there is no lease; none by default. */
        public Options bridge(int ids) {
            bridge = ids;
            return this;
        }

        /** The functions, if they are not the extension's own. */
        public Options functions(String lease, String release) {
            this.lease = lease;
            this.release = release;
            return this;
        }

        public Options log(Log log) {
            this.log = log;
            return this;
        }
    }

    private record Made(long came, long id) {}

    /** A thread that has not been seen for so long is dead, or hangs in a driver. */
    private static final long SILENT = 10 * Window.SECOND;
    private static final Set<String> PERMANENT = Set.of("42501", "42883", "0A000", "22023", "3D000", "28000", "28P01");
    private final String layout;
    private final Supplier<Database> databases;
    private final Options options;
    private final Window window = new Window();
    // For moments only, never while the database is asked. `turn` is for those who wait: one waits for the time or an answer.
    private final ReentrantLock lock = new ReentrantLock(), turn = new ReentrantLock(true);
    private final Condition changed = lock.newCondition();
    private final Map<String, Long> counters = new TreeMap<>();
    private final ArrayDeque<Made> batch = new ArrayDeque<>();
    private Thread thread;
    private long seen;
    private boolean closed, isWaiting;
    private Throwable problem;
    private String reason;

    public Ids(String layout, String url) { this(layout, Database.opening(url, new Properties()), new Options()); }

    public Ids(String layout, String url, Properties properties, Options options) {
        this(layout, Database.opening(url, properties), options);
    }

    public Ids(String layout, Opening opening, Options options) {
        this(layout, options, () -> new Database(opening, options.lease, options.release));
    }

    Ids(String layout, Options options, Supplier<Database> databases) {
        this.layout = layout;
        this.databases = databases;
        this.options = options;
        lock.lock();
        try {
            start();
        } finally {
            lock.unlock();
        }
    }

    private static long steady() { return System.nanoTime() / 1000; }

    private static long wall() { return System.currentTimeMillis() * 1000; }

    /** An ID. Throws NoLease after the patience, Refused where waiting is of no use, Closed, and Interrupted. */
    public long next() {
        lock.lock();
        try {
            long id = take();
            if (id != Window.NONE) return id;
        } finally {
            lock.unlock();
        }
        return waited(true);
    }

    /** Waits until there is a lease, as next() does. */
    public void ready() { waited(false); }

    /** How many requests, leases, failures, restarts, IDs of the bridge, and refusals by their reason there were. */
    public Map<String, Long> counters() {
        lock.lock();
        try {
            return Map.copyOf(counters);
        } finally {
            lock.unlock();
        }
    }

    /** Releases the lease, so that another process has the worker at once. */
    @Override
    public void close() {
        lock.lock();
        try {
            closed = true;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        try {
            if (thread != null && thread != Thread.currentThread()) thread.join(5000);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    // Those who want an ID.

    private long take() {
        if (closed) throw new FlakeException.Closed();
        long now = steady();
        if (now - seen > SILENT) start();
        long id = window.id(now, Ids::wall);
        while (id == Window.NONE && !batch.isEmpty()) {
            Made made = batch.poll();
            if (now - made.came <= Window.SECOND) return made.id;
        }
        return id;
    }

    private long waited(boolean takes) {
        long deadline = steady() + options.patience;
        try {
            if (!turn.tryLock(options.patience, TimeUnit.MICROSECONDS)) throw none();
            try {
                lock.lockInterruptibly();
                try {
                    isWaiting = takes;
                    for (;;) {
                        long id = takes ? take() : window.pause(steady());
                        if (id != Window.NONE) return id;
                        changed.await(pause(deadline), TimeUnit.MICROSECONDS);
                    }
                } finally {
                    isWaiting = false;
                    lock.unlock();
                }
            } finally {
                turn.unlock();
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new FlakeException.Interrupted(interrupted);
        }
    }

    private long pause(long deadline) {
        long now = steady(), pause = window.pause(now);
        if (closed) throw new FlakeException.Closed();
        if (pause == Window.NONE) {
            if (thread == null || !thread.isAlive()) start();
            // The thread may have to get a batch sooner than it has thought.
            changed.signalAll();
            if (isPermanent(problem)) throw new FlakeException.Refused(layout + " cannot be leased: " + problem.getMessage(), problem);
        }
        if (now >= deadline) throw none();
        return Math.min(Math.min(deadline - now, Window.SECOND), pause == Window.NONE ? Window.SECOND : Math.max(50, pause));
    }

    private FlakeException.NoLease none() {
        String why = problem == null ? "no answer yet" : problem.getMessage();
        return new FlakeException.NoLease("no lease of a worker of " + layout + ": " + why, reason, problem);
    }

    private static boolean isPermanent(Throwable problem) {
        return problem instanceof FlakeException.Refused
            || problem instanceof SQLException error && error.getSQLState() != null && PERMANENT.contains(error.getSQLState());
    }

    private void start() {
        if (closed) return;
        if (thread != null) {
            count("restarts");
            log(System.Logger.Level.WARNING, "the thread that renews leases is dead or hangs; another one is started", null);
        }
        seen = steady();
        Thread another = new Thread(this::renew, "pgflake " + layout);
        another.setDaemon(true);
        thread = another;
        try {
            another.start();
        } catch (Throwable full) {
            // No thread can be started now. The next ID tries again.
            problem = full;
            thread = null;
            seen -= SILENT;
        }
    }

    // The thread that renews.

    private void renew() {
        Database database = databases.get();
        try {
            while (step(database)) {}
        } finally {
            database.close();
        }
    }

    /** Waits for what is to be done, and does it. Returns whether to go on. */
    private boolean step(Database database) {
        boolean isDue = false;
        Long token;
        lock.lock();
        try {
            while (!closed && thread == Thread.currentThread() && !(isDue = window.asks(steady(), wall())) && !hasToBridge()) {
                seen = steady();
                changed.await(Math.min(500_000, Math.max(1000, window.due - steady())), TimeUnit.MICROSECONDS);
            }
            if (thread != Thread.currentThread()) return false;
            seen = steady();
            token = window.token;
        } catch (InterruptedException interrupted) {
            return false;
        } finally {
            lock.unlock();
        }
        if (closed) {
            release(database);
            return false;
        }
        try {
            if (isDue) ask(database, token);
            else bridge(database);
        } catch (Throwable thrown) {
            failed(thrown);
            // Such as one that tells of the end of memory: this thread ends, and the next ID starts another one.
            if (thrown instanceof Error error) throw error;
        }
        return true;
    }

    private boolean hasToBridge() {
        return options.bridge > 0 && isWaiting && batch.isEmpty() && window.pause(steady()) == Window.NONE
            && problem instanceof FlakeException.NoLease;
    }

    private void ask(Database database, Long token) throws SQLException {
        long sent = steady();
        Window.Row row = database.lease(layout, token);
        long came = steady();
        lock.lock();
        try {
            if (thread != Thread.currentThread()) return;
            count("requests");
            // A renewal of a window that was given up begins when that one ends.
            boolean isOfUse = token == null ? window.token == null : token.equals(window.token);
            reason = isOfUse ? window.answered(row, sent, came, wall()) : "clock";
            count(reason == null ? "leases" : reason);
            problem = reason == null ? null : new FlakeException.NoLease(reason + ", for " + row.pause() / Window.SECOND + " s", reason, null);
            if (reason != null) window.due += ThreadLocalRandom.current().nextLong(Math.max(1, (window.due - came) / 4));
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        if (reason == null) log(System.Logger.Level.DEBUG, "worker " + row.worker() + " is leased", null);
        else log(System.Logger.Level.INFO, "there is no lease: " + reason, null);
    }

    private void bridge(Database database) throws SQLException {
        long[] made = database.batch(layout, options.bridge);
        lock.lock();
        try {
            counters.merge("bridged", (long) made.length, Long::sum);
            for (long id : made) batch.add(new Made(steady(), id));
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private void failed(Throwable thrown) {
        boolean isPermanent = isPermanent(thrown);
        lock.lock();
        try {
            if (thread != Thread.currentThread()) return;
            count("failures");
            problem = thrown;
            reason = null;
            long second = Window.SECOND;
            window.failed(steady(), isPermanent ? 30 * second : second / 2 + ThreadLocalRandom.current().nextLong(second));
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        log(isPermanent ? System.Logger.Level.ERROR : System.Logger.Level.WARNING, "a request for a lease has failed", thrown);
    }

    private void release(Database database) {
        Long token, last;
        lock.lock();
        try {
            token = window.token;
            last = window.release();
        } finally {
            lock.unlock();
        }
        try {
            if (token != null) database.release(layout, token, last);
        } catch (SQLException failed) {
            log(System.Logger.Level.INFO, "a lease could not be released", failed);
        }
    }

    private void count(String name) { counters.merge(name, 1L, Long::sum); }

    private void log(System.Logger.Level level, String message, Throwable problem) {
        options.log.log(level, layout + ": " + message, problem);
    }
}
