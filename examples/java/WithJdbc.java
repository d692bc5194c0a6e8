// JDBC: an ID is a long.

import java.sql.*;

class WithJdbc {
    public static void main(String[] arguments) throws SQLException {
        try (Connection db = DriverManager.getConnection(System.getenv("JDBC_URL"))) {
            db.createStatement().execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)");

            // Many rows in one statement; their IDs increase. A batch that returns keys takes a statement for each row.
            String[] items = new String[1000];
            for (int number = 0; number < 1000; number++) items[number] = "cup " + number;
            PreparedStatement insert = db.prepareStatement("INSERT INTO orders (item) SELECT unnest(?) RETURNING id");
            insert.setArray(1, db.createArrayOf("text", items));
            ResultSet keys = insert.executeQuery();
            Long[] ids = new Long[1000];
            for (int number = 0; keys.next(); number++) ids[number] = keys.getLong(1);

            PreparedStatement find = db.prepareStatement("SELECT item FROM orders WHERE id = ANY (?) ORDER BY id");
            find.setArray(1, db.createArrayOf("bigint", ids));
            ResultSet found = find.executeQuery();
            int right = 0;
            while (found.next()) if (found.getString(1).equals("cup " + right)) right++;
            System.out.println(right);

            db.createStatement().execute("SELECT flake_timestamp(-1)");
        } catch (SQLException error) {
            System.out.println(error.getSQLState() + " " + error.getMessage().split("Hint: ")[1].split("\n")[0]);
        }
    }
}
