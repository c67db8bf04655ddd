import java.net.URI;
import java.sql.Array;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/** A connection to a plain table, straight, and one to its twin with offloaded columns. */
final class Pair implements AutoCloseable {
    private static final String TABLES =
            "create table documents (id int primary key, body text, note varchar(3000), data jsonb,"
                    + " verbatim json, raw bytea, small text)";
    private static final String MOVED =
            "alter table jdbc_twin.documents alter body type toastrack.text,"
                    + " alter note type toastrack.varchar(3000), alter data type toastrack.jsonb,"
                    + " alter verbatim type toastrack.json, alter raw type toastrack.bytea";
    /** Column, start and length of a reference as the column's type prints it. */
    private static final Map<String, String> REFERENCES =
            Map.of("body", "toast:", "note", "toast:", "data", "\"toast:", "verbatim", "\"toast:",
                    "raw", "\\xf7544f4153540d0a");
    private static final Map<String, Integer> LENGTHS =
            Map.of("body", 62, "note", 62, "data", 64, "verbatim", 64, "raw", 2 + 2 * 50);

    private final String properties;
    private final Connection direct;
    private Connection plain;
    private Connection twin;

    /** What is done on both sides; what it returns is compared as text. */
    interface Action {
        Object on(Connection connection) throws Exception;
    }

    private Pair(String properties) throws SQLException {
        this.properties = properties;
        this.direct = DriverManager.getConnection(url("DIRECT_URL", "", ""));
    }

    static Pair open(String properties) throws SQLException {
        Pair pair = new Pair(properties);
        try (Statement statement = pair.direct.createStatement()) {
            for (String schema : List.of("jdbc_plain", "jdbc_twin")) {
                statement.execute("drop schema if exists " + schema + " cascade; create schema " + schema
                        + "; set search_path = " + schema + "; " + TABLES);
            }
            statement.execute(MOVED);
        }
        pair.connect();
        return pair;
    }

    String plainUrl() {
        return url("DIRECT_URL", "jdbc_plain", properties);
    }

    String twinUrl() {
        return url("TOASTRACK_URL", "jdbc_twin", properties);
    }

    private static String url(String name, String schema, String properties) {
        String value = System.getenv(name);
        if (value == null) {
            throw new IllegalStateException(name + " is not set: run this through scripts/with-servers.sh");
        }
        URI uri = URI.create(value);
        return "jdbc:postgresql://" + uri.getHost() + ":" + uri.getPort() + uri.getPath() + "?user="
                + uri.getUserInfo().split(":")[0] + "&currentSchema=" + schema + "&" + properties;
    }

    private void connect() throws SQLException {
        plain = DriverManager.getConnection(plainUrl());
        twin = DriverManager.getConnection(twinUrl());
    }

    /** New connections, after a test left the old ones in an unknown state. */
    void reconnect() throws SQLException {
        plain.close();
        twin.close();
        connect();
    }

    void clear() throws Exception {
        same(connection -> connection.createStatement().executeUpdate("truncate documents"));
    }

    /** Does the same on both sides, checks that the outcome is the same, and returns it. */
    String same(Action action) throws Exception {
        String left = outcome(action, plain);
        String right = outcome(action, twin);
        if (!left.equals(right)) {
            int at = 0;
            while (at < Math.min(left.length(), right.length()) && left.charAt(at) == right.charAt(at)) {
                at++;
            }
            throw new AssertionError("differ at " + at + "\n plain: " + around(left, at) + "\n  twin: " + around(right, at));
        }
        return left;
    }

    /** The same, where Postgres refuses it with this SQLSTATE. */
    void refused(String state, Action action) throws Exception {
        String seen = same(action);
        Suite.check(seen.startsWith("error " + state), seen.substring(0, Math.min(200, seen.length())));
    }

    /** The same, where it must work. */
    String works(Action action) throws Exception {
        String seen = same(action);
        Suite.check(!seen.startsWith("error "), seen.substring(0, Math.min(300, seen.length())));
        return seen;
    }

    private static String around(String text, int at) {
        return text.substring(Math.max(0, at - 60), Math.min(text.length(), at + 200));
    }

    private static String outcome(Action action, Connection connection) throws Exception {
        try {
            return show(action.on(connection));
        } catch (SQLException error) {
            String message = error.getMessage();
            // The detail of a constraint may show the row, see docs/semantics.md.
            return "error " + error.getSQLState() + " " + message.split("\n")[0];
        }
    }

    /** A value with its Java type, whatever it holds. */
    static String show(Object value) throws SQLException {
        if (value instanceof byte[] bytes) {
            return "bytes " + HexFormat.of().formatHex(bytes);
        }
        if (value instanceof ResultSet rows) {
            return rows(rows);
        }
        if (value instanceof Array array) {
            return array.getBaseTypeName() + "[] " + show(array.getArray());
        }
        if (value instanceof int[] counts) {
            return Arrays.toString(counts);
        }
        if (value instanceof Object[] items) {
            return show(Arrays.asList(items));
        }
        if (value instanceof List<?> items) {
            StringBuilder text = new StringBuilder("[");
            for (Object item : items) {
                text.append(show(item)).append(", ");
            }
            return text.append("]").toString();
        }
        return value == null ? "null" : value.getClass().getSimpleName() + " " + value;
    }

    /** Columns and rows: types as JDBC and as Postgres name them, each value as object and as text. */
    private static String rows(ResultSet rows) throws SQLException {
        ResultSetMetaData columns = rows.getMetaData();
        StringBuilder text = new StringBuilder();
        for (int n = 1; n <= columns.getColumnCount(); n++) {
            text.append(columns.getColumnLabel(n)).append(' ').append(columns.getColumnTypeName(n)).append(' ')
                    .append(columns.getColumnType(n)).append(' ').append(columns.getPrecision(n)).append(' ')
                    .append(columns.getColumnClassName(n)).append('\n');
        }
        while (rows.next()) {
            List<Object> values = new ArrayList<>();
            for (int n = 1; n <= columns.getColumnCount(); n++) {
                Object value = rows.getObject(n);
                values.add(value);
                // Of a bytea in binary format this driver's getString is the name of the array.
                values.add(value instanceof byte[] ? rows.getBytes(n) : rows.getString(n));
            }
            text.append(show(values)).append('\n');
        }
        return text.toString();
    }

    /** Checks that a column of the twin holds references only, each at most 64 bytes long. */
    void assertOffloaded(String column, int expected) throws SQLException {
        int seen = 0;
        try (Statement statement = direct.createStatement();
                ResultSet rows = statement.executeQuery("select " + column + " from jdbc_twin.documents")) {
            while (rows.next()) {
                String stored = rows.getString(1);
                Suite.check(stored.startsWith(REFERENCES.get(column)) && stored.length() == LENGTHS.get(column),
                        column + " holds " + stored.substring(0, Math.min(80, stored.length())));
                seen++;
            }
        }
        Suite.check(seen == expected, column + ": " + seen + " rows");
    }

    @Override
    public void close() throws SQLException {
        plain.close();
        twin.close();
        direct.close();
    }
}
