package flakeids;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Properties;

/** Where IDs come from: a connection of its own, or one of a pool for the time of a request. A request has two seconds. One that takes
 *  longer loses its connection, because what comes later would be an answer to another question. */
class Database {
    private static final int LIMIT = 2000;
    private final Ids.Opening opening;
    private final boolean isPool;
    private Connection connection;

    Database(Ids.Opening opening, boolean isPool) {
        this.opening = opening;
        this.isPool = isPool;
    }

    /** Opens connections with the limits that PostgreSQL's driver has for what comes before the first request. */
    static Ids.Opening opening(String url, Properties given) {
        return () -> {
            Properties properties = new Properties();
            for (String name : new String[] {"connectTimeout", "loginTimeout", "socketTimeout"}) properties.setProperty(name, "2");
            // A pool in transaction mode would lose a statement that is prepared.
            properties.setProperty("prepareThreshold", "0");
            properties.setProperty("ApplicationName", "flake-ids " + ProcessHandle.current().pid());
            for (String name : given.stringPropertyNames()) properties.setProperty(name, given.getProperty(name));
            return DriverManager.getConnection(url, properties);
        };
    }

    /** Whether the next request is on a connection that was there before. The server may have ended it meanwhile. */
    boolean isUsed() { return isPool || connection != null; }

    long[] batch(String layout, int count) throws SQLException {
        try {
            if (connection == null) connection = opening.open();
            boolean commits = connection.getAutoCommit();
            int limit = connection.getNetworkTimeout();
            if (!commits) connection.setAutoCommit(true);
            connection.setNetworkTimeout(Runnable::run, LIMIT);
            long[] ids = asked(layout, count);
            if (isPool) {
                connection.setNetworkTimeout(Runnable::run, limit);
                if (!commits) connection.setAutoCommit(false);
                connection.close();
                connection = null;
            }
            return ids;
        } catch (Throwable problem) {
            close();
            throw problem;
        }
    }

    private long[] asked(String layout, int count) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT flake_batch(?, ?)")) {
            statement.setString(1, layout);
            statement.setInt(2, count);
            try (ResultSet rows = statement.executeQuery()) {
                long[] ids = new long[count];
                int n = 0;
                for (; rows.next(); n++) if (n < count) ids[n] = rows.getLong(1);
                if (n != count) throw new SQLException("flake_batch has returned " + n + " IDs instead of " + count);
                return ids;
            }
        }
    }

    /** Ends the connection without a wait for the server. */
    void close() {
        Connection gone = connection;
        connection = null;
        if (gone == null) return;
        try {
            gone.abort(Runnable::run);
            gone.close();
        } catch (SQLException closed) {
            // It is of no use any more.
        }
    }
}
