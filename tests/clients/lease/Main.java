// Runs the package of Java as main.py runs the one of Python.
package pgflake;

import java.io.*;
import java.time.Duration;
import java.util.*;

class Main {
    static Window.Row row(String[] fields, int from) {
        long[] n = new long[14];
        for (int i = 1; i < 14; i++) n[i] = from + i >= fields.length || fields[from + i].isEmpty() ? 0 : Long.parseLong(fields[from + i]);
        return new Window.Row(fields[from].isEmpty() ? null : fields[from], n[1], n[2], n[3], n[4], n[5], (int) n[6], n[7], (int) n[8],
            n[9], n[10], n[11], n[12], n[13]);
    }

    static void vectors() throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        Window window = null;
        for (String line; (line = lines.readLine()) != null; System.out.println(line)) {
            String[] f = line.split(",", -1);
            String first = f.length > 2 ? f[0] + "," + f[1] + "," + f[2] + "," : "";
            switch (f[0]) {
                case "window" -> window = new Window();
                case "answered" -> window.answered(row(f, 4), Long.parseLong(f[1]), Long.parseLong(f[2]), Long.parseLong(f[3]));
                case "failed" -> window.failed(Long.parseLong(f[1]), Long.parseLong(f[2]));
                case "release" -> {
                    Long token = window.token, last = window.release();
                    line = "release," + (token == null ? "" : token) + "," + (last == null ? "" : last);
                }
                case "id" -> {
                    long id = window.id(Long.parseLong(f[1]), () -> Long.parseLong(f[2]));
                    line = first + (id == Window.NONE ? "" : id);
                }
                default -> {
                    boolean due = window.asks(Long.parseLong(f[1]), Long.parseLong(f[2]));
                    line = first + (!due ? "" : window.token == null ? "new" : window.token);
                }
            }
        }
    }

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

    /** A database that is none. */
    abstract static class Lessor extends Database {
        Lessor() { super(null, "", ""); }

        @Override
        abstract Window.Row lease(String layout, Long token);
    }

    static void timed() {
        long now = System.currentTimeMillis() * 1000, best = Long.MAX_VALUE;
        var row = new Window.Row(null, 0, 1, 1, now / 1000, now, 22, 1 << 21, 0, 1 << 21, 0, 1000, now, now + 10_000_000_000L);
        Ids ids = new Ids("fake", new Ids.Options(), () -> new Lessor() {
            @Override
            Window.Row lease(String layout, Long token) { return row; }
        });
        for (int round = 0; round < 1000; round++) {
            long began = System.nanoTime();
            for (int n = 0; n < 10000; n++) ids.next();
            best = Math.min(best, (System.nanoTime() - began) / 10000);
        }
        System.out.println(best);
    }

    static synchronized void say(String lines) {
        System.out.writeBytes(lines.getBytes());
        System.out.flush();
    }

    static class Psql extends Lessor {
        @Override
        Window.Row lease(String layout, Long token) {
            try {
                String query = "SELECT reason, wait, token, worker, tick_from, tick_until, shift, low, step, count, epoch, tick, now, until"
                    + " FROM flake_lease('" + layout + "', " + token + "::bigint)";
                Process psql = new ProcessBuilder("psql", "-XAtqc", query).redirectErrorStream(true).start();
                String answer = new String(psql.getInputStream().readAllBytes()).trim();
                if (psql.waitFor() != 0) throw new IllegalStateException(answer);
                Window.Row row = row(answer.split("\\|", -1), 0);
                if (row.reason() == null) say("window " + row.low() + " " + row.tickFrom() + " " + row.tickUntil() + " " + row.count() + "\n");
                return row;
            } catch (IOException | InterruptedException problem) {
                throw new IllegalStateException(problem);
            }
        }
    }

    static void load() throws Exception {
        Ids ids = new Ids("twitter", new Ids.Options().patience(Duration.ofSeconds(5)), Psql::new);
        Thread end = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (IOException ended) {
                // The process is ending anyway.
            }
            Runtime.getRuntime().halt(0);
        });
        end.start();
        for (;; Thread.sleep(20)) {
            StringBuilder made = new StringBuilder();
            try {
                for (int n = 0; n < 10; n++) made.append(ids.next()).append('\n');
            } catch (FlakeException.NoLease none) {
                made.append(("none " + System.currentTimeMillis() * 1000 + " " + none.getCause()).replace('\n', ' ')).append('\n');
            }
            say(made.toString());
        }
    }

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "vectors" -> vectors();
            case "seal" -> seal();
            case "time" -> timed();
            default -> load();
        }
    }
}
