import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Batches, generated keys, updatable results, upserts, and SQL that computes with large values. */
final class Statements {
    static final String INSERT = "insert into documents (id, body, data, raw) values (?, ?, ?::jsonb, ?)";

    private Statements() {}

    static void addTo(Map<String, Suite.Test> tests, Pair pair) {
        tests.put("batches", () -> batches(pair));
        tests.put("a batch with an error", () -> failingBatch(pair));
        tests.put("batches of several statements", () -> mixedBatch(pair));
        tests.put("generated keys", () -> generatedKeys(pair));
        tests.put("an updatable result", () -> updatable(pair));
        tests.put("upserts", () -> upserts(pair));
        tests.put("reads", () -> reads(pair));
        tests.put("several results of one statement", () -> severalResults(pair));
    }

    /** Rows with large, small and null values. */
    static int[] fill(Connection connection, int rows) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement(INSERT)) {
            for (int n = 0; n < rows; n++) {
                bind(insert, n);
                insert.addBatch();
            }
            return insert.executeBatch();
        }
    }

    static void bind(PreparedStatement insert, int n) throws SQLException {
        insert.setInt(1, n);
        insert.setString(2, n % 3 == 0 ? "small " + n : n + " " + Suite.BODY);
        insert.setString(3, n % 4 == 0 ? null : Suite.DATA);
        insert.setBytes(4, n % 5 == 0 ? null : Suite.RAW);
    }

    static ResultSet all(Connection connection) throws SQLException {
        return connection.createStatement().executeQuery("select * from documents order by id");
    }

    private static void batches(Pair pair) throws Exception {
        pair.works(connection -> fill(connection, 300));
        pair.works(Statements::all);
        pair.works(connection -> {
            connection.setAutoCommit(false);
            List<Object> seen = new ArrayList<>();
            try (PreparedStatement update = connection.prepareStatement("update documents set body = ?, small = ? where id = ?")) {
                for (int n = 0; n < 40; n++) {
                    update.setString(1, n + Suite.LARGE);
                    update.setString(2, n + Suite.LARGE);
                    update.setInt(3, n);
                    update.addBatch();
                }
                seen.add(update.executeBatch());
            }
            connection.commit();
            connection.setAutoCommit(true);
            return seen;
        });
        pair.works(Statements::all);
    }

    private static void failingBatch(Pair pair) throws Exception {
        pair.works(connection -> {
            try (PreparedStatement insert = connection.prepareStatement(INSERT)) {
                for (int n : new int[] {1, 2, 3, 2, 4}) {
                    bind(insert, n);
                    insert.addBatch();
                }
                return insert.executeBatch();
            } catch (BatchUpdateException error) {
                return List.of(error.getSQLState(), Arrays.toString(error.getUpdateCounts()));
            }
        });
        pair.works(Statements::all);
    }

    private static void mixedBatch(Pair pair) throws Exception {
        pair.works(connection -> {
            String literal = Suite.BODY.replace("'", "''");
            try (Statement statement = connection.createStatement()) {
                for (int n = 0; n < 5; n++) {
                    statement.addBatch("insert into documents (id, body) values (" + n + ", '" + literal + "')");
                    statement.addBatch("update documents set small = body, note = left(body, 2900) where id = " + n);
                }
                statement.addBatch("delete from documents where id = 3");
                return statement.executeBatch();
            }
        });
        pair.works(Statements::all);
    }

    private static void generatedKeys(Pair pair) throws Exception {
        pair.works(connection -> {
            List<Object> seen = new ArrayList<>();
            try (PreparedStatement insert = connection.prepareStatement(INSERT, new String[] {"id", "body", "data"});
                    PreparedStatement all = connection.prepareStatement(INSERT, Statement.RETURN_GENERATED_KEYS)) {
                for (int n = 0; n < 8; n++) {
                    bind(insert, n);
                    seen.add(insert.executeUpdate());
                    seen.add(Pair.show(insert.getGeneratedKeys()));
                    bind(all, 100 + n);
                    all.addBatch();
                }
                seen.add(all.executeBatch());
                seen.add(Pair.show(all.getGeneratedKeys()));
            }
            return seen;
        });
    }

    /** The driver reads the table's primary key, and writes its own UPDATE and INSERT. */
    private static void updatable(Pair pair) throws Exception {
        pair.works(connection -> fill(connection, 8));
        pair.works(connection -> {
            List<Object> seen = new ArrayList<>();
            try (Statement statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
                    ResultSet rows = statement.executeQuery("select id, body, raw, small from documents order by id")) {
                rows.absolute(3);
                rows.updateString("body", Suite.LARGE);
                rows.updateBytes("raw", Suite.RAW);
                rows.updateRow();
                seen.add(rows.getString("body"));
                rows.refreshRow();
                seen.add(rows.getString("body"));
                seen.add(rows.getBytes("raw"));
                rows.moveToInsertRow();
                rows.updateInt("id", 50);
                rows.updateString("body", Suite.BODY);
                rows.insertRow();
                rows.last();
                rows.previous();
                rows.deleteRow();
            }
            seen.add(Pair.show(all(connection)));
            return seen;
        });
    }

    private static void upserts(Pair pair) throws Exception {
        for (String body : new String[] {Suite.BODY, Suite.LARGE, "short", null, Suite.BODY}) {
            pair.works(connection -> {
                try (PreparedStatement upsert = connection.prepareStatement(
                        "insert into documents (id, body) values (1, ?) on conflict (id) do update set body = excluded.body,"
                                + " small = documents.body returning *")) {
                    upsert.setString(1, body);
                    return Pair.show(upsert.executeQuery());
                }
            });
        }
    }

    private static void reads(Pair pair) throws Exception {
        pair.works(connection -> fill(connection, 12));
        for (String sql : List.of(
                "select id, length(body), upper(left(body, 20)), md5(body), octet_length(raw) from documents order by id",
                "select id, data->>'title', data->'items'->0, data || '{\"z\": 1}' from documents order by id",
                "select distinct body from documents order by body",
                "select body, count(*) from documents group by body order by body",
                "select coalesce(body, small), case when id > 3 then body else note end from documents order by id",
                "select a.id, b.id from documents a join documents b on a.body = b.body order by 1, 2",
                "select id from documents where body like '%fox%' order by id",
                "select body from documents union select small from documents order by 1 nulls last",
                "with big as (select id, body from documents where length(body) > 100) select * from big order by id")) {
            for (int n = 0; n < 7; n++) {
                pair.works(connection -> {
                    try (PreparedStatement statement = connection.prepareStatement(sql)) {
                        return Pair.show(statement.executeQuery());
                    }
                });
            }
        }
        pair.works(connection -> {
            try (PreparedStatement statement = connection.prepareStatement("select id from documents where body = ? or body > ? order by id")) {
                statement.setString(1, "1 " + Suite.BODY);
                statement.setString(2, "5 " + Suite.BODY);
                return Pair.show(statement.executeQuery());
            }
        });
    }

    private static void severalResults(Pair pair) throws Exception {
        pair.works(connection -> fill(connection, 6));
        pair.works(connection -> {
            List<Object> seen = new ArrayList<>();
            try (PreparedStatement statement = connection.prepareStatement("select id, body from documents where id < ? order by id;"
                    + " update documents set body = ? where id = ?; select body, data from documents order by id")) {
                statement.setInt(1, 3);
                statement.setString(2, Suite.LARGE);
                statement.setInt(3, 1);
                boolean rows = statement.execute();
                while (rows || statement.getUpdateCount() >= 0) {
                    seen.add(rows ? Pair.show(statement.getResultSet()) : statement.getUpdateCount());
                    rows = statement.getMoreResults();
                }
            }
            Suite.check(seen.size() == 3, "three results");
            return seen;
        });
    }
}
