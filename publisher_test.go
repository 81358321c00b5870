package xstreamq_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

// holding is a hook of the client library that keeps every pipeline after the first until it is let go.
type holding struct {
	pipelines atomic.Int32
	held      chan struct{}
	release   chan struct{}
}

func (*holding) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*holding) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *holding) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "xadd" && h.pipelines.Add(1) == 2 { // a connection's own first commands are one too
			close(h.held)
			<-h.release
		}
		return next(ctx, cmds)
	}
}

// A batch whose context ends while its second pipeline is on the wire: what the first one confirmed stands, the second is
// uncertain, the third was never sent.
func TestBatchCutBetweenPipelines(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := &holding{held: make(chan struct{}), release: make(chan struct{})}
	rdb := s.borrowed()
	rdb.AddHook(h)
	c, err := xstreamq.New(rdb, xstreamq.Prefix(s.prefix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-h.held
		cancel()
	}()
	time.AfterFunc(10*time.Second, cancel)
	const each = 1024
	got, err := s.queue(c).PublishBatch(ctx, make([]order, 3*each))
	close(h.release)
	var failed xstreamq.BatchErrors
	if !errors.As(err, &failed) || len(failed) != 2*each {
		t.Fatalf("%d failed, want %d: %v", len(failed), 2*each, err)
	}
	for i, p := range got {
		want := []error{nil, xstreamq.ErrUncertain, xstreamq.ErrUnavailable}[i/each]
		if !errors.Is(failed[i], want) || (p.ID == "") != (want != nil) {
			t.Fatalf("message %d: id %q, %v; want %v", i, p.ID, failed[i], want)
		}
	}
}

// Large bodies go in several pipelines: what one holds is bounded in bytes.
func TestPipelinesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := &holding{held: make(chan struct{}), release: make(chan struct{})}
	close(h.release)
	rdb := s.borrowed()
	rdb.AddHook(h)
	c, err := xstreamq.New(rdb, xstreamq.Prefix(s.prefix))
	if err != nil {
		t.Fatal(err)
	}
	q := xstreamq.NewQueue[[]byte](c, "large")
	bodies := make([][]byte, 8)
	for i := range bodies {
		bodies[i] = make([]byte, 4<<20)
	}
	if _, err := q.PublishBatch(t.Context(), bodies); err != nil {
		t.Fatal(err)
	}
	if n := h.pipelines.Load(); n != 4 {
		t.Errorf("%d pipelines for 8 bodies of 4 MiB, want 4", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
