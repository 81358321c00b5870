package xstreamq

import (
	"context"
	"errors"
	"testing"
)

// What a caller hears whose time ends at the moment at which its message's wait for replicas ends, too: it is stored.
func TestGivenAsTheWaitEnds(t *testing.T) {
	t.Parallel()
	for state, want := range map[int32]error{queued: ErrUnavailable, sent: ErrUncertain, stored: ErrNotReplicated, answered: ErrNotReplicated} {
		m := &outbound{cfg: publishConfig{replicas: 1}}
		if state == stored || state == answered {
			m.keep("1-0", false)
		}
		m.state.Store(state)
		if err := m.given(context.DeadlineExceeded); !errors.Is(err, want) || !errors.Is(err, context.DeadlineExceeded) || m.kept.Load() != nil && m.id != "1-0" {
			t.Errorf("in state %d: %v, want %v", state, err, want)
		}
	}
	m := &outbound{cfg: publishConfig{replicas: 1}}
	m.keep("1-0", false)
	m.acked.Store(1)
	if err := m.given(context.DeadlineExceeded); err != nil || m.id != "1-0" {
		t.Errorf("with all replicas: %q, %v", m.id, err)
	}
}
