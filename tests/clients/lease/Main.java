// Runs examples/lease/Lease.java as main.py runs lease.py.

import java.io.*;
import java.util.*;

class Main {
    static Lease.Row row(String[] fields, int from) {
        long[] n = new long[11];
        for (int i = 0; i < 11; i++) n[i] = from + i >= fields.length || fields[from + i].isEmpty() ? 0 : Long.parseLong(fields[from + i]);
        return new Lease.Row((int) n[0], n[1], n[2], (int) n[3], n[4], (int) n[5], n[6], n[7], n[8], n[9], n[10]);
    }

    static void vectors() throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        Lease.Window window = null;
        for (String line; (line = lines.readLine()) != null; System.out.println(line)) {
            String[] f = line.split(",", -1);
            String first = f.length > 2 ? f[0] + "," + f[1] + "," + f[2] + "," : "";
            switch (f[0]) {
                case "window" -> window = new Lease.Window();
                case "answered" -> window.answered(row(f, 4), Long.parseLong(f[1]), Long.parseLong(f[2]), Long.parseLong(f[3]));
                case "failed" -> window.failed(Long.parseLong(f[1]));
                case "id" -> {
                    long id = window.id(Long.parseLong(f[1]), () -> Long.parseLong(f[2]));
                    line = first + (id == -1 ? "" : id);
                }
                default -> {
                    boolean due = window.asks(Long.parseLong(f[1]), Long.parseLong(f[2]));
                    line = first + (!due ? "" : window.worker == null ? "new" : window.worker + " " + window.until);
                }
            }
        }
    }

    static void timed() {
        long now = System.currentTimeMillis() * 1000, best = Long.MAX_VALUE;
        Lease.Row row = new Lease.Row(1, now / 1000, now, 22, 1 << 21, 1 << 21, 0, 1000, now, now + 10_000_000_000L, 0);
        Lease ids = new Lease("fake", 5000, (layout, worker, until) -> row);
        for (int round = 0; round < 1000; round++) {
            long began = System.nanoTime();
            for (int n = 0; n < 10000; n++) ids.next();
            best = Math.min(best, (System.nanoTime() - began) / 10000);
        }
        System.out.println(best);
    }

    static synchronized void say(String lines) throws IOException {
        System.out.write(lines.getBytes());
        System.out.flush();
    }

    static void load() throws Exception {
        Lease ids = new Lease("twitter", 5000, (layout, worker, until) -> {
            String query = "SELECT worker, tick_from, tick_until, shift, low, count, epoch, tick, now, until, wait"
                + " FROM flake_lease('" + layout + "', " + worker + ", " + until + ")";
            Process psql = new ProcessBuilder("psql", "-XAtqc", query).redirectErrorStream(true).start();
            String answer = new String(psql.getInputStream().readAllBytes()).trim();
            if (psql.waitFor() != 0) throw new IOException(answer);
            Lease.Row row = row(answer.split("\\|", -1), 0);
            if (row.pause() == 0) say("window " + row.worker() + " " + row.tickFrom() + " " + row.tickUntil() + "\n");
            return row;
        });
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
            } catch (IllegalStateException none) {
                made.append(("none " + System.currentTimeMillis() * 1000 + " " + none.getCause()).replace('\n', ' ')).append('\n');
            }
            say(made.toString());
        }
    }

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "vectors" -> vectors();
            case "time" -> timed();
            default -> load();
        }
    }
}
