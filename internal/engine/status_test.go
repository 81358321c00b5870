package engine

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A loop that makes no step for long is wedged, one that waits for work is not, and one that ended is dead, unless all were
// told to end.
func TestStatusOfLoops(t *testing.T) {
	t.Parallel()
	s := New(t.Context(), Config{Concurrency: 1, Interval: time.Second, Visibility: time.Minute})
	s.ticks.step()
	s.reads.step()
	s.sweeps.step()
	s.sweeps.rest()
	now := time.Now()
	if st := s.Status(now.Add(time.Minute)); len(st.Silent)+len(st.Dead) > 0 {
		t.Errorf("%+v", st)
	}
	st := s.Status(now.Add(time.Minute + 4*time.Second))
	if !slices.EqualFunc(st.Silent, []string{"tick", "read"}, strings.HasPrefix) || len(st.Dead) > 0 {
		t.Errorf("%+v", st)
	}
	s.sweeps.over.Store(true)
	if st := s.Status(now); !slices.Equal(st.Dead, []string{"sweep"}) {
		t.Errorf("%+v", st)
	}
	close(s.draining)
	if st := s.Status(now.Add(time.Hour)); len(st.Silent)+len(st.Dead) > 0 {
		t.Errorf("stopping: %+v", st)
	}
}

// A read whose answer is overdue is trouble before it is given up: its connection may be dead without a word.
func TestStatusOfAnOverdueRead(t *testing.T) {
	t.Parallel()
	s := New(t.Context(), Config{Concurrency: 1, Interval: time.Second, Visibility: time.Minute})
	now := time.Now()
	if st := s.Status(now.Add(time.Hour)); st.Trouble != nil {
		t.Errorf("no read is under way: %v", st.Trouble)
	}
	s.awaited.Store(int64(now.Sub(epoch) + 2500*time.Millisecond))
	if st := s.Status(now.Add(2400 * time.Millisecond)); st.Trouble != nil {
		t.Errorf("not yet due: %v", st.Trouble)
	}
	if st := s.Status(now.Add(2600 * time.Millisecond)); st.Trouble == nil || st.Trouble.Error() != "read: its answer is overdue by 100ms" {
		t.Errorf("overdue: %v", st.Trouble)
	}
}
