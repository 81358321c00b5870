package xstreamq

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/xstreamq/xstreamq/internal/commit"
	"github.com/xstreamq/xstreamq/internal/engine"
)

// watch tells hooks what the engine saw.
func (s *Subscription) watch(ctx context.Context) engine.Watch {
	c, ref := s.c, s.ref
	w := engine.Watch{}
	if len(s.cfg.onDeadLetter) > 0 || c.hooks.any() {
		s.tell = commit.New(100, func(ids []string) { s.tellDead(ctx, ids) })
		w.Buried = func(_ context.Context, deadID string) { s.tell.Add(deadID) }
	}
	if !c.hooks.any() {
		return w
	}
	s.news = commit.New(100, func(list []func()) {
		for _, f := range list {
			f()
		}
	})
	of := func(r *engine.Run) (context.Context, *Delivery) {
		if h, ok := r.Carry.Load().(handled); ok {
			return h.ctx, h.d
		}
		d := s.delivery(r)
		return ctx, &d
	}
	w.Ended = func(r *engine.Run, e engine.End) {
		if r.Carry.Load() == nil && (e.Outcome == engine.Released || e.Outcome == engine.LostIt) {
			return // it never started
		}
		hctx, d := of(r)
		c.hooks.each("HandleEnd", func(x Hooks) {
			if x.HandleEnd != nil {
				x.HandleEnd(hctx, d, Outcome(e.Outcome), e.Err, e.Took)
			}
		})
	}
	w.LeaseLost = func(r *engine.Run) {
		if r.Carry.Load() == nil {
			return // likewise
		}
		hctx, d := of(r)
		c.hooks.each("LeaseLost", func(x Hooks) {
			if x.LeaseLost != nil {
				x.LeaseLost(hctx, d)
			}
		})
	}
	w.Reclaimed = func(n int) {
		c.hooks.each("Reclaimed", func(x Hooks) {
			if x.Reclaimed != nil {
				x.Reclaimed(ctx, ref, n)
			}
		})
	}
	later := func(name string, f func(Hooks)) { s.news.Add(func() { c.hooks.each(name, f) }) }
	w.Remade = func(position string) {
		later("GroupRemade", func(x Hooks) {
			if x.GroupRemade != nil {
				x.GroupRemade(ctx, ref, Position(position))
			}
		})
	}
	w.Connection = func(up bool, err error) {
		later("Connection", func(x Hooks) {
			if x.Connection != nil {
				x.Connection(ctx, up, err)
			}
		})
	}
	w.Paused = func(paused bool, flag string) {
		later("Paused", func(x Hooks) {
			if x.Paused != nil {
				x.Paused(ctx, ref, paused, pauseReason(flag))
			}
		})
	}
	w.Compacted = func(removed int64) {
		c.hooks.each("Compacted", func(x Hooks) {
			if x.Compacted != nil {
				x.Compacted(ctx, ref.Stream, removed)
			}
		})
	}
	return w
}

// tellDead reads dead letters back and hands them to those who asked. At most once: the dead-letter queue is the record.
func (s *Subscription) tellDead(ctx context.Context, ids []string) {
	admin := s.c.Admin().Group(s.ref.Stream, s.ref.Group)
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, id := range ids {
		l, err := admin.deadLetter(bounded, id)
		if err != nil {
			if !errors.Is(err, ErrNotFound) { // redriven or purged meanwhile
				s.c.log.Warn("xstreamq: a dead letter could not be read back for its hooks", slog.String("entry", id), slog.Any("err", err))
			}
			continue
		}
		for _, f := range s.cfg.onDeadLetter {
			guard(s.c.log, "OnDeadLetter", func() { f(ctx, l) })
		}
		s.c.hooks.each("DeadLettered", func(x Hooks) {
			if x.DeadLettered != nil {
				x.DeadLettered(ctx, l)
			}
		})
	}
}
