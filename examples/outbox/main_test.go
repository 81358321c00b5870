package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/examples/internal/servers"
)

// What was committed is published once, also when a relay dies between the publish and the delete; what was rolled back never.
func TestOutbox(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("pgx", servers.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	client, err := xstreamq.Open(servers.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	order := func(n int, commit bool) {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), `INSERT INTO outbox (kind, payload) VALUES ('created', $1)`, fmt.Sprintf(`{"order": %d}`, n)); err != nil {
			t.Fatal(err)
		}
		if commit {
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range 20 {
		order(n, n%4 != 3)
	}
	// A relay that published row 0 and died before its delete.
	var id string
	if err := db.QueryRowContext(t.Context(), `SELECT id FROM outbox ORDER BY seq LIMIT 1`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	events := xstreamq.NewQueue[json.RawMessage](client, "events", xstreamq.DedupeWindow(24*time.Hour))
	if _, err := events.Publish(t.Context(), json.RawMessage(`{"order": 0}`), xstreamq.DedupeID(id), xstreamq.Header("kind", "created")); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	for range 2 { // two relays at once
		go func() { run(ctx, db, client); ended <- struct{}{} }()
	}
	for left := 1; left > 0; time.Sleep(20 * time.Millisecond) {
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM outbox`).Scan(&left); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	<-ended
	<-ended
	page, err := client.Admin().Stream("events").Peek(t.Context(), xstreamq.Page{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, r := range page.Items {
		var body struct{ Order int }
		if err := json.Unmarshal(r.Body, &body); err != nil || r.Headers["kind"] != "created" || seen[body.Order] || body.Order%4 == 3 {
			t.Errorf("published %s %v, %v", r.Body, r.Headers, err)
		}
		seen[body.Order] = true
	}
	if len(seen) != 15 {
		t.Errorf("%d orders are published, want 15", len(seen))
	}
}
