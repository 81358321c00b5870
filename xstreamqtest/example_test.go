package xstreamqtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/xstreamqtest"
)

// t is what each test is given.
var t *testing.T

type mail struct{ To string }

func send(context.Context, *xstreamq.Message[mail]) error { return nil }

// Drain plays the whole life of what was published, a delay of a week included, and says what happened.
func ExampleKit_Drain() {
	kit := xstreamqtest.New(t)
	mails := xstreamq.NewQueue[mail](kit.Client(), "mails")
	if _, err := mails.Subscribe("mailer", send, xstreamq.MaxRetries(3)); err != nil {
		t.Fatal(err)
	}
	if _, err := mails.Publish(t.Context(), mail{To: "ann@example.com"}, xstreamq.Delay(7*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, want := kit.Drain(), (xstreamqtest.Tally{Acked: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Advance lets time pass for the server: here, the window in which a dedupe id is remembered.
func ExampleKit_Advance() {
	kit := xstreamqtest.New(t)
	mails := xstreamq.NewQueue[mail](kit.Client(), "mails", xstreamq.DedupeWindow(time.Hour))
	for range 2 {
		if _, err := mails.Publish(t.Context(), mail{To: "ann@example.com"}, xstreamq.DedupeID("welcome-ann")); err != nil {
			t.Fatal(err)
		}
		kit.Advance(2 * time.Hour)
	}
	if got := xstreamqtest.Published(kit, mails); len(got) != 2 {
		t.Errorf("published %+v", got)
	}
}

// Break is for the code that must cope with a server that is away, or full.
func ExampleKit_Break() {
	kit := xstreamqtest.New(t)
	mails := xstreamq.NewQueue[mail](kit.Client(), "mails")
	kit.Break(errors.New("OOM command not allowed when used memory > 'maxmemory'"))
	if _, err := mails.Publish(t.Context(), mail{}); !errors.Is(err, xstreamq.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	kit.Mend()
}

// Published is for tests of what publishes.
func ExamplePublished() {
	kit := xstreamqtest.New(t)
	mails := xstreamq.NewQueue[mail](kit.Client(), "mails")
	if _, err := mails.Publish(t.Context(), mail{To: "ann@example.com"}, xstreamq.Header("tenant", "acme")); err != nil {
		t.Fatal(err)
	}
	got := xstreamqtest.Published(kit, mails)
	if len(got) != 1 || got[0].Body.To != "ann@example.com" || got[0].Headers["tenant"] != "acme" {
		t.Errorf("published %+v", got)
	}
}

// Handle is for tests of a handler together with its options.
func ExampleHandle() {
	kit := xstreamqtest.New(t)
	outcome, err := xstreamqtest.Handle(kit, send, mail{To: "nobody"}, xstreamq.MaxRetries(0), xstreamq.HandlerTimeout(time.Second))
	if outcome != xstreamq.OutcomeAcked {
		t.Errorf("%s: %v", outcome, err)
	}
}
