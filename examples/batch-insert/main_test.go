package main

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/examples/internal/servers"
)

// Every event is one row, and the one without a user is dead alone: it takes no other with it.
func TestBatchInsert(t *testing.T) {
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
	events, err := subscribe(client, db)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]Event, 1000)
	for i := range list {
		list[i] = Event{User: fmt.Sprint("u", i), Name: "login"}
	}
	list[500].User = ""
	if err := publish(t.Context(), events, list); err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	warehouse := client.Admin().Group("events", "warehouse")
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var rows int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM events`).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		d, err := warehouse.Depth(t.Context())
		if err == nil && rows == 999 && d.Dead == 1 && *d.Lag+d.Pending+d.Retry+d.Retrying == 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d rows, %+v, %v", rows, d, err)
		}
	}
}
