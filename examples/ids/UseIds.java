// An application that knows the ID of an order before it inserts the row.

import java.sql.*;
import flakeids.Ids;

class UseIds {
    public static void main(String[] arguments) throws SQLException {
        String url = System.getenv("JDBC_URL");
        try (Ids ids = new Ids("twitter", url); Connection db = DriverManager.getConnection(url)) {
            long order = ids.next();
            try (PreparedStatement insert = db.prepareStatement("INSERT INTO orders (id, item) VALUES (?, 'tea')")) {
                insert.setLong(1, order);
                insert.execute();
            }
            System.out.println(order);
        }
    }
}
