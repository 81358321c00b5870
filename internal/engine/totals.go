package engine

import (
	"context"
	"sync"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// totals counts what ended here since the last tick, which adds it to the group's totals. A process that dies takes along
// what it counted since.
type totals struct {
	mu  sync.Mutex
	new lua.Totals
}

// count takes in how a delivery ended.
func (t *totals) count(outcome string, v Verdict) {
	var n lua.Totals
	switch outcome {
	case Acked:
		n.Processed = 1
	case Failed:
		n.Failed = 1
	case Rejected, Dead:
		n.Dead = 1
		if v.Verb == lua.Fail || v.Counts {
			n.Failed = 1
		}
	default:
		return
	}
	t.add(n)
}

func (t *totals) add(n lua.Totals) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.new.Processed += n.Processed
	t.new.Failed += n.Failed
	t.new.Dead += n.Dead
}

func (t *totals) take() lua.Totals {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.new
	t.new = lua.Totals{}
	return n
}

// sendTotals has f add what was counted. When its answer is lost, the counts are given up rather than counted twice.
func (s *Sub) sendTotals(f func(lua.Totals) error) error {
	n := s.totals.take()
	err := f(n)
	if err != nil && (conn.Refused(err) || conn.NotRun(err)) {
		s.totals.add(n)
	}
	return err
}

// lastTotals sends what was counted since the last tick, in a tick of nobody's.
func (s *Sub) lastTotals() {
	_ = s.sendTotals(func(n lua.Totals) error {
		if n == (lua.Totals{}) {
			return nil
		}
		return s.bounded(s.base, s.callTimeout(), func(ctx context.Context) error {
			_, err := lua.Tick(ctx, s.cfg.Redis, s.cfg.Keys, "", s.cfg.Interval, n)
			return err
		})
	}) // the counts of a last moment are all that is lost
}
