package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ledger is what the demo saw with its own eyes, message by message.
type ledger struct {
	mu       sync.Mutex
	numbers  map[string]int // of each id published
	acks     map[string]int
	retries  map[string]int
	deaths   map[string]int
	lost     map[string]bool // handled again after a lost lease
	held     map[string]bool // by the worker that was killed
	redrives int
	mended   bool
	changed  chan struct{} // closed and renewed with every lost lease
}

func newLedger() *ledger {
	return &ledger{
		numbers: map[string]int{}, acks: map[string]int{}, retries: map[string]int{}, deaths: map[string]int{},
		lost: map[string]bool{}, changed: make(chan struct{}),
	}
}

func (l *ledger) locked(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *ledger) published(id string, n int)  { l.locked(func() { l.numbers[id] = n }) }
func (l *ledger) acked(id string)             { l.locked(func() { l.acks[id]++ }) }
func (l *ledger) heldBy2(ids map[string]bool) { l.locked(func() { l.held = ids }) }
func (l *ledger) redriven(n int)              { l.locked(func() { l.redrives = n }) }
func (l *ledger) fix()                        { l.locked(func() { l.mended = true }) }

func (l *ledger) fixed() (is bool) {
	l.locked(func() { is = l.mended })
	return is
}

// retried and died return how many there are by now.
func (l *ledger) retried(id string) (n int) {
	l.locked(func() { l.retries[id]++; n = sum(l.retries) })
	return n
}

func (l *ledger) died(id string) (n int) {
	l.locked(func() { l.deaths[id]++; n = sum(l.deaths) })
	return n
}

func (l *ledger) recovered(id string) {
	l.locked(func() {
		l.lost[id] = true
		close(l.changed)
		l.changed = make(chan struct{})
	})
}

// waitRecovered returns when all that the killed worker held has been handed to another.
func (l *ledger) waitRecovered(ctx context.Context) error {
	for {
		var missing int
		var changed chan struct{}
		l.locked(func() { missing, changed = l.missing(), l.changed })
		if missing == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (l *ledger) missing() (n int) {
	for id := range l.held {
		if !l.lost[id] {
			n++
		}
	}
	return n
}

func (l *ledger) tally() (t Tally) {
	l.locked(func() {
		t = Tally{
			Published: len(l.numbers), Acked: sum(l.acks), Retried: sum(l.retries), LostLeases: len(l.lost),
			Dead: sum(l.deaths), Redriven: l.redrives,
		}
	})
	return t
}

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// checkDead compares the dead letters that the server holds with those that were planned and those that were seen.
func (l *ledger) checkDead(stored map[string]bool) (err error) {
	l.locked(func() {
		for id, n := range l.numbers {
			want := plan(n) == expired
			if stored[id] != want || (l.deaths[id] == 1) != want {
				err = errors.Join(err, fmt.Errorf("order %d: dead on the server %v, seen to die %d times, want %v", n, stored[id], l.deaths[id], want))
			}
		}
	})
	return err
}

// check holds the ledger against the plan: every message was acked exactly once, failed as often as planned, and what
// the killed worker held came back.
func (l *ledger) check(messages int) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the tally does not add up: %w", err)
		}
	}()
	miss := func(format string, args ...any) { err = errors.Join(err, fmt.Errorf(format, args...)) }
	l.locked(func() {
		if len(l.numbers) != messages {
			miss("%d published, want %d", len(l.numbers), messages)
		}
		dead := 0
		for id, n := range l.numbers {
			k := plan(n)
			if l.acks[id] != 1 {
				miss("order %d: acked %d times, want once", n, l.acks[id])
			}
			if want := min(k.failures(), maxRetries); l.retries[id] != want {
				miss("order %d: retried %d times, want %d", n, l.retries[id], want)
			}
			if k == expired {
				dead++
			}
		}
		if sum(l.acks) != messages {
			miss("%d acks, want %d", sum(l.acks), messages)
		}
		if l.redrives != dead || sum(l.deaths) != dead {
			miss("%d died and %d were redriven, want %d", sum(l.deaths), l.redrives, dead)
		}
		if len(l.held) == 0 || l.missing() > 0 {
			miss("of %d orders that the killed worker held, %d were not recovered", len(l.held), l.missing())
		}
	})
	return err
}
