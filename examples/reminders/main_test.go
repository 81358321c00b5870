package main

import (
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/examples/internal/servers"
)

func TestReminders(t *testing.T) {
	t.Parallel()
	client, err := xstreamq.Open(servers.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	bell := make(chan Reminder, 10)
	r, err := start(client, func(r Reminder) { bell <- r })
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	set := func(after time.Duration, what string) string {
		id, err := r.Set(t.Context(), time.Now().Add(after), Reminder{"Ann", what})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	off := set(time.Hour, "never")
	set(500*time.Millisecond, "second")
	now := set(-time.Hour, "first")
	if ok, err := r.CallOff(t.Context(), off); !ok || err != nil {
		t.Error("called off in time:", ok, err)
	}
	for _, want := range []string{"first", "second"} {
		if got := <-bell; got.What != want {
			t.Errorf("reminded of %q, want %q", got.What, want)
		}
	}
	for _, id := range []string{off, now} {
		if ok, err := r.CallOff(t.Context(), id); ok || err != nil {
			t.Error("called off too late:", ok, err)
		}
	}
}
