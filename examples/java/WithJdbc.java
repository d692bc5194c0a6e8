// JDBC: an ID is a long.

import java.sql.*;

class WithJdbc {
    public static void main(String[] arguments) throws SQLException {
        // Rows of a batch go to the server in a few statements.
        String url = System.getenv("JDBC_URL") + "&reWriteBatchedInserts=true";
        try (Connection db = DriverManager.getConnection(url)) {
            db.createStatement().execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)");

            // Many rows; each has the key of its place.
            PreparedStatement insert = db.prepareStatement("INSERT INTO orders (item) VALUES (?)", new String[] {"id"});
            for (int number = 0; number < 1000; number++) {
                insert.setString(1, "cup " + number);
                insert.addBatch();
            }
            insert.executeBatch();
            ResultSet keys = insert.getGeneratedKeys();
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
