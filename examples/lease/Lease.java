import java.sql.*;
import java.util.Objects;
import java.util.function.LongSupplier;
import javax.sql.DataSource;

/** IDs of flake that this process makes itself, on a worker number that the database leases to it. docs/how-to/applications.md says
 *  when to use it. One object is for all threads of a process, and not for a copy of its memory such as a CRaC or SnapStart image. */
public class Lease {
    /** An answer. Where pause is not 0, the other columns are NULL, and 0 here. */
    public record Row(int worker, long tickFrom, long tickUntil, int shift, long low, int count, long epoch, long tick,
                      long now, long until, long pause) {}

    /** Asks the database. The worker and the end of a window that is to be continued, or twice null for another worker. */
    public interface Asks { Row lease(String layout, Integer worker, Long until) throws Exception; }

    public static Asks from(DataSource source) {
        return (layout, worker, until) -> {
            try (Connection db = source.getConnection();
                 PreparedStatement ask = db.prepareStatement("SELECT * FROM flake_lease(?, ?, ?)")) {
                ask.setString(1, layout);
                ask.setObject(2, worker, Types.INTEGER);
                ask.setObject(3, until, Types.BIGINT);
                ResultSet row = ask.executeQuery();
                row.next();
                return new Row(row.getInt("worker"), row.getLong("tick_from"), row.getLong("tick_until"), row.getInt("shift"),
                    row.getLong("low"), row.getInt("count"), row.getLong("epoch"), row.getLong("tick"), row.getLong("now"),
                    row.getLong("until"), row.getLong("wait"));
            }
        };
    }

    /** What the server has granted, and how much of it is used. Instants are microseconds, of the steady and of the wall clock. */
    public static class Window {
        private static final long SECOND = 1_000_000;
        private Row row;
        private long came, wall, due = Long.MIN_VALUE, lastTick, lastN;
        public Integer worker;
        public Long until;

        /** The next ID, or -1 if there is none now. */
        public long id(long steady, LongSupplier clock) {
            if (row == null) return -1;
            // The server's clock was read before its answer came, so this never runs ahead of it. A tick never falls.
            long tick = (row.now + steady - came - row.epoch) / row.tick, n = 0;
            if (tick <= lastTick) {
                tick = lastTick;
                n = lastN + 1;
            } else if (parted(steady, clock.getAsLong())) {
                return -1;
            }
            long id = tick << row.shift | row.low + n;
            // Whatever happened meanwhile, an ID of this window belongs to nobody else.
            long of = id >>> row.shift;
            if (n >= row.count || of < row.tickFrom || of >= row.tickUntil) return -1;
            lastTick = tick;
            lastN = n;
            return id;
        }

        /** Whether the lease is to be renewed now: for this worker until this instant. */
        public boolean asks(long steady, long wall) {
            parted(steady, wall);
            return steady >= due;
        }

        /** Returns the reason if the answer grants no lease, else null. */
        public Exception answered(Row answer, long sent, long arrived, long clock) {
            if (answer.pause > 0) {
                due = arrived + Math.min(5 * SECOND, answer.pause);
                return new IllegalStateException("the database grants none for " + answer.pause / 1e6 + " s");
            }
            if (arrived - sent > 2 * SECOND) {
                // The process may have stood still: what the answer says of the clock is old.
                failed(arrived);
                return new IllegalStateException("the answer took more than 2 s");
            }
            boolean continues = row != null && row.worker == answer.worker && row.tickUntil == answer.tickFrom;
            row = !continues ? answer : new Row(answer.worker, row.tickFrom, answer.tickUntil, answer.shift, answer.low,
                answer.count, answer.epoch, answer.tick, answer.now, answer.until, 0);
            // The server's clock was ahead, and is corrected. Nobody has used a tick of this window.
            if (row.tickUntil <= lastTick) lastTick = 0;
            ask(answer.worker, answer.until, sent + Math.min(5 * SECOND, (answer.until - answer.now) / 2));
            came = arrived;
            wall = clock;
            return null;
        }

        /** An answer that was lost may have been a renewal, which nobody can continue then. */
        public void failed(long steady) { ask(null, null, steady + SECOND); }

        private void ask(Integer worker, Long until, long due) {
            this.worker = worker;
            this.until = until;
            this.due = due;
        }

        /** Whether the machine was suspended since the answer, or a clock was set. */
        private boolean parted(long steady, long clock) {
            if (row == null || Math.abs((clock - wall) - (steady - came)) <= SECOND) return false;
            row = null;
            ask(null, null, steady);
            return true;
        }
    }

    private final Window window = new Window();
    private final long patience;
    private volatile Exception problem;

    /** Begins to ask for a lease, and renews it until the end of the process. next() waits for it some milliseconds at most. */
    public Lease(String layout, long patience, Asks asks) {
        this.patience = patience;
        Thread renewing = new Thread(() -> { while (true) renew(layout, asks); });
        renewing.setDaemon(true);
        renewing.start();
    }

    private static long steady() { return System.nanoTime() / 1000; }

    private static long wall() { return System.currentTimeMillis() * 1000; }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(interrupted);
        }
    }

    private void renew(String layout, Asks asks) {
        Integer worker;
        Long until;
        boolean due;
        synchronized (window) {
            due = window.asks(steady(), wall());
            worker = window.worker;
            until = window.until;
        }
        if (due) {
            long sent = steady();
            try {
                Row row = asks.lease(layout, worker, until);
                long came = steady();
                synchronized (window) {
                    // A renewal of a window that was given up begins when that one ends.
                    boolean isOfUse = Objects.equals(until, window.until);
                    problem = isOfUse ? window.answered(row, sent, came, wall()) : new IllegalStateException("a clock was set");
                }
            } catch (Exception exception) {
                problem = exception;
                synchronized (window) { window.failed(steady()); }
            }
        }
        sleep(50);
    }

    public long next() {
        for (long began = 0; ; sleep(1)) {
            long now, id;
            synchronized (window) { id = window.id(now = steady(), Lease::wall); }
            if (id != -1) return id;
            if (began == 0) began = now;
            if (now - began > patience * 1000) throw new IllegalStateException("no lease of a worker number", problem);
        }
    }
}
