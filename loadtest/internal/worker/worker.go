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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
	"github.com/xstreamq/xstreamq/loadtest/internal/plan"
)

// Undrained is the exit code of a worker that was asked to end and could not settle all in its time.
const Undrained = 3

// Spec is all that a worker is told.
type Spec struct {
	URL, Stream, Group string
	Name               string // its consumers' prefix, and its name in the ledger
	Ledger             string // the file it writes
	Plan               plan.Plan
	Visibility         time.Duration
	DrainTimeout       time.Duration
	Concurrency        int
	Intake             Intake
	MaxLost            int
	DedupeTTL          time.Duration
	Sample             time.Duration // how often it tells its goroutines and heap; 0 = never
}

// run is one run of the handler: its number in the ledger, 0 = none ran.
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
	h := &handler{plan: spec.Plan, book: book}
	hooks := xstreamq.Hooks{
		HandleStart: func(ctx context.Context, d *xstreamq.Delivery) context.Context {
			r := &run{}
			h.runs.Store(keyOf(d), r)
			return context.WithValue(ctx, runKey{}, r)
		},
		HandleEnd: func(ctx context.Context, d *xstreamq.Delivery, o xstreamq.Outcome, _ error, _ time.Duration) {
			r, ok := ctx.Value(runKey{}).(*run)
			if !ok { // none began: skipped
				return
			}
			h.runs.CompareAndDelete(keyOf(d), r)
			if r.n > 0 {
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
	if spec.Sample > 0 {
		go sample(ctx, book, spec.Sample)
	}
	return h.run(ctx, client, spec)
}

// run subscribes in the way that the spec says, and works until ctx ends.
func (h *handler) run(ctx context.Context, client *xstreamq.Client, spec Spec) error {
	opts := []xstreamq.SubscribeOption{
		xstreamq.VisibilityTimeout(spec.Visibility), xstreamq.MaxRetries(spec.Plan.MaxRetries),
		xstreamq.WithBackoff(xstreamq.Exponential{Initial: 100 * time.Millisecond, Max: time.Second}),
	}
	if spec.MaxLost > 0 {
		opts = append(opts, xstreamq.MaxLost(spec.MaxLost))
	}
	if spec.DedupeTTL > 0 {
		opts = append(opts, xstreamq.DedupeTTL(spec.DedupeTTL))
	}
	queue := xstreamq.NewQueue[plan.Task](client, spec.Stream)
	if spec.Intake == Pull {
		p, err := queue.Pull(spec.Group, opts...)
		if err != nil {
			return err
		}
		return h.pull(ctx, p, spec.Concurrency) // closing the client stops it
	}
	// A process that was stopped for longer than its handlers may take would fail what it should only lose.
	opts = append(opts, xstreamq.Concurrency(spec.Concurrency), xstreamq.HandlerTimeout(10*time.Minute))
	var err error
	if spec.Intake == Batch {
		_, err = queue.SubscribeBatch(spec.Group, h.batch, append(opts, xstreamq.BatchSize(batchSize), xstreamq.BatchWait(batchWait))...)
	} else {
		_, err = queue.Subscribe(spec.Group, h.handle, opts...)
	}
	if err != nil {
		return err
	}
	return client.Run(ctx)
}

type handler struct {
	plan plan.Plan
	book *ledger.Writer
	last atomic.Int64
	runs sync.Map // of deliveries that began: key to *run, for intakes whose context is not their own
}

// key names a delivery: the two streams of a group may give an entry id each.
type key struct{ id, entry string }

func keyOf(d *xstreamq.Delivery) key { return key{d.ID, d.EntryID} }

func (h *handler) runOf(m *xstreamq.Message[plan.Task]) *run {
	r, ok := h.runs.Load(keyOf(&m.Delivery))
	if !ok {
		panic("no hook told of message " + m.ID)
	}
	return r.(*run)
}

// begin tells the ledger that a run begins, and returns its number.
func (h *handler) begin(r *run, m *xstreamq.Message[plan.Task]) int64 {
	r.n = h.last.Add(1)
	h.book.Started(r.n, m.Body.Seq, m.Attempt, m.Lost, m.ID)
	return r.n
}

// altered is what to reject a message with that is not what was published.
func (h *handler) altered(t task) error {
	seq := t.Body.Seq
	if string(t.Raw) == h.plan.Body(seq) && t.Headers["n"] == strconv.FormatInt(seq, 10) {
		return nil
	}
	h.book.Ended(t.run, ledger.Bad)
	return xstreamq.Reject(fmt.Errorf("not what was published: %.200q, headers %v", t.Raw, t.Headers))
}

// work takes its time; false when ctx ended first.
func (h *handler) work(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (h *handler) cut(t task) { h.book.Ended(t.run, ledger.Cut) }

// end tells the ledger how the run ends, as the plan has it, and returns its error.
func (h *handler) end(t task) error {
	if !h.plan.Fails(t.Body.Seq, t.Attempt) {
		h.book.Ended(t.run, ledger.OK)
		return nil
	}
	h.book.Ended(t.run, ledger.Fail)
	return errPlanned
}

func (h *handler) handle(ctx context.Context, m *xstreamq.Message[plan.Task]) error {
	t := task{m, h.begin(ctx.Value(runKey{}).(*run), m)}
	if err := h.altered(t); err != nil {
		return err
	}
	if !h.work(ctx, h.plan.Work(m.Body.Seq, m.Attempt)) {
		h.cut(t)
		return context.Cause(ctx)
	}
	err := h.end(t)
	if err != nil && h.plan.Panics(m.Body.Seq, m.Attempt) {
		panic(err)
	}
	return err
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
