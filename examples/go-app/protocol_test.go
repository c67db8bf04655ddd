package shelf

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"
)

func fill(pair *Pair, rows int) {
	pair.t.Helper()
	pair.same(func(db *sql.DB) (any, error) {
		insert, err := db.Prepare("insert into documents (id, body, data, raw) values ($1, $2, $3, $4) returning id, body")
		if err != nil {
			return nil, err
		}
		defer insert.Close()
		var seen []any
		for n := 0; n < rows; n++ {
			rows, err := insert.Query(n, body, document, raw)
			if err != nil {
				return nil, err
			}
			all, err := everything(rows)
			if err != nil {
				return nil, err
			}
			seen = append(seen, all)
		}
		return seen, nil
	})
}

func TestPreparedStatementsAndDDL(t *testing.T) {
	pair := open(t, "")
	fill(pair, 12)
	pair.same(func(db *sql.DB) (any, error) {
		connection, err := db.Conn(context.Background())
		if err != nil {
			return nil, err
		}
		defer connection.Close()
		statement, err := connection.PrepareContext(context.Background(), "select * from documents where id = $1")
		if err != nil {
			return nil, err
		}
		defer statement.Close()
		var seen []any
		for n, change := range []string{"", "", "alter table documents add later int default 7", "", "alter table documents drop later", ""} {
			if change != "" {
				if _, err := connection.ExecContext(context.Background(), change); err != nil {
					return nil, err
				}
			}
			rows, err := statement.Query(n)
			if err != nil {
				seen = append(seen, err.Error())
				continue
			}
			all, err := everything(rows)
			if err != nil {
				seen = append(seen, err.Error())
			}
			seen = append(seen, all)
		}
		return seen, nil
	})
}

func TestTransactions(t *testing.T) {
	pair := open(t, "")
	insert := "insert into documents (id, body) values ($1, $2) returning *"
	pair.same(func(db *sql.DB) (any, error) {
		transaction, err := db.Begin()
		if err != nil {
			return nil, err
		}
		defer transaction.Rollback()
		var seen []any
		for _, step := range []struct {
			statement string
			values    []any
		}{
			{insert, []any{1, body}}, {"savepoint one", nil}, {insert, []any{1, large}}, {insert, []any{2, large}},
			{"rollback to savepoint one", nil}, {insert, []any{2, large}}, {"select * from documents", nil},
		} {
			found, err := query(transaction, step.statement, step.values...)
			var refused *pq.Error
			if errors.As(err, &refused) {
				seen = append(seen, refused.Code, refused.Message)
			} else if err != nil {
				return nil, err
			}
			seen = append(seen, found)
		}
		return seen, transaction.Commit()
	})
	pair.run("", "select * from documents order by id")
}

func TestCopyIn(t *testing.T) {
	pair := open(t, "")
	pair.same(func(db *sql.DB) (any, error) {
		transaction, err := db.Begin()
		if err != nil {
			return nil, err
		}
		defer transaction.Rollback()
		copying, err := transaction.Prepare(pq.CopyIn("documents", "id", "body", "data", "raw"))
		if err != nil {
			return nil, err
		}
		for n := 0; n < 40; n++ {
			if _, err := copying.Exec(n, body, document, raw); err != nil {
				return nil, err
			}
		}
		if _, err := copying.Exec(); err != nil {
			return nil, err
		}
		if err := copying.Close(); err != nil {
			return nil, err
		}
		return nil, transaction.Commit()
	})
	pair.run("", "select * from documents order by id")
}

func TestUpsertsAndSeveralStatements(t *testing.T) {
	pair := open(t, "")
	for _, value := range []any{body, large, "short", nil} {
		pair.run("", `insert into documents (id, body) values (1, $1)
			on conflict (id) do update set body = excluded.body, small = documents.body returning *`, value)
	}
	fill := "insert into documents (id, body) values (7, " + pq.QuoteLiteral(body) + ");"
	pair.run("", fill+" select id, body from documents order by id; update documents set note = 'x' where id = 7; select * from documents order by id")
}

func TestCancel(t *testing.T) {
	pair := open(t, "")
	fill(pair, 3)
	for n := 0; n < 2; n++ {
		pair.same(func(db *sql.DB) (any, error) {
			limited, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			_, err := db.ExecContext(limited, "select pg_sleep(20)")
			var refused *pq.Error
			return errors.As(err, &refused) && refused.Code == "57014" || errors.Is(err, context.DeadlineExceeded), nil
		})
		pair.run("", "select body from documents where id = $1", 1)
	}
}

func TestNotifications(t *testing.T) {
	pair := open(t, "")
	for _, url := range []string{pair.plainURL, pair.twinURL} {
		listener := pq.NewListener(url, time.Second, time.Minute, nil)
		if err := listener.Listen("shelf"); err != nil {
			t.Fatal(err)
		}
		db := connect(t, url)
		must(t, db, "select pg_notify('shelf', $1)", prose(5000))
		select {
		case notification := <-listener.Notify:
			if notification == nil || notification.Extra != prose(5000) {
				t.Fatalf("another notification: %v", notification)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("no notification")
		}
		listener.Close()
	}
}

func TestManyConnections(t *testing.T) {
	pair := open(t, "")
	pair.same(func(db *sql.DB) (any, error) {
		db.SetMaxOpenConns(6)
		var group sync.WaitGroup
		seen, errs := make([]any, 40), make([]error, 40)
		for n := range seen {
			group.Add(1)
			go func(n int) {
				defer group.Done()
				if _, errs[n] = db.Exec("insert into documents (id, body) values ($1, $2)", n, body); errs[n] == nil {
					seen[n], errs[n] = query(db, "select * from documents where id = $1", n)
				}
			}(n)
		}
		group.Wait()
		return seen, first(errs)
	})
	pair.run("", "select * from documents order by id")
}

// first is the first error, or nil.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
