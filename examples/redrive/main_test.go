package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/examples/internal/servers"
)

func TestRedrive(t *testing.T) {
	t.Parallel()
	url := servers.Redis(t)
	client, err := xstreamq.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	orders := xstreamq.NewQueue[string](client, "orders")
	dead := make(chan struct{}, 10)
	if _, err := orders.Subscribe("billing", func(_ context.Context, m *xstreamq.Message[string]) error { return errors.New(m.Body) },
		xstreamq.MaxRetries(0), xstreamq.OnDeadLetter(func(context.Context, xstreamq.DeadLetter) { dead <- struct{}{} })); err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range [][2]string{{"timeout", "acme"}, {"timeout", "acme"}, {"timeout", "other"}, {"no such card", "acme"}} {
		if _, err := orders.Publish(t.Context(), m[0], xstreamq.Header("tenant", m[1])); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		<-dead
	}
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		apply bool
		want  string
		left  int64
	}{
		{false, "would redrive 2, remaining 4,", 4},
		{true, "redriven 2, remaining 2,", 2},
		{true, "redriven 0, remaining 2,", 2},
	} {
		var out strings.Builder
		if err := run(t.Context(), url, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), c.apply, &out); err != nil {
			t.Fatal(err)
		}
		d, err := client.Admin().Group("orders", "billing").Depth(t.Context())
		if err != nil || !strings.HasPrefix(out.String(), c.want) || d.Dead != c.left {
			t.Errorf("apply %v: %q, %d dead, %v; want %q, %d", c.apply, out.String(), d.Dead, err, c.want, c.left)
		}
	}
}
