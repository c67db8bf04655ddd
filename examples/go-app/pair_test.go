// Package shelf runs the same statements with lib/pq on a plain table, straight, and on its twin
// with offloaded columns, through Toastrack, and compares what the driver lets a program see.
package shelf

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/lib/pq"
)

const tables = `create table documents (
	id int primary key, body text, note varchar(3000), data jsonb, verbatim json, raw bytea, small text)`

const moved = `alter table go_twin.documents alter body type toastrack.text, alter note type toastrack.varchar(3000),
	alter data type toastrack.jsonb, alter verbatim type toastrack.json, alter raw type toastrack.bytea`

// Pair is a pool of connections to each side.
type Pair struct {
	t                   *testing.T
	direct, plain, twin *sql.DB
	plainURL, twinURL   string
}

// open makes the tables anew. The settings are parameters of both connection strings.
func open(t *testing.T, settings string) *Pair {
	pair := &Pair{t: t}
	pair.direct = connect(t, url(t, "DIRECT_URL", "", ""))
	for _, schema := range []string{"go_plain", "go_twin"} {
		must(t, pair.direct, fmt.Sprintf("drop schema if exists %s cascade; create schema %s; set search_path = %s; %s",
			schema, schema, schema, tables))
	}
	must(t, pair.direct, moved)
	pair.plainURL = url(t, "DIRECT_URL", "go_plain", settings)
	pair.twinURL = url(t, "TOASTRACK_URL", "go_twin", settings)
	pair.plain, pair.twin = connect(t, pair.plainURL), connect(t, pair.twinURL)
	return pair
}

func url(t *testing.T, name, schema, settings string) string {
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: run this through scripts/with-servers.sh", name)
	}
	return value + "?sslmode=disable&search_path=" + schema + settings
}

func connect(t *testing.T, url string) *sql.DB {
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func must(t *testing.T, db *sql.DB, statement string, values ...any) {
	t.Helper()
	if _, err := db.Exec(statement, values...); err != nil {
		t.Fatal(err)
	}
}

// same does the same on both sides and checks that the outcome is the same.
func (pair *Pair) same(action func(*sql.DB) (any, error)) any {
	pair.t.Helper()
	plain, twin := outcome(action, pair.plain), outcome(action, pair.twin)
	if !reflect.DeepEqual(plain, twin) {
		pair.t.Fatalf("plain: %.600s\n twin: %.600s", fmt.Sprintf("%#v", plain), fmt.Sprintf("%#v", twin))
	}
	return plain
}

// failure is an error as the application sees it.
type failure struct{ state, message string }

func outcome(action func(*sql.DB) (any, error), db *sql.DB) any {
	seen, err := action(db)
	if err == nil {
		return seen
	}
	var refused *pq.Error
	if errors.As(err, &refused) {
		return failure{string(refused.Code), refused.Message}
	}
	return failure{"", err.Error()}
}

// run executes one statement; fails is the SQLSTATE it ends with, or empty.
func (pair *Pair) run(fails, statement string, values ...any) any {
	pair.t.Helper()
	seen := pair.same(func(db *sql.DB) (any, error) { return query(db, statement, values...) })
	state := ""
	if failed, ok := seen.(failure); ok {
		state = failed.state
	}
	if state != fails {
		pair.t.Fatalf("%.300s from %.200s", fmt.Sprintf("%v", seen), statement)
	}
	return seen
}

// queries is what a statement runs on: a pool, a connection, a transaction.
type queries interface {
	Query(string, ...any) (*sql.Rows, error)
}

func query(on queries, statement string, values ...any) (any, error) {
	rows, err := on.Query(statement, values...)
	if err != nil {
		return nil, err
	}
	return everything(rows)
}

// everything gives the columns with their types, and all rows.
func everything(rows *sql.Rows) (any, error) {
	defer rows.Close()
	var seen []any
	for more := true; more; more = rows.NextResultSet() {
		types, err := rows.ColumnTypes()
		if err != nil {
			return nil, err
		}
		for _, column := range types {
			length, sized := column.Length()
			seen = append(seen, column.Name(), column.DatabaseTypeName(), length, sized, column.ScanType().String())
		}
		for rows.Next() {
			row, into := make([]any, len(types)), make([]any, len(types))
			for n := range row {
				into[n] = &row[n]
			}
			if err := rows.Scan(into...); err != nil {
				return nil, err
			}
			seen = append(seen, row)
		}
	}
	return seen, rows.Err()
}

func (pair *Pair) clear() { pair.run("", "truncate documents") }

// assertOffloaded checks that a column of the twin holds references only, none over 64 bytes.
func (pair *Pair) assertOffloaded(column, start string, length, expected int) {
	pair.t.Helper()
	rows, err := pair.direct.Query("select " + column + " from go_twin.documents")
	if err != nil {
		pair.t.Fatal(err)
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var stored string
		if err := rows.Scan(&stored); err != nil {
			pair.t.Fatal(err)
		}
		if !strings.HasPrefix(stored, start) || len(stored) != length {
			pair.t.Fatalf("%s holds %.80q", column, stored)
		}
		seen++
	}
	if seen != expected {
		pair.t.Fatalf("%s: %d rows", column, seen)
	}
}

const threshold = 2048

var (
	random   = rand.New(rand.NewSource(20241201))
	body     = prose(20_000)
	large    = noise(65_536)
	document = `{"zebra": 1, "a": 2, "items": [` + strings.Repeat(`{"name": "item", "price": 1.250}, `, 150) + `null]}`
	raw      = noiseBytes(threshold + 1)
	magic    = "\xf7TOAST\r\n"
)

// prose is text that compresses.
func prose(size int) string {
	text := "The quick brown fox jumps over the lazy dog, and it's \"quoted\".\n"
	return strings.Repeat(text, size/len(text)+1)[:size]
}

// noise is text that does not.
func noise(size int) string {
	text := noiseBytes(size)
	for n := range text {
		text[n] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[text[n]%64]
	}
	return string(text)
}

func noiseBytes(size int) []byte {
	bytes := make([]byte, size)
	random.Read(bytes)
	return bytes
}
