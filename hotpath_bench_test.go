package xstreamq_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// The hot paths, a message an iteration: `go test -run '^$' -bench . -count 10 . | tee new`, then benchstat old new.

var benchBody = bytes.Repeat([]byte("x"), 128)

func benchQueue(b *testing.B, opts ...xstreamq.ClientOption) (*xstreamq.Client, *xstreamq.Queue[[]byte]) {
	b.Helper()
	c, err := xstreamq.New(redistest.Shared(b).Client(b), append(opts, xstreamq.Prefix(redistest.Prefix(b)))...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	q := xstreamq.NewQueue[[]byte](c, "s")
	if _, err := q.Publish(b.Context(), benchBody); err != nil { // the connection, and the stream's first time
		b.Fatal(err)
	}
	return c, q
}

func BenchmarkPublish(b *testing.B) {
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			_, q := benchQueue(b)
			b.ReportAllocs()
			b.ResetTimer()
			var next atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for next.Add(1) <= int64(b.N) {
						if _, err := q.Publish(b.Context(), benchBody); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func BenchmarkPublishBatch(b *testing.B) {
	_, q := benchQueue(b)
	b.ReportAllocs()
	b.ResetTimer()
	benchFill(b, q, b.N)
}

func benchFill(b *testing.B, q *xstreamq.Queue[[]byte], n int) {
	b.Helper()
	bodies := make([][]byte, 1000)
	for i := range bodies {
		bodies[i] = benchBody
	}
	for ; n > 0; n -= len(bodies) {
		if _, err := q.PublishBatch(b.Context(), bodies[:min(n, len(bodies))]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDrain is from a worker's start until the last of a backlog is in its handler.
func BenchmarkDrain(b *testing.B) {
	for name, opts := range map[string][]xstreamq.SubscribeOption{
		"plain": nil, "dedupe": {xstreamq.DedupeTTL(10 * time.Minute)},
	} {
		b.Run(name, func(b *testing.B) {
			c, q := benchQueue(b)
			benchFill(b, q, b.N-1) // with the first
			var done atomic.Int64
			end := make(chan struct{})
			_, err := q.Subscribe("g", func(context.Context, *xstreamq.Message[[]byte]) error {
				if done.Add(1) == int64(b.N) {
					close(end)
				}
				return nil
			}, append(opts, xstreamq.Concurrency(64))...)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			if err := c.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			<-end
		})
	}
}
