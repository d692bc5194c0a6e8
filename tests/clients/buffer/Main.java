// Runs the package of Java as main.py runs the one of Python. `pool` uses a pool of one connection.
package flakeids;

import java.io.*;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;
import javax.sql.DataSource;

class Main {
    static void seal() {
        for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); ) {
            String[] line = lines.nextLine().split(",", -1);
            Key key = new Key("usr", HexFormat.of().parseHex(line[0]));
            UUID block = line[1].isEmpty() ? UUID.fromString(line[2]) : key.sealUuid(Long.parseLong(line[1]));
            try {
                long opened = key.unsealUuid(block);
                String text = key.seal(opened);
                if (key.unseal(text) != opened) throw new IllegalStateException(text);
                System.out.println(String.join(",", line[0], Long.toString(opened), block.toString(), text.substring(4)));
            } catch (FlakeException.InvalidID none) {
                System.out.println(String.join(",", line[0], "", block.toString(), ""));
            }
        }
    }

    static void unseal() {
        for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); ) {
            String[] line = lines.nextLine().split(",", -1);
            Key key = new Key("usr", HexFormat.of().parseHex(line[0]));
            try {
                System.out.println(key.unseal(new String(HexFormat.of().parseHex(line[1]), StandardCharsets.UTF_8)));
            } catch (RuntimeException error) {
                System.out.println(error.getClass().getSimpleName());
            }
        }
    }

    static void timed() {
        Ids.Options options = new Ids.Options().maxAge(Duration.ofHours(1)).most(2_000_000);
        Ids ids = new Ids("fake", () -> new Database(null, false) {
            @Override
            long[] batch(String layout, int count) { return new long[count]; }
        }, options);
        ids.take(2_000_000);
        long best = Long.MAX_VALUE;
        for (int round = 0; round < 1000; round++) {
            ids.next();
            long began = System.nanoTime();
            for (int n = 0; n < 1000; n++) ids.next();
            best = Math.min(best, (System.nanoTime() - began) / 1000);
        }
        System.out.println(best);
    }

    static final String URL = System.getenv("JDBC_URL");
    static long longest;

    static Ids.Options options() {
        var environment = System.getenv();
        String age = environment.getOrDefault("MAX_AGE", "1");
        return new Ids.Options().most(Integer.parseInt(environment.getOrDefault("MOST", "10000")))
            .maxAge(age.isEmpty() ? null : seconds(age)).patience(seconds(environment.getOrDefault("PATIENCE", "5")))
            .log((level, message, problem) -> { });
    }

    static Ids ids() {
        return new Ids("twitter", () -> new Database(Database.opening(URL, new Properties()), false) {
            @Override
            long[] batch(String layout, int count) throws SQLException {
                long began = System.nanoTime();
                try {
                    return super.batch(layout, count);
                } finally {
                    longest = Math.max(longest, (System.nanoTime() - began) / 1000);
                }
            }
        }, options());
    }

    static Duration seconds(String text) { return Duration.ofNanos((long) (Double.parseDouble(text) * 1e9)); }

    static void many() throws InterruptedException {
        PrintStream out = new PrintStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 20));
        try (Ids ids = new Ids("twitter", URL, new Properties(), options())) {
            List<Thread> threads = new ArrayList<>();
            for (int n = 0; n < 8; n++) {
                threads.add(new Thread(() -> {
                    StringBuilder made = new StringBuilder();
                    for (long id : LongStream.generate(ids).limit(125_000).toArray()) made.append(id).append('\n');
                    synchronized (out) { out.print(made); }
                }));
            }
            for (Thread thread : threads) thread.start();
            for (Thread thread : threads) thread.join();
        }
        out.flush();
    }

    /** A pool that has one connection, in no transaction, with a time limit of its own. Prints how often it was taken, whether it was left as
     *  it was, and how many IDs there were. */
    static void pool() throws SQLException {
        Connection real = DriverManager.getConnection(URL);
        AtomicInteger taken = new AtomicInteger(), given = new AtomicInteger();
        real.setAutoCommit(false);
        real.setNetworkTimeout(Runnable::run, 77_000);
        Connection pooled = (Connection) Proxy.newProxyInstance(Main.class.getClassLoader(), new Class<?>[] {Connection.class}, (self, method, with) -> {
            if (!method.getName().equals("close")) return method.invoke(real, with);
            given.incrementAndGet();
            return null;
        });
        DataSource pool = (DataSource) Proxy.newProxyInstance(Main.class.getClassLoader(), new Class<?>[] {DataSource.class}, (self, method, with) -> {
            taken.incrementAndGet();
            return pooled;
        });
        Ids ids = new Ids("twitter", pool, new Ids.Options());
        long count = LongStream.concat(Arrays.stream(ids.take(100)), Arrays.stream(ids.take(100))).distinct().count();
        ids.close();
        boolean isSame = !real.getAutoCommit() && real.getNetworkTimeout() == 77_000 && taken.get() == given.get();
        System.out.println(List.of(count, taken.get() >= 2, isSame, ids.counters().get("failures") == null));
    }

    static String state(Throwable problem) {
        String state = problem.getCause() instanceof SQLException error ? error.getSQLState() : null;
        // The driver has states of its own where the server did not say anything.
        return state == null || state.startsWith("08") ? "-" : state;
    }

    static void act(Ids ids, String[] words) throws InterruptedException {
        int count = words.length > 1 ? Integer.parseInt(words[1]) : 1;
        switch (words[0]) {
            case "longest" -> System.out.println("longest " + longest);
            case "close" -> ids.close();
            case "try" -> System.out.println(Objects.requireNonNullElse((Object) ids.tryNext(), "none"));
            case "take" -> { for (long id : ids.take(count)) System.out.println(id); }
            default -> {
                for (int n = 0; n < count; n++) {
                    long before = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
                    System.out.println(ids.next() + " " + before);
                    if (words.length > 2) Thread.sleep(Long.parseLong(words[2]));
                }
            }
        }
    }

    static void talk() throws IOException, InterruptedException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        Ids ids = ids();
        for (String line; (line = lines.readLine()) != null; ) {
            try {
                act(ids, line.split(" "));
            } catch (FlakeException problem) {
                System.out.println("error " + problem.getClass().getSimpleName() + " " + state(problem));
            }
            System.out.println("done");
        }
    }

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "seal" -> seal();
            case "unseal" -> unseal();
            case "time" -> timed();
            case "many" -> many();
            case "pool" -> pool();
            default -> talk();
        }
    }
}
