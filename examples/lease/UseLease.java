// An application that knows the ID of an order before it inserts the row.

import java.sql.*;
import org.postgresql.ds.PGSimpleDataSource;

class UseLease {
    public static void main(String[] arguments) throws SQLException {
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setURL(System.getenv("JDBC_URL"));
        Lease ids = new Lease("twitter", 5000, Lease.from(source));

        long order = ids.next();
        try (Connection db = source.getConnection();
             PreparedStatement insert = db.prepareStatement("INSERT INTO orders (id, item) VALUES (?, 'tea')")) {
            insert.setLong(1, order);
            insert.execute();
        }
        System.out.println(order);
    }
}
