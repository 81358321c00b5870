package xstreamqtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
)

// Tally is what happened in the kit's client since New or the Drain before.
type Tally struct {
	Acked    int // deliveries that were done
	Failed   int // attempts that failed and were retried
	Rejected int // deliveries whose handler said Reject; they are also in Dead
	Snoozed  int // deliveries that were put back
	Dead     int // dead letters made, whatever the reason
}

const (
	drainMost = 10 * time.Second // real time
	drainPoll = 5 * time.Millisecond
)

// Drain starts the client when it isn't, and returns when nothing is waiting, in flight or parked: over backoffs, delays and
// leases it jumps the server's clock, so a retry after 5 minutes takes milliseconds. Messages that nobody can get rid of
// keep it: those of a group without a subscription, those of a paused group, those that snooze for ever. It fails t after
// 10 s of real time, and says what was left. A stream without groups does not keep it.
func (k *Kit) Drain() Tally {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), drainMost)
	defer cancel()
	if err := k.start(ctx); err != nil {
		k.t.Fatalf("xstreamqtest: Drain: starting the client: %v", err)
	}
	var left []xstreamq.Depth
	var trouble error
	for {
		before := k.seen.now()
		switch now, err := k.left(ctx); {
		case err == nil:
			left, trouble = now, nil
		case ctx.Err() == nil:
			trouble = err
		}
		if after := k.seen.now(); trouble == nil && ctx.Err() == nil && before == after && after.running == 0 {
			if len(left) == 0 {
				break
			}
			k.jump(left)
		}
		select {
		case <-ctx.Done():
			k.t.Fatalf("xstreamqtest: Drain: after %s %s", drainMost, k.describe(left, trouble))
		case <-time.After(drainPoll):
		}
	}
	if err := k.countDead(ctx); err != nil {
		k.t.Fatalf("xstreamqtest: Drain: reading the dead letters: %v", err)
	}
	return k.seen.take()
}

// start is the client's start, unless the test has started it.
func (k *Kit) start(ctx context.Context) error {
	select {
	case <-k.client.Stopped():
		return errors.New("the test has stopped it")
	default:
	}
	if err := k.client.Start(ctx); !errors.Is(err, xstreamq.ErrClosed) {
		return err
	}
	return nil // it runs
}

// left are the groups that hold anything that is not done or dead.
func (k *Kit) left(ctx context.Context) (left []xstreamq.Depth, err error) {
	all, err := k.client.Admin().Depths(ctx)
	for _, d := range all {
		if d.Group != "" && (d.Lag == nil || *d.Lag+d.Pending+d.Retry+d.Retrying+d.Delayed > 0) {
			left = append(left, d)
		}
	}
	return left, err
}

// jump moves the clock to what happens next, when that is a matter of time alone.
func (k *Kit) jump(left []xstreamq.Depth) {
	var pending int64
	for _, d := range left {
		if d.Lag == nil || *d.Lag+d.Retry > 0 {
			return // somebody is about to read that
		}
		pending += d.Pending
	}
	k.clock.Lock()
	defer k.clock.Unlock()
	now := k.setClock()
	at, parked := k.nextDue()
	ahead := at.Sub(now)
	if pending > 0 { // in flight, and no handler of the kit's client runs
		if lost, ok := k.nextLoss(now); ok && (!parked || lost < ahead) {
			ahead, parked = lost, true
		}
	}
	if parked && ahead > 0 {
		k.advance(ahead + time.Millisecond)
	}
}

func (k *Kit) describe(left []xstreamq.Depth, trouble error) string {
	var b strings.Builder
	if trouble != nil {
		fmt.Fprintf(&b, "the server answers %v; ", trouble)
	}
	if n := k.seen.now().running; n > 0 {
		fmt.Fprintf(&b, "%d handlers still run; ", n)
	}
	for _, d := range left {
		waiting := "unknown"
		if d.Lag != nil {
			waiting = fmt.Sprint(*d.Lag + d.Retry)
		}
		fmt.Fprintf(&b, "%s/%s has waiting %s, in flight %d, retrying %d, delayed %d", d.Stream, d.Group, waiting, d.Pending, d.Retrying, d.Delayed)
		if d.Paused {
			b.WriteString(" (paused)")
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// countDead counts the dead letters that no hook has told yet: hooks may be late, and other clients bury too.
func (k *Kit) countDead(ctx context.Context) error {
	refs, err := k.client.Admin().Registered(ctx)
	if err != nil {
		return err
	}
	for _, r := range refs {
		if r.Group == "" {
			continue
		}
		for l, err := range k.client.Admin().Group(r.Stream, r.Group).DeadLetters(ctx, xstreamq.Filter{}) {
			if errors.Is(err, xstreamq.ErrNotFound) {
				break // a group that was removed
			}
			if err != nil {
				return err
			}
			k.seen.dead(l)
		}
	}
	return nil
}

// watcher counts what the kit's client does.
type watcher struct {
	mu      sync.Mutex
	act     activity
	tally   Tally
	letters map[letter]bool
}

// activity is equal at two times when nothing was begun or ended between them.
type activity struct{ running, ended, published int }

type letter struct{ stream, group, entry string }

// started marks the context of a delivery whose handler ran.
type started struct{}

func (w *watcher) hooks() xstreamq.Hooks {
	return xstreamq.Hooks{
		PublishEnd: func(context.Context, *xstreamq.Outgoing, xstreamq.Published, error) {
			w.mu.Lock()
			w.act.published++
			w.mu.Unlock()
		},
		HandleStart: func(ctx context.Context, _ *xstreamq.Delivery) context.Context {
			w.mu.Lock()
			w.act.running++
			w.mu.Unlock()
			return context.WithValue(ctx, started{}, true)
		},
		HandleEnd: func(ctx context.Context, _ *xstreamq.Delivery, o xstreamq.Outcome, _ error, _ time.Duration) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.act.ended++
			if ctx.Value(started{}) != nil {
				w.act.running--
			}
			switch o {
			case xstreamq.OutcomeAcked:
				w.tally.Acked++
			case xstreamq.OutcomeFailed:
				w.tally.Failed++
			case xstreamq.OutcomeRejected:
				w.tally.Rejected++
			case xstreamq.OutcomeSnoozed:
				w.tally.Snoozed++
			}
		},
		DeadLettered: func(_ context.Context, l xstreamq.DeadLetter) { w.dead(l) },
	}
}

// dead counts a dead letter once, whoever tells it.
func (w *watcher) dead(l xstreamq.DeadLetter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := letter{l.Stream, l.Group, l.EntryID}
	if w.letters == nil {
		w.letters = map[letter]bool{}
	}
	if !w.letters[key] {
		w.letters[key] = true
		w.tally.Dead++
	}
}

func (w *watcher) now() activity {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.act
}

// take ends a tally and begins the next.
func (w *watcher) take() Tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tally
	w.tally = Tally{}
	return t
}
