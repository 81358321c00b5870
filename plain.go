package xstreamq

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/commit"
	"github.com/xstreamq/xstreamq/internal/conn"
)

// Most messages, and about how many bytes of bodies, a pipeline carries.
const (
	pipelineMost  = 1024
	pipelineBytes = 8 << 20
)

// waiter is what a caller waits with. It is used again by others: a timer and a channel cost more than all else here.
type waiter struct {
	countdown
	timer *time.Timer
}

var waiters = sync.Pool{New: func() any {
	w := &waiter{countdown: countdown{all: make(chan struct{}, 1)}, timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	return w
}}

// commit sends plain messages with whatever else is waiting, and leaves each its error. It repeats only what an answer proves
// not to have run.
func (p *publisher) commit(ctx context.Context, list []*outbound) {
	if err := overBefore(ctx, list[0]); err != nil {
		for _, m := range list {
			m.err = err
		}
		return
	}
	w := waiters.Get().(*waiter) //nolint:forcetypeassert // New makes no other
	var timeUp <-chan time.Time
	until, bounded := ctx.Deadline()
	if !bounded {
		until = time.Now().Add(p.c.cfg.publishTimeout)
		w.timer.Reset(p.c.cfg.publishTimeout)
		timeUp = w.timer.C
	}
	for try := 0; ; try++ {
		cause := p.commitOnce(ctx, w, timeUp, until, list)
		if cause == nil {
			var again []*outbound
			for _, m := range list {
				if conn.NotRun(m.cmd.Err()) {
					again = append(again, m)
				}
			}
			if list = again; len(list) > 0 && pause(ctx, timeUp, try) {
				continue
			}
			w.timer.Stop()
			waiters.Put(w)
		}
		return
	}
}

// commitOnce returns why the caller's time ended before all were answered; nil when they were.
func (p *publisher) commitOnce(ctx context.Context, w *waiter, timeUp <-chan time.Time, until time.Time, list []*outbound) (cause error) {
	w.left.Store(int32(len(list))) //nolint:gosec // a batch is far smaller
	together := true
	for _, m := range list {
		m.state.Store(queued)
		m.done, m.until = &w.countdown, until
		together = together && m.cfg.replicas == 0
	}
	if together {
		p.group.Add(list...)
	} else {
		for _, m := range list {
			p.groupOf(m.cfg.replicas).Add(m)
		}
	}
	select {
	case <-w.all:
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-timeUp:
		cause = context.DeadlineExceeded
	}
	for _, m := range list {
		if cause != nil && m.state.Load() != answered {
			m.err = m.given(cause)
			continue
		}
		if m.id, m.err = m.cmd.Result(); m.err != nil {
			m.err = publishError(cause, m.keys.Name, m.err)
		} else {
			m.err = m.short
		}
	}
	return cause
}

// groupOf is the group of those that wait for n replicas: they hold nobody up who waits for none or for fewer.
func (p *publisher) groupOf(n int) *commit.Group[*outbound] {
	if n == 0 {
		return p.group
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits[n] == nil {
		p.waits[n] = commit.New(pipelineMost, func(list []*outbound) {
			p.flush(list, func(part []*outbound) { p.pipelineAndWait(n, part) })
		})
	}
	return p.waits[n]
}

// flush sends a batch, in pipelines that are bounded in bytes too.
func (p *publisher) flush(list []*outbound, pipeline func([]*outbound)) {
	for len(list) > 0 {
		n, bytes := 0, 0
		for n < len(list) && (n == 0 || bytes < pipelineBytes) {
			bytes += len(list[n].body)
			n++
		}
		pipeline(list[:n])
		list = list[n:]
	}
}

func (p *publisher) pipeline(list []*outbound) {
	ctx, cancel := context.WithTimeout(context.Background(), max(p.c.cfg.publishTimeout, 5*time.Second))
	defer cancel()
	pipe := p.c.rdb.Pipeline()
	for _, m := range list {
		m.queue(ctx, pipe)
	}
	_, err := pipe.Exec(ctx)
	for _, m := range list {
		if m.state.Load() == sent {
			m.heard(err)
			m.state.Store(answered)
		}
		m.done.one()
	}
}

// queue adds the message to a pipeline, unless it was withdrawn.
func (m *outbound) queue(ctx context.Context, pipe redis.Pipeliner) {
	if !m.state.CompareAndSwap(queued, sent) {
		return
	}
	args := append(m.argv[:0], "xadd", &m.keys.Main, "*")
	for i := range m.fields {
		args = append(args, &m.fields[i]) // a pointer: a string would be copied to the heap first
	}
	m.cmd = xadd{redis.NewStringCmd(ctx, args...)}
	_ = pipe.Process(ctx, m.cmd) // queued only
}

// heard takes the pipeline's error where it ended before this message was answered.
func (m *outbound) heard(err error) {
	if err != nil && m.cmd.Err() == nil && m.cmd.Val() == "" {
		m.cmd.SetErr(err)
	}
}
