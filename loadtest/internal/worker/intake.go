package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/loadtest/internal/plan"
)

// Intake is how a worker takes messages.
type Intake string

// The three intakes of the library.
const (
	Handler Intake = "handler" // Subscribe
	Batch   Intake = "batch"   // SubscribeBatch
	Pull    Intake = "pull"    // Pull and Receive
)

// Intakes are all there are.
var Intakes = []Intake{Handler, Batch, Pull}

// Of a batch, and of one Receive.
const (
	batchSize = 8
	batchWait = 20 * time.Millisecond
)

// task is a message and its run in the ledger.
type task struct {
	*xstreamq.Message[plan.Task]
	run int64
}

// batch works on all of a batch at once, and names those that fail.
func (h *handler) batch(ctx context.Context, ms []*xstreamq.Message[plan.Task]) error {
	var work time.Duration
	tasks := make([]task, len(ms))
	failed := xstreamq.BatchErrors{}
	for i, m := range ms {
		tasks[i] = task{m, h.begin(h.runOf(m), m)}
		if err := h.altered(tasks[i]); err != nil {
			failed[i] = err
			continue
		}
		work = max(work, h.plan.Work(m.Body.Seq, m.Attempt))
	}
	done := h.work(ctx, work)
	for i, t := range tasks {
		if _, altered := failed[i]; altered {
			continue
		}
		if !done {
			h.cut(t)
		} else if err := h.end(t); err != nil {
			failed[i] = err
			if len(ms) == 1 && h.plan.Panics(t.Body.Seq, t.Attempt) { // beside others it would fail them as well
				panic(err)
			}
		}
	}
	if !done {
		return context.Cause(ctx)
	}
	return failed.Err()
}

// pull works with as many goroutines as a subscription would have handlers, until ctx ends; then each finishes what it has.
func (h *handler) pull(ctx context.Context, p *xstreamq.Puller[plan.Task], goroutines int) error {
	var all sync.WaitGroup
	errs := make([]error, goroutines)
	for i := range goroutines {
		all.Go(func() {
			for ctx.Err() == nil && errs[i] == nil {
				list, err := p.Receive(ctx, batchSize)
				if err != nil && ctx.Err() == nil {
					errs[i] = err
				}
				for _, m := range list {
					h.pulled(context.WithoutCancel(ctx), m)
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// pulled does one message and settles it. What becomes of the settlement the hook tells.
func (h *handler) pulled(ctx context.Context, m *xstreamq.Received[plan.Task]) {
	t := task{&m.Message, h.begin(h.runOf(&m.Message), &m.Message)}
	if err := h.altered(t); err != nil {
		_ = m.Reject(ctx, err)
		return
	}
	h.work(ctx, h.plan.Work(m.Body.Seq, m.Attempt))
	if err := h.end(t); err != nil {
		_ = m.Retry(ctx, 0, err)
		return
	}
	_ = m.Ack(ctx)
}
