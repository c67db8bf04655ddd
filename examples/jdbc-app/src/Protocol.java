import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.copy.CopyManager;

/** Portals, transactions, COPY, cancelling, notifications, DDL under prepared statements, threads. */
final class Protocol {
    private Protocol() {}

    static void addTo(Map<String, Suite.Test> tests, Pair pair) {
        tests.put("a portal read in parts", () -> fetchSize(pair));
        tests.put("transactions and savepoints", () -> transactions(pair));
        tests.put("copy", () -> copy(pair));
        tests.put("DDL under prepared statements", () -> ddl(pair));
        tests.put("cancel and timeout", () -> cancel(pair));
        tests.put("notifications", () -> notifications(pair));
        tests.put("metadata", () -> metadata(pair));
        tests.put("several connections at once", () -> connections(pair));
    }

    private static void fetchSize(Pair pair) throws Exception {
        pair.works(connection -> Statements.fill(connection, 40));
        pair.works(connection -> {
            connection.setAutoCommit(false);
            List<Object> seen = new ArrayList<>();
            try (PreparedStatement select = connection.prepareStatement("select * from documents where id >= ? order by id");
                    PreparedStatement other = connection.prepareStatement("select body from documents where id = ?")) {
                for (int n = 0; n < 7; n++) {
                    select.setFetchSize(n % 2 == 0 ? 7 : 1);
                    select.setInt(1, n);
                    try (ResultSet rows = select.executeQuery()) {
                        while (rows.next()) {
                            seen.add(rows.getString("body"));
                            seen.add(rows.getBytes("raw"));
                            if (rows.getRow() % 9 == 0) {
                                other.setInt(1, rows.getInt("id"));
                                seen.add(Pair.show(other.executeQuery()));
                            }
                            if (n == 6 && rows.getRow() == 10) {
                                break;
                            }
                        }
                    }
                }
            }
            connection.commit();
            connection.setAutoCommit(true);
            return seen;
        });
    }

    private static void transactions(Pair pair) throws Exception {
        String seen = pair.works(connection -> {
            List<Object> states = new ArrayList<>();
            connection.setAutoCommit(false);
            try (PreparedStatement insert = connection.prepareStatement(Statements.INSERT)) {
                Statements.bind(insert, 1);
                insert.executeUpdate();
                Savepoint savepoint = connection.setSavepoint("one");
                for (int n = 0; n < 2; n++) {
                    try {
                        Statements.bind(insert, 1);
                        insert.executeUpdate();
                    } catch (SQLException error) {
                        states.add(error.getSQLState());
                    }
                }
                connection.rollback(savepoint);
                Statements.bind(insert, 2);
                insert.executeUpdate();
                states.add(Pair.show(Statements.all(connection)));
                connection.commit();
                connection.createStatement().executeUpdate("update documents set body = 'gone'");
                connection.rollback();
                states.add(Pair.show(Statements.all(connection)));
                connection.commit();
            }
            connection.setReadOnly(true);
            try {
                connection.createStatement().executeUpdate("update documents set body = 'gone'");
            } catch (SQLException error) {
                states.add(error.getSQLState());
            }
            connection.rollback();
            connection.setReadOnly(false);
            connection.setAutoCommit(true);
            return states;
        });
        Suite.check(seen.contains("23505") && seen.contains("25006"), "the errors are there");
    }

    private static void copy(Pair pair) throws Exception {
        pair.works(connection -> Statements.fill(connection, 30));
        for (String options : List.of("", "(format csv, header)", "(format binary)")) {
            pair.works(connection -> {
                CopyManager copies = connection.unwrap(PGConnection.class).getCopyAPI();
                ByteArrayOutputStream out = new ByteArrayOutputStream();
                long rows = copies.copyOut("copy (select * from documents order by id) to stdout " + options, out);
                connection.createStatement().executeUpdate("truncate documents");
                long back = copies.copyIn("copy documents from stdin " + options, new ByteArrayInputStream(out.toByteArray()), 5000);
                return List.of(rows, back, Pair.show(out.toByteArray()), Pair.show(Statements.all(connection)));
            });
        }
        pair.refused("22P02", connection -> connection.unwrap(PGConnection.class).getCopyAPI()
                .copyIn("copy documents (id, body) from stdin", new ByteArrayInputStream("a\tb\n".getBytes())));
    }

    private static void ddl(Pair pair) throws Exception {
        pair.works(connection -> Statements.fill(connection, 8));
        pair.works(connection -> {
            List<Object> seen = new ArrayList<>();
            try (PreparedStatement select = connection.prepareStatement("select * from documents where id = ?")) {
                for (String change : List.of("", "alter table documents add later text default 'later'",
                        "alter table documents alter later drop default, alter later type int using 7", "alter table documents drop later")) {
                    if (!change.isEmpty()) {
                        connection.createStatement().execute(change);
                    }
                    for (int n = 0; n < 7; n++) {
                        select.setInt(1, n);
                        try {
                            seen.add(Pair.show(select.executeQuery()));
                        } catch (SQLException error) {
                            seen.add(error.getSQLState());
                        }
                    }
                }
                connection.createStatement().execute("deallocate all");
                for (int n = 0; n < 3; n++) {
                    select.setInt(1, n);
                    try {
                        seen.add(Pair.show(select.executeQuery()));
                    } catch (SQLException error) {
                        seen.add(error.getSQLState());
                    }
                }
            }
            return seen;
        });
        pair.reconnect();
    }

    private static void cancel(Pair pair) throws Exception {
        pair.refused("57014", connection -> {
            try (Statement statement = connection.createStatement()) {
                Thread canceller = new Thread(() -> {
                    try {
                        Thread.sleep(200);
                        statement.cancel();
                    } catch (InterruptedException | SQLException error) {
                        throw new IllegalStateException(error);
                    }
                });
                canceller.start();
                try {
                    return statement.executeQuery("select pg_sleep(20)");
                } finally {
                    canceller.join();
                }
            }
        });
        pair.refused("57014", connection -> {
            try (Statement statement = connection.createStatement()) {
                statement.setQueryTimeout(1);
                return statement.executeQuery("select pg_sleep(20)");
            }
        });
        pair.works(Statements::all);
    }

    private static void notifications(Pair pair) throws Exception {
        String payload = Suite.prose(5000);
        pair.works(connection -> {
            List<Object> seen = new ArrayList<>();
            try (Statement statement = connection.createStatement();
                    PreparedStatement notify = connection.prepareStatement("select pg_notify('shelf', ?)")) {
                statement.execute("listen shelf");
                notify.setString(1, payload);
                notify.execute();
                statement.execute("notify shelf, 'short'");
                for (int n = 0; n < 50 && seen.size() < 2; n++) {
                    PGNotification[] received = connection.unwrap(PGConnection.class).getNotifications(100);
                    for (PGNotification notification : received == null ? new PGNotification[0] : received) {
                        seen.add(notification.getParameter());
                    }
                }
                statement.execute("unlisten shelf");
            }
            Suite.check(seen.equals(List.of(payload, "short")), "both notifications");
            return seen;
        });
    }

    /** What the driver says of a statement before it runs. */
    private static void metadata(Pair pair) throws Exception {
        pair.works(connection -> {
            List<Object> seen = new ArrayList<>();
            try (PreparedStatement insert = connection.prepareStatement(
                    "insert into documents (id, body, note, data, verbatim, raw) values (?, ?, ?, ?, ?, ?) returning *")) {
                for (int n = 1; n <= 6; n++) {
                    seen.add(insert.getParameterMetaData().getParameterTypeName(n));
                    seen.add(insert.getMetaData().getColumnTypeName(n));
                    seen.add(insert.getMetaData().getColumnDisplaySize(n));
                }
            }
            return seen;
        });
    }

    private static void connections(Pair pair) throws Exception {
        List<Object> plain = sessions(pair.plainUrl());
        List<Object> twin = sessions(pair.twinUrl());
        Suite.check(plain.size() == 6, "six sessions");
        Suite.check(plain.equals(twin), "sessions see the same");
    }

    private static List<Object> sessions(String url) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(6);
        List<Future<String>> running = new ArrayList<>();
        for (int session = 0; session < 6; session++) {
            int number = session;
            running.add(threads.submit(() -> {
                try (Connection connection = DriverManager.getConnection(url);
                        PreparedStatement insert = connection.prepareStatement(Statements.INSERT);
                        PreparedStatement select = connection.prepareStatement("select * from documents where id / 100 = ? order by id")) {
                    for (int n = 0; n < 12; n++) {
                        Statements.bind(insert, number * 100 + n);
                        insert.executeUpdate();
                    }
                    select.setInt(1, number);
                    return Pair.show(select.executeQuery());
                }
            }));
        }
        List<Object> seen = new ArrayList<>();
        for (Future<String> one : running) {
            seen.add(one.get());
        }
        threads.shutdown();
        return seen;
    }
}
