// Package worker is a worker process: the library's public API, and a handler that does as the plan says and tells the
// ledger.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
	"github.com/xstreamq/xstreamq/loadtest/internal/plan"
)

// Spec is all that a worker is told.
type Spec struct {
	URL, Stream, Group string
	Name               string // its consumers' prefix, and its name in the ledger
	Ledger             string // the file it writes
	Plan               plan.Plan
	Visibility         time.Duration
	DrainTimeout       time.Duration
	Concurrency        int
	MaxLost            int
	DedupeTTL          time.Duration
	Sample             time.Duration // how often it tells its goroutines and heap; 0 = never
}

// run is one run of the handler.
type run struct{ n int64 }

type runKey struct{}

var errPlanned = errors.New("fails as planned")

// Run works until the process is asked to end.
func Run(spec Spec) (err error) {
	book, err := ledger.Create(spec.Ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	hooks := xstreamq.Hooks{
		HandleStart: func(ctx context.Context, _ *xstreamq.Delivery) context.Context {
			return context.WithValue(ctx, runKey{}, &run{})
		},
		HandleEnd: func(ctx context.Context, _ *xstreamq.Delivery, o xstreamq.Outcome, _ error, _ time.Duration) {
			if r, ok := ctx.Value(runKey{}).(*run); ok && r.n > 0 { // else no handler ran: skipped
				book.Settled(r.n, string(o))
			}
		},
	}
	client, err := xstreamq.Open(spec.URL, xstreamq.ConsumerPrefix(spec.Name), xstreamq.DrainTimeout(spec.DrainTimeout),
		xstreamq.WithHooks(hooks), xstreamq.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	opts := []xstreamq.SubscribeOption{
		xstreamq.VisibilityTimeout(spec.Visibility), xstreamq.MaxRetries(spec.Plan.MaxRetries), xstreamq.Concurrency(spec.Concurrency),
		xstreamq.WithBackoff(xstreamq.Exponential{Initial: 100 * time.Millisecond, Max: time.Second}),
		// A process that was stopped for longer than its handlers may take would fail what it should only lose.
		xstreamq.HandlerTimeout(10 * time.Minute),
	}
	if spec.MaxLost > 0 {
		opts = append(opts, xstreamq.MaxLost(spec.MaxLost))
	}
	if spec.DedupeTTL > 0 {
		opts = append(opts, xstreamq.DedupeTTL(spec.DedupeTTL))
	}
	h := &handler{plan: spec.Plan, book: book}
	if _, err := xstreamq.NewQueue[plan.Task](client, spec.Stream).Subscribe(spec.Group, h.handle, opts...); err != nil {
		return err
	}
	if spec.Sample > 0 {
		go sample(ctx, book, spec.Sample)
	}
	return client.Run(ctx)
}

type handler struct {
	plan plan.Plan
	book *ledger.Writer
	last atomic.Int64
}

func (h *handler) handle(ctx context.Context, m *xstreamq.Message[plan.Task]) error {
	n, seq := h.last.Add(1), m.Body.Seq
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		r.n = n
	}
	h.book.Started(n, seq, m.Attempt, m.Lost, m.ID)
	if string(m.Raw) != h.plan.Body(seq) || m.Headers["n"] != strconv.FormatInt(seq, 10) {
		h.book.Ended(n, ledger.Bad)
		return xstreamq.Reject(fmt.Errorf("not what was published: %.200q, headers %v", m.Raw, m.Headers))
	}
	t := time.NewTimer(h.plan.Work(seq, m.Attempt))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		h.book.Ended(n, ledger.Cut)
		return context.Cause(ctx)
	}
	if !h.plan.Fails(seq, m.Attempt) {
		h.book.Ended(n, ledger.OK)
		return nil
	}
	h.book.Ended(n, ledger.Fail)
	if h.plan.Panics(seq, m.Attempt) {
		panic(errPlanned)
	}
	return errPlanned
}

// sample tells what the process is made of, each time after a collection.
func sample(ctx context.Context, book *ledger.Writer, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			book.Sampled(runtime.NumGoroutine(), m.HeapAlloc)
		}
	}
}
