// Batches on both sides: events go out a thousand a call and come in five hundred at a time for one bulk insert.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/xstreamq/xstreamq"
)

// Event is a message.
type Event struct{ User, Name string }

const schema = `CREATE TABLE IF NOT EXISTS events (id text PRIMARY KEY, "user" text NOT NULL, name text NOT NULL)`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	db, err := sql.Open("pgx", cmp.Or(os.Getenv("DATABASE_URL"), "postgres:///app"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		log.Fatal(err)
	}
	client, err := xstreamq.Open(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }() // Run has drained
	events, err := subscribe(client, db)
	if err != nil {
		log.Fatal(err)
	}
	if err := publish(ctx, events, make([]Event, 1000)); err != nil {
		log.Fatal(err)
	}
	if err := client.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func subscribe(client *xstreamq.Client, db *sql.DB) (*xstreamq.Queue[Event], error) {
	events := xstreamq.NewQueue[Event](client, "events")
	_, err := events.SubscribeBatch("warehouse", insert(db), xstreamq.BatchSize(500), xstreamq.BatchWait(time.Second))
	return events, err
}

func publish(ctx context.Context, events *xstreamq.Queue[Event], list []Event) error {
	_, err := events.PublishBatch(ctx, list)
	if failed, ok := errors.AsType[xstreamq.BatchErrors](err); ok { // the others stand
		log.Printf("%d of %d not published", len(failed), len(list))
	}
	return err
}

func insert(db *sql.DB) func(context.Context, []*xstreamq.Message[Event]) error {
	return func(ctx context.Context, ms []*xstreamq.Message[Event]) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err // all fail, and come back alone
		}
		defer func() { _ = tx.Rollback() }()
		failed := xstreamq.BatchErrors{}
		for i, m := range ms {
			if m.Body.User == "" {
				failed[i] = xstreamq.Reject(errors.New("no user")) // this one only
				continue
			}
			// m.ID is the same on every retry: a repeated message is one row.
			if _, err := tx.ExecContext(ctx, `INSERT INTO events VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, m.ID, m.Body.User, m.Body.Name); err != nil {
				return err
			}
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		return failed.Err()
	}
}
