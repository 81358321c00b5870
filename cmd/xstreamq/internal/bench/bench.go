// Package bench measures the queue on any server, through the public client alone. Each figure has a stream of its own
// with a random name, and takes its keys away again.
package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

// Options of a run.
type Options struct {
	// Open makes a client on the server; each figure has its own.
	Open func(...xstreamq.ClientOption) (*xstreamq.Client, error)
	// Prefix is that of Open's clients.
	Prefix   string
	Only     []string // of Names; empty: all
	Messages int      // a figure; fewer where bodies are large or callers wait for each other
	Size     int      // of a body, in bytes
	Rate     int      // messages a second, of the latency figure
	For      time.Duration
	Progress func(name string, done, total int64)
	Result   func(Result)
}

// Result is one figure.
type Result struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Units.
const (
	perSecond  = "messages/s"
	millis     = "ms"
	allocs     = "allocs/message"
	allocBytes = "B/message"
)

// measure is one measurement; it may give several results.
type measure struct {
	name string
	run  func(*bench) error
}

var measures = []measure{
	{"publish-1", func(b *bench) error { return b.publish(1, min(b.o.Messages, 20_000)) }},
	{"publish-64", func(b *bench) error { return b.publish(64, b.o.Messages) }},
	{"publish-512", func(b *bench) error { return b.publish(512, b.o.Messages) }},
	{"publish-batch", (*bench).publishBatch},
	{"drain", func(b *bench) error { return b.drain(b.o.Size) }},
	{"drain-dedupe", func(b *bench) error { return b.drain(b.o.Size, xstreamq.DedupeTTL(dedupeTTL)) }},
	{"drain-middleware", func(b *bench) error { return b.drain(b.o.Size, xstreamq.WithMiddleware(through, through)) }},
	{"drain-1k", func(b *bench) error { return b.drain(1 << 10) }},
	{"drain-64k", func(b *bench) error { return b.drain(64 << 10) }},
	{"failing", (*bench).failing},
	{"latency", (*bench).latency},
	{"latency-idle", (*bench).latencyIdle},
	{"reclaim", (*bench).reclaim},
	{"promote", (*bench).promote},
	{"idle", (*bench).idle},
}

// Names are the measurements, in order.
func Names() []string {
	out := make([]string, len(measures))
	for i, m := range measures {
		out[i] = m.name
	}
	return out
}

func through(next xstreamq.Handler) xstreamq.Handler {
	return func(ctx context.Context, d *xstreamq.Delivery) error { return next(ctx, d) }
}

// Run measures until all is done or ctx ends.
func Run(ctx context.Context, o Options) error {
	for _, m := range measures {
		if len(o.Only) > 0 && !slices.Contains(o.Only, m.name) {
			continue
		}
		if err := one(ctx, o, m); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

const group = "bench"

// bench is one measurement under way.
type bench struct {
	//nolint:containedctx // a measurement is one call
	ctx    context.Context
	o      Options
	name   string
	stream string
	c      *xstreamq.Client
	q      *xstreamq.Queue[[]byte]
	raw    redis.UniversalClient // for what is no part of the API: a consumer that dies, and taking the keys away
	wire   *counter
	ids    []string // of messages that left a marker
}

func one(ctx context.Context, o Options, m measure) (err error) {
	b := &bench{ctx: ctx, o: o, name: m.name, stream: "xstreamq-bench-" + strings.ToLower(rand.Text()[:12]), wire: &counter{}}
	// Every client says what became of its Redis options; the second is ours to copy from.
	var opt redis.UniversalOptions
	b.c, err = o.Open(xstreamq.RedisOptions(func(u *redis.UniversalOptions) {
		opt = *u
		b.wire.watch(u)
	}))
	if err != nil {
		return err
	}
	b.raw = redis.NewUniversalClient(&opt)
	b.q = xstreamq.NewQueue[[]byte](b.c, b.stream)
	defer func() {
		err = errors.Join(err, b.c.Close()) // before its keys go: a worker would write some anew
		err = errors.Join(err, b.clean(), b.raw.Close())
	}()
	return m.run(b)
}

func (b *bench) result(suffix string, v float64, unit string) {
	b.o.Result(Result{b.name + suffix, v, unit})
}

func (b *bench) progress(done, total int) { b.o.Progress(b.name, int64(done), int64(total)) }

// meter is what a stretch of work cost.
type meter struct {
	start  time.Time
	before runtime.MemStats
}

func begin() *meter {
	m := &meter{}
	runtime.GC()
	runtime.ReadMemStats(&m.before)
	m.start = time.Now()
	return m
}

// end reports the rate of n messages, and what memory each took in this process.
func (m *meter) end(b *bench, n int) {
	secs := time.Since(m.start).Seconds()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	b.result("", float64(n)/secs, perSecond)
	b.result("-allocs", float64(after.Mallocs-m.before.Mallocs)/float64(n), allocs)
	b.result("-memory", float64(after.TotalAlloc-m.before.TotalAlloc)/float64(n), allocBytes)
}

// clean takes away every key of the stream, also after ctx has ended.
func (b *bench) clean() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), 30*time.Second)
	defer cancel()
	main := b.o.Prefix + "{" + b.stream + "}"
	names := []string{main}
	for _, s := range []string{".due", ".parked", ".groups", ".meta"} {
		names = append(names, main+s, main+"."+group+s)
	}
	for _, s := range []string{".retry", ".dlq", ".workers", ".paused"} {
		names = append(names, main+"."+group+s)
	}
	for _, id := range b.ids {
		names = append(names, main+"."+group+".seen:"+sha1Hex(id))
	}
	for part := range slices.Chunk(names, 1000) {
		if err := b.raw.Unlink(ctx, part...).Err(); err != nil {
			return fmt.Errorf("keys of %s stay behind: %w", main, err)
		}
	}
	err := b.raw.SRem(ctx, b.o.Prefix+"xstreamq:registry", `["`+b.stream+`",""]`, `["`+b.stream+`","`+group+`"]`).Err()
	if err != nil {
		return fmt.Errorf("%s stays in the registry: %w", b.stream, err)
	}
	return nil
}
