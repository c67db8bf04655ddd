package shelf

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/lib/pq"
)

var texts = []any{
	nil, "", "a", noise(threshold - 1), noise(threshold), noise(threshold + 1), body, noise(1 << 20),
	strings.Repeat("naïve café, €, 日本語, 😀, \u2028, \ufeff; ", 300),
	strings.Repeat(`it's "quoted" \ back\\slash $$dollar$$ %s $1 ? :name`, 100),
	"toast:" + noise(56), "toast:", "toast:" + body,
}

var jsons = []any{
	nil, "null", "2.561422288066971e+16", `""`, "{}", document,
	`{"b":1,"a":2,"b":3,"text":"` + strings.Repeat("word ", 1000) + `"}`,
	`{"text":"\u00e9\ud83d\ude00\n\t\"\\\/ ` + strings.Repeat("x", 3000) + `"}`,
	`"toast:` + noise(56) + `"`,
}

var raws = []any{
	nil, []byte{}, []byte{0}, noiseBytes(threshold - 1), noiseBytes(threshold), raw, noiseBytes(1 << 20),
	make([]byte, 100_000), []byte(magic), append([]byte(magic), noiseBytes(42)...), append([]byte(magic), noiseBytes(5000)...),
}

// settings are the two ways lib/pq sends values.
var settings = map[string]string{"text": "", "binary parameters": "&binary_parameters=yes"}

func TestValues(t *testing.T) {
	for name, setting := range settings {
		t.Run(name, func(t *testing.T) {
			pair := open(t, setting)
			for column, values := range map[string][]any{"body": texts, "data": jsons, "verbatim": jsons, "raw": raws} {
				for _, value := range values {
					pair.clear()
					pair.run("", "insert into documents (id, "+column+") values ($1, $2) returning *", 1, value)
					pair.run("", "select *, octet_length("+column+"::text) from documents where id = $1", 1)
					pair.run("", "update documents set "+column+" = $1 where id = $2 returning *", value, 1)
					// Without parameters lib/pq uses the simple protocol.
					pair.run("", "select * from documents")
				}
			}
		})
	}
}

func TestLargeValuesLeaveTheRow(t *testing.T) {
	for name, setting := range settings {
		t.Run(name, func(t *testing.T) {
			pair := open(t, setting)
			for n := 0; n < 3; n++ {
				pair.run("", "insert into documents (id, body, note, data, verbatim, raw) values ($1, $2, $3, $4, $5, $6)",
					n, body, prose(2900), document, document, raw)
			}
			pair.assertOffloaded("body", "toast:", 62, 3)
			pair.assertOffloaded("note", "toast:", 62, 3)
			pair.assertOffloaded("data", `"toast:`, 64, 3)
			pair.assertOffloaded("verbatim", `"toast:`, 64, 3)
			pair.assertOffloaded("raw", `\xf7544f4153540d0a`, 2+2*50, 3)
			pair.run("", "select * from documents order by id")
		})
	}
}

func TestArrays(t *testing.T) {
	pair := open(t, "")
	bodies := []sql.NullString{{String: body, Valid: true}, {}, {String: "", Valid: true}, {String: `NULL, {"a"} \ `, Valid: true}}
	bytes := pq.ByteaArray{raw, nil, {}, []byte(magic)}
	pair.run("", `insert into documents (id, body, raw) select n, b, r
		from unnest($1::text[], $2::bytea[]) with ordinality as u(b, r, n) returning *`, pq.Array(bodies), bytes)
	pair.run("", "select array_agg(body order by id), array_agg(raw order by id) from documents")
	pair.run("", "select id, body from documents where body = any($1) order by id", pq.Array(bodies))
	pair.same(func(db *sql.DB) (any, error) {
		var texts []sql.NullString
		var bytes pq.ByteaArray
		err := db.QueryRow("select array_agg(body order by id), array_agg(raw order by id) from documents where id > $1", 0).
			Scan(pq.Array(&texts), &bytes)
		return []any{texts, bytes}, err
	})
}

func TestRefusedValues(t *testing.T) {
	pair := open(t, "")
	for _, refused := range [][3]string{
		{"data", `{"a": ` + strings.Repeat("x", 5000), "22P02"},
		{"data", `{"a": "\u0000` + strings.Repeat("x", 5000) + `"}`, "22P05"},
		{"verbatim", "[1, 2" + strings.Repeat(" ", 5000), "22P02"},
		{"note", strings.Repeat("x", 3001), "22001"},
		{"nowhere", body, "42703"},
	} {
		pair.run(refused[2], "insert into documents (id, "+refused[0]+") values (1, $1)", refused[1])
		pair.run("", "select count(*) from documents")
	}
}
