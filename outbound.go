package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/commit"
	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/keys"
)

// outbound is a message on its way.
type outbound struct {
	keys   keys.Stream
	body   []byte
	cfg    publishConfig
	window time.Duration

	few    [4]string // where fields begins, as argv is where the command's arguments do
	argv   [7]any
	fields []string
	random string // fixed before the first send, so that a repeated publish is the same one

	state atomic.Int32 // queued, sent, stored, answered or withdrawn
	cmd   xadd
	done  *countdown
	id    string
	dup   bool
	err   error // of a plain one

	replication
}

// xadd is a command that go-redis never sends a second time; see lua.Once.
type xadd struct{ *redis.StringCmd }

func (xadd) NoRetry() bool { return true }

const (
	queued int32 = iota
	sent
	stored // waits for replicas
	answered
	withdrawn
)

func (m *outbound) result() Published { return Published{ID: m.id, Duplicate: m.dup} }

// plain says that one XADD will do. Whether a time is past is the server's clock's to say.
func (m *outbound) plain() bool {
	return m.cfg.dedupe == "" && m.cfg.delay <= 0 && m.cfg.at.IsZero()
}

// countdown lets one caller wait until all parts have been answered.
type countdown struct {
	left atomic.Int32
	all  chan struct{}
}

func (c *countdown) one() {
	if c.left.Add(-1) == 0 {
		c.all <- struct{}{}
	}
}

// overBefore refuses to send for a caller whose context has ended already.
func overBefore(ctx context.Context, m *outbound) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("publish to %s: %w: %w", m.keys.Name, ErrUnavailable, context.Cause(ctx))
}

// given is what a message came to whose caller's time ended first.
func (m *outbound) given(cause error) error {
	if m.state.CompareAndSwap(queued, withdrawn) {
		return fmt.Errorf("publish to %s: %w: %w", m.keys.Name, ErrUnavailable, cause) // never sent
	}
	if kept := m.kept.Load(); kept != nil { // also where the wait for replicas ended at this very moment
		m.state.CompareAndSwap(stored, withdrawn)
		if m.id, m.dup = kept.ID, kept.Duplicate; int(m.acked.Load()) >= m.cfg.replicas {
			return nil
		}
		return m.notReplicated(cause)
	}
	return fmt.Errorf("publish to %s: %w: %w", m.keys.Name, ErrUncertain, cause)
}

// publishError says what an error means for the message; cause is why the caller's time ended before it came, nil when it did not.
func publishError(cause error, stream string, err error) error {
	op := "publish to " + stream
	if conn.NotRun(err) || conn.Refused(err) {
		return serverError(op, err)
	}
	if cause != nil {
		return fmt.Errorf("%s: %w: %w", op, ErrUncertain, cause)
	}
	if errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("%s: %w: %w", op, ErrClosed, err)
	}
	return fmt.Errorf("%s: %w: %w", op, ErrUncertain, err)
}

// pause waits before another try; false when ctx ends first, or the time is up.
func pause(ctx context.Context, timeUp <-chan time.Time, try int) bool {
	t := time.NewTimer(commit.Backoff(try))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-timeUp:
		return false
	case <-ctx.Done():
		return false
	}
}
