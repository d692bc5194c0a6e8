import java.sql.*;
import java.util.*;
import java.util.stream.*;

/** Reports what JDBC does with IDs, as a line of JSON. It is called with IDs as texts. */
class JdbcProbe {
    static Connection db;

    static ResultSet row(String query, Object... parameters) throws SQLException {
        PreparedStatement statement = db.prepareStatement(query);
        for (int n = 0; n < parameters.length; n++) statement.setObject(n + 1, parameters[n]);
        ResultSet row = statement.executeQuery();
        row.next();
        return row;
    }

    static String quoted(Object value) {
        return value == null ? "null" : "\"" + value + "\"";
    }

    static String kept(Long id, Long other) throws SQLException {
        Array many = db.createArrayOf("bigint", new Long[] {id, other});
        ResultSet row = row("INSERT INTO kept (id, many) VALUES (?, ?) RETURNING id, many", id, many);
        Long[] back = (Long[]) row.getArray(2).getArray();
        String array = Arrays.stream(back).map(JdbcProbe::quoted).collect(Collectors.joining(","));
        long found = row("SELECT count(*) FROM kept WHERE id = ?", row.getLong(1)).getLong(1);
        return "[" + quoted(row.getObject(1)) + ",[" + array + "]," + found + "]";
    }

    public static void main(String[] arguments) throws SQLException {
        db = DriverManager.getConnection(System.getenv("JDBC_URL"));
        List<String> kept = new ArrayList<>(), read = new ArrayList<>(), written = new ArrayList<>();
        for (int n = 1; n < arguments.length; n++) {
            long id = Long.parseLong(arguments[n]);
            kept.add(kept(id, id));
            // A document is a text for JDBC.
            String document = row("SELECT jsonb_build_object('id', ?::bigint)", id).getString(1);
            read.add(quoted(Long.parseLong(document.replaceAll("[^-0-9]", ""))));
            written.add(quoted(row("SELECT ?::jsonb ->> 'id'", "{\"id\":" + id + "}").getString(1)));
        }
        String hole = kept(42L, null);
        PreparedStatement insertNull = db.prepareStatement("INSERT INTO kept (id) VALUES (?) RETURNING id");
        insertNull.setNull(1, Types.BIGINT);
        ResultSet empty = insertNull.executeQuery();
        empty.next();
        ResultSet made = row("INSERT INTO made DEFAULT VALUES RETURNING id");
        long found = row("SELECT count(*) FROM made WHERE id = ?", made.getLong(1)).getLong(1);
        String error = "";
        try {
            row("SELECT flake_timestamp(?)", -1L);
        } catch (SQLException raised) {
            error = quoted(raised.getClass().getSimpleName()) + "," + quoted(raised.getSQLState());
        }
        System.out.println(
            "{\"kept\":" + kept + ",\"hole\":" + hole + ",\"null\":" + quoted(empty.getObject(1)) + ",\"read\":" + read + ",\"written\":"
                + written + ",\"made\":[" + quoted(made.getObject(1)) + "," + found + "],\"error\":[" + error + "],\"many\":null}");
    }
}
