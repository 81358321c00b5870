// Transactional outbox: business code inserts into the table outbox in its own transaction; this relay publishes and deletes.
// A crash between the two repeats the publish; the dedupe id makes the repeat harmless.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/xstreamq/xstreamq"
)

const schema = `CREATE TABLE IF NOT EXISTS outbox (
	seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id      uuid NOT NULL DEFAULT gen_random_uuid(),
	kind    text NOT NULL,
	payload json NOT NULL
)`

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
	defer func() { _ = client.Close() }() // nothing is under way
	run(ctx, db, client)
}

func run(ctx context.Context, db *sql.DB, client *xstreamq.Client) {
	events := xstreamq.NewQueue[json.RawMessage](client, "events", xstreamq.DedupeWindow(24*time.Hour))
	for ctx.Err() == nil {
		n, err := relay(ctx, db, events)
		if err != nil {
			log.Print(err)
		}
		if n == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
}

// relay publishes up to 500 rows and deletes those that stand in Redis. Several relays may run: rows are locked.
func relay(ctx context.Context, db *sql.DB, events *xstreamq.Queue[json.RawMessage]) (int, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	rows, err := tx.QueryContext(ctx, `SELECT id, kind, payload FROM outbox ORDER BY seq LIMIT 500 FOR UPDATE SKIP LOCKED`)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	batch, ids := events.NewBatch(), []string{}
	for rows.Next() {
		var id, kind string
		var payload json.RawMessage
		if err := rows.Scan(&id, &kind, &payload); err != nil {
			return 0, err
		}
		batch.Add(payload, xstreamq.DedupeID(id), xstreamq.Header("kind", kind))
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, nil
	}
	var failed xstreamq.BatchErrors
	if _, err := batch.Publish(ctx); err != nil && !errors.As(err, &failed) {
		return 0, err
	}
	for i, id := range ids {
		if failed[i] != nil { // stays in the outbox
			continue
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM outbox WHERE id = $1`, id); err != nil {
			return 0, err
		}
	}
	return len(ids) - len(failed), errors.Join(tx.Commit(), failed.Err())
}
