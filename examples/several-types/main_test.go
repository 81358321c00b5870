package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/examples/internal/servers"
)

func TestSeveralTypes(t *testing.T) {
	t.Parallel()
	client, err := xstreamq.Open(servers.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	created, cancelled, dead := make(chan Created, 1), make(chan Cancelled, 1), make(chan xstreamq.DeadLetter, 1)
	k := kinds{}
	on(k, "created", func(_ context.Context, c Created) error { created <- c; return nil })
	on(k, "cancelled", func(_ context.Context, c Cancelled) error { cancelled <- c; return nil })
	orders := xstreamq.NewQueue[json.RawMessage](client, "orders")
	if _, err := orders.Subscribe("warehouse", k.handle, xstreamq.MaxRetries(0),
		xstreamq.OnDeadLetter(func(_ context.Context, l xstreamq.DeadLetter) { dead <- l })); err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for kind, v := range map[string]any{"created": Created{1, 4200}, "cancelled": Cancelled{2, "late"}, "paid": 3} {
		if err := publish(t.Context(), orders, kind, v); err != nil {
			t.Fatal(err)
		}
	}
	if c := <-created; c != (Created{1, 4200}) {
		t.Errorf("created %+v", c)
	}
	if c := <-cancelled; c != (Cancelled{2, "late"}) {
		t.Errorf("cancelled %+v", c)
	}
	if l := <-dead; l.Error != `kind "paid" is unknown here` {
		t.Errorf("dead of %q", l.Error)
	}
}
