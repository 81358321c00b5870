package demo

import (
	"strings"
	"testing"
)

// whole is a ledger of a run in which all went as planned.
func whole(messages int) *ledger {
	l, held := newLedger(), map[string]bool{}
	for n := range messages {
		id := string(rune('a'+n%26)) + strings.Repeat("x", n/26)
		l.published(id, n)
		k := plan(n)
		for range min(k.failures(), maxRetries) {
			l.retried(id)
		}
		if k == expired {
			l.died(id)
			l.redrives++
		}
		l.acked(id)
		if n < heldBySlow {
			l.recovered(id)
			held[id] = true
		}
	}
	l.heldBy2(held)
	l.fix()
	return l
}

func TestTallyAddsUp(t *testing.T) {
	t.Parallel()
	l := whole(100)
	if err := l.check(100); err != nil {
		t.Fatal(err)
	}
	got := l.tally()
	want := Tally{Published: 100, Acked: 100, Retried: 32, LostLeases: heldBySlow, Dead: 4, Redriven: 4}
	if got != want {
		t.Errorf("tally %+v, want %+v", got, want)
	}
}

func TestTallySeesEveryDifference(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(l *ledger){
		"an ack is missing":    func(l *ledger) { delete(l.acks, "a") },
		"acked twice":          func(l *ledger) { l.acked("a") },
		"acked, not published": func(l *ledger) { l.acked("stranger") },
		"a retry is missing":   func(l *ledger) { l.retries["f"]-- },
		"retried for nothing":  func(l *ledger) { l.retried("a") },
		"died for nothing":     func(l *ledger) { l.died("a") },
		"a redrive is missing": func(l *ledger) { l.redrives-- },
		"a lease is missing":   func(l *ledger) { delete(l.lost, "a") },
		"nothing was held":     func(l *ledger) { l.held = nil },
		"one was lost":         func(l *ledger) { delete(l.numbers, "a"); delete(l.acks, "a") },
	} {
		l := whole(100)
		spoil(l)
		if err := l.check(100); err == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}

func TestDeadAsPlanned(t *testing.T) {
	t.Parallel()
	l := whole(100)
	stored := map[string]bool{}
	for id := range l.deaths {
		stored[id] = true
	}
	if err := l.checkDead(stored); err != nil {
		t.Error(err)
	}
	delete(stored, "n") // order 13
	if err := l.checkDead(stored); err == nil {
		t.Error("a missing dead letter was not seen")
	}
	stored["n"], stored["a"] = true, true
	if err := l.checkDead(stored); err == nil {
		t.Error("a dead letter that nobody planned was not seen")
	}
}
