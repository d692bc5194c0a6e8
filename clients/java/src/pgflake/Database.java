package pgflake;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.util.Properties;

/** The connection that leases are asked for on: one of its own, that nobody else has to give back. A request has two seconds. One that
 *  takes longer loses the connection, because what comes later would be an answer to another question. */
class Database {
    private static final int LIMIT = 2000;
    private final Ids.Opening opening;
    private final String lease, release;
    private Connection connection;

    Database(Ids.Opening opening, String lease, String release) {
        this.opening = opening;
        this.lease = lease;
        this.release = release;
    }

    /** Opens connections with the limits that PostgreSQL's driver has for what comes before the first request. */
    static Ids.Opening opening(String url, Properties given) {
        return () -> {
            Properties properties = new Properties();
            for (String name : new String[] {"connectTimeout", "loginTimeout", "socketTimeout"}) properties.setProperty(name, "2");
            properties.setProperty("prepareThreshold", "0");
            properties.setProperty("ApplicationName", "pgflake " + ProcessHandle.current().pid());
            for (String name : given.stringPropertyNames()) properties.setProperty(name, given.getProperty(name));
            return DriverManager.getConnection(url, properties);
        };
    }

    private interface Reading<T> { T from(ResultSet rows) throws SQLException; }

    Window.Row lease(String layout, Long token) throws SQLException {
        return ask("SELECT * FROM " + lease + "(?, ?)", rows -> {
            rows.next();
            if (rows.getInt("protocol") != 1) {
                throw new FlakeException.Refused("the server speaks another protocol of leases: " + rows.getInt("protocol"), null);
            }
            return new Window.Row(rows.getString("reason"), rows.getLong("wait"), rows.getLong("token"), rows.getLong("worker"),
                rows.getLong("tick_from"), rows.getLong("tick_until"), rows.getInt("shift"), rows.getLong("low"), rows.getInt("step"),
                rows.getLong("count"), rows.getLong("epoch"), rows.getLong("tick"), rows.getLong("now"), rows.getLong("until"));
        }, layout, token);
    }

    boolean release(String layout, Long token, Long lastTick) throws SQLException {
        return ask("SELECT " + release + "(?, ?, ?)", rows -> rows.next() && rows.getBoolean(1), layout, token, lastTick);
    }

    long[] batch(String layout, int count) throws SQLException {
        return ask("SELECT flake_batch(?, ?::integer)", rows -> {
            long[] made = new long[count];
            for (int n = 0; rows.next(); n++) made[n] = rows.getLong(1);
            return made;
        }, layout, (long) count);
    }

    private <T> T ask(String query, Reading<T> reading, String layout, Long... numbers) throws SQLException {
        try {
            if (connection == null) {
                connection = opening.open();
                connection.setAutoCommit(true);
                connection.setNetworkTimeout(Runnable::run, LIMIT);
            }
            try (PreparedStatement statement = connection.prepareStatement(query)) {
                statement.setString(1, layout);
                for (int n = 0; n < numbers.length; n++) statement.setObject(n + 2, numbers[n], Types.BIGINT);
                try (ResultSet rows = statement.executeQuery()) {
                    return reading.from(rows);
                }
            }
        } catch (Throwable problem) {
            close();
            throw problem;
        }
    }

    /** Ends the connection without a wait for the server. */
    void close() {
        Connection gone = connection;
        connection = null;
        if (gone == null) return;
        try {
            gone.abort(Runnable::run);
        } catch (SQLException closed) {
            // It is of no use any more.
        }
    }
}
