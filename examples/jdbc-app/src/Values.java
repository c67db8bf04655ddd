import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Types;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.postgresql.util.PGobject;

/** Each value, in each column type, by each way the driver can send and fetch it. */
final class Values {
    private Values() {}

    static void addTo(Map<String, Suite.Test> tests, Pair pair) {
        texts().forEach((name, value) -> tests.put("text, " + name, () -> text(pair, value)));
        jsons().forEach((name, value) -> tests.put("json, " + name, () -> json(pair, value)));
        raws().forEach((name, value) -> tests.put("bytea, " + name, () -> raw(pair, value)));
        tests.put("large values leave the row", () -> leaveTheRow(pair));
        tests.put("arrays", () -> arrays(pair));
        tests.put("refused values", () -> refused(pair));
    }

    private static Map<String, String> texts() {
        Map<String, String> texts = new LinkedHashMap<>();
        texts.put("null", null);
        texts.put("empty", "");
        texts.put("below the threshold", Suite.noise(Suite.THRESHOLD - 1, 3));
        texts.put("threshold", Suite.noise(Suite.THRESHOLD, 4));
        texts.put("above the threshold", Suite.noise(Suite.THRESHOLD + 1, 5));
        texts.put("prose", Suite.BODY);
        texts.put("mebibyte", Suite.noise(1 << 20, 6));
        texts.put("unicode", "naïve café, €, 日本語, \uD83D\uDE00, \u2028, \ufeff; ".repeat(300));
        texts.put("quotes", "it's \"quoted\" \\ back\\\\slash $$dollar$$ E'\\n' %s $1 ? :name".repeat(100));
        texts.put("like a reference", "toast:" + Suite.noise(56, 7));
        texts.put("prefix", "toast:");
        return texts;
    }

    private static Map<String, String> jsons() {
        Map<String, String> jsons = new LinkedHashMap<>();
        jsons.put("null", null);
        jsons.put("json null", "null");
        jsons.put("number", "2.561422288066971e+16");
        jsons.put("document", Suite.DATA);
        jsons.put("large", Suite.document(5000));
        jsons.put("duplicate keys", "{\"b\":1,\"a\":2,\"b\":3,\"text\":\"" + "word ".repeat(1000) + "\"}");
        jsons.put("escapes", "{\"text\":\"\\u00e9\\ud83d\\ude00\\n\\t\\\"\\\\\\/ " + "x".repeat(3000) + "\"}");
        jsons.put("like a reference", "\"toast:" + Suite.noise(56, 8) + "\"");
        return jsons;
    }

    private static Map<String, byte[]> raws() {
        Map<String, byte[]> raws = new LinkedHashMap<>();
        raws.put("null", null);
        raws.put("empty", new byte[0]);
        raws.put("below the threshold", Suite.bytes(Suite.THRESHOLD - 1, 9));
        raws.put("threshold", Suite.bytes(Suite.THRESHOLD, 10));
        raws.put("above the threshold", Suite.RAW);
        raws.put("mebibyte", Suite.bytes(1 << 20, 11));
        raws.put("zeros", new byte[100_000]);
        raws.put("magic", Suite.MAGIC);
        raws.put("like a reference", Suite.afterMagic(Suite.bytes(42, 12)));
        raws.put("magic and more", Suite.afterMagic(Suite.bytes(5000, 13)));
        return raws;
    }

    private static void text(Pair pair, String value) throws Exception {
        pair.works(connection -> {
            List<Object> seen = new ArrayList<>();
            try (PreparedStatement insert = connection.prepareStatement(
                            "insert into documents (id, body, note) values (?, ?, left(?, 3000)) returning *");
                    PreparedStatement update = connection.prepareStatement("update documents set body = ? where id = ?");
                    PreparedStatement select = connection.prepareStatement("select *, length(body) from documents where id = ?")) {
                // Past the fifth execution the driver goes over to a named statement and binary values.
                for (int n = 0; n < 7; n++) {
                    insert.setInt(1, n);
                    insert.setString(2, value);
                    insert.setString(3, value);
                    seen.add(Pair.show(insert.executeQuery()));
                    if (n % 2 == 0) {
                        update.setCharacterStream(1, value == null ? null : new StringReader(value));
                        update.setInt(2, n);
                        seen.add(update.executeUpdate());
                    }
                    select.setInt(1, n);
                    seen.add(Pair.show(select.executeQuery()));
                    if (value != null && value.length() > 100_000) {
                        break;
                    }
                }
            }
            return seen;
        });
    }

    private static void json(Pair pair, String value) throws Exception {
        pair.works(connection -> {
            List<Object> seen = new ArrayList<>();
            try (PreparedStatement insert = connection.prepareStatement(
                            "insert into documents (id, data, verbatim) values (?, ?, ?) returning data, verbatim");
                    PreparedStatement cast = connection.prepareStatement(
                            "update documents set data = ?::jsonb, verbatim = cast(? as json) where id = ?");
                    PreparedStatement select = connection.prepareStatement("select data, verbatim from documents where id = ?")) {
                for (int n = 0; n < 6; n++) {
                    insert.setInt(1, n);
                    insert.setObject(2, object("jsonb", value));
                    insert.setObject(3, object("json", value), Types.OTHER);
                    seen.add(Pair.show(insert.executeQuery()));
                    cast.setString(1, value);
                    cast.setString(2, value);
                    cast.setInt(3, n);
                    seen.add(cast.executeUpdate());
                    select.setInt(1, n);
                    seen.add(Pair.show(select.executeQuery()));
                    if (value != null && value.length() > 100_000) {
                        break;
                    }
                }
            }
            return seen;
        });
    }

    private static PGobject object(String type, String value) throws Exception {
        PGobject object = new PGobject();
        object.setType(type);
        object.setValue(value);
        return object;
    }

    private static void raw(Pair pair, byte[] value) throws Exception {
        pair.works(connection -> {
            List<Object> seen = new ArrayList<>();
            try (PreparedStatement insert = connection.prepareStatement("insert into documents (id, raw) values (?, ?) returning raw");
                    PreparedStatement select = connection.prepareStatement("select raw, octet_length(raw) from documents where id = ?")) {
                for (int n = 0; n < 7; n++) {
                    insert.setInt(1, n);
                    if (value == null) {
                        insert.setNull(2, Types.BINARY);
                    } else if (n % 2 == 0) {
                        insert.setBytes(2, value);
                    } else {
                        insert.setBinaryStream(2, new ByteArrayInputStream(value), value.length);
                    }
                    seen.add(Pair.show(insert.executeQuery()));
                    select.setInt(1, n);
                    try (ResultSet rows = select.executeQuery()) {
                        rows.next();
                        seen.add(rows.getBytes(1));
                        seen.add(value == null ? null : rows.getBinaryStream(1).readAllBytes());
                        seen.add(rows.getInt(2));
                    }
                    if (value != null && value.length > 100_000) {
                        break;
                    }
                }
            }
            return seen;
        });
    }

    /** The comparisons prove little unless values really are offloaded. */
    private static void leaveTheRow(Pair pair) throws Exception {
        pair.works(connection -> {
            try (PreparedStatement insert = connection.prepareStatement(
                    "insert into documents (id, body, note, data, verbatim, raw) values (?, ?, ?, ?, ?, ?)")) {
                for (int n = 0; n < 9; n++) {
                    insert.setInt(1, n);
                    insert.setString(2, n + Suite.BODY);
                    insert.setString(3, Suite.prose(2900));
                    insert.setObject(4, object("jsonb", Suite.DATA));
                    insert.setObject(5, object("json", Suite.DATA));
                    insert.setBytes(6, Suite.RAW);
                    insert.addBatch();
                }
                return insert.executeBatch();
            }
        });
        for (String column : List.of("body", "note", "data", "verbatim", "raw")) {
            pair.assertOffloaded(column, 9);
        }
        pair.works(connection -> connection.createStatement().executeQuery("select * from documents order by id"));
    }

    private static void arrays(Pair pair) throws Exception {
        String[] bodies = {Suite.BODY, null, "", "NULL, {\"a\"} \\ ", "toast:" + Suite.noise(56, 14)};
        byte[][] raws = {Suite.RAW, null, new byte[0], Suite.MAGIC, Suite.afterMagic(Suite.bytes(42, 15))};
        pair.works(connection -> {
            List<Object> seen = new ArrayList<>();
            try (PreparedStatement insert = connection.prepareStatement("insert into documents (id, body, raw)"
                            + " select n + ?, b, r from unnest(?::text[], ?::bytea[]) with ordinality as u(b, r, n) returning *");
                    PreparedStatement any = connection.prepareStatement("select id, body from documents where body = any(?) order by id");
                    PreparedStatement aggregate = connection.prepareStatement("select array_agg(body order by id), array_agg(raw order by id),"
                            + " array_agg(data order by id) from documents")) {
                for (int n = 0; n < 6; n++) {
                    insert.setInt(1, 10 * n);
                    insert.setArray(2, connection.createArrayOf("text", bodies));
                    insert.setArray(3, connection.createArrayOf("bytea", raws));
                    seen.add(Pair.show(insert.executeQuery()));
                    any.setArray(1, connection.createArrayOf("text", bodies));
                    seen.add(Pair.show(any.executeQuery()));
                    try (ResultSet rows = aggregate.executeQuery()) {
                        rows.next();
                        seen.add(Pair.show(rows.getArray(1)));
                        seen.add(Pair.show(rows.getArray(2)));
                        seen.add(rows.getString(3));
                    }
                }
            }
            return seen;
        });
    }

    private static void refused(Pair pair) throws Exception {
        String[][] cases = {
            {"data", "{\"a\": " + "x".repeat(5000), "22P02"},
            {"data", "{\"a\": \"\\u0000" + "x".repeat(5000) + "\"}", "22P05"},
            {"verbatim", "[1, 2" + " ".repeat(5000), "22P02"},
            {"note", "x".repeat(3001), "22001"},
        };
        for (String[] refused : cases) {
            String cast = Map.of("data", "jsonb", "verbatim", "json", "note", "varchar").get(refused[0]);
            for (int n = 0; n < 7; n++) {
                pair.refused(refused[2], connection -> {
                    try (PreparedStatement insert = connection.prepareStatement(
                            "insert into documents (id, " + refused[0] + ") values (1, ?::" + cast + ")")) {
                        insert.setString(1, refused[1]);
                        return insert.executeUpdate();
                    }
                });
            }
        }
        pair.works(connection -> connection.createStatement().executeQuery("select count(*) from documents"));
        Suite.check(Suite.BODY.getBytes(UTF_8).length == 20_000, "the sample is ASCII");
    }
}
