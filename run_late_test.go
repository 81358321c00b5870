package xstreamq_test

import (
	"context"
	"errors"
	"testing"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
)

// Run ends of what no waiting mends, also when a subscription that was added later meets it.
func TestRunEndsOfALateSubscription(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	sub := s.subscribe(c, nothing)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	if err := sub.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	late := keys.NewStream(s.prefix, "late")
	if err := s.rdb.HSet(t.Context(), late.Meta, "format", "9").Err(); err != nil {
		t.Fatal(err)
	}
	q := xstreamq.NewQueue[order](c, "late")
	if _, err := q.Subscribe("svc", nothing); err != nil {
		t.Fatal(err)
	}
	if err := receiveOne(t, ended, "the end of Run"); !errors.Is(err, xstreamq.ErrFormat) {
		t.Errorf("Run: %v, want ErrFormat", err)
	}
}
