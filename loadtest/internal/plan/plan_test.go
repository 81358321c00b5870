package plan

import (
	"encoding/json"
	"testing"
	"time"
)

func TestShares(t *testing.T) {
	t.Parallel()
	p := Plan{Seed: 7, Fail: 25, MaxRetries: 3, MaxWork: 10 * time.Millisecond}
	const n = 100_000
	failed, dead, panics := 0, 0, 0
	var work time.Duration
	for seq := range int64(n) {
		if p.Fails(seq, 1) {
			failed++
			if p.Panics(seq, 1) {
				panics++
			}
		}
		if p.Dead(seq) {
			dead++
			for attempt := 1; attempt <= 4; attempt++ {
				if !p.Fails(seq, attempt) {
					t.Fatalf("message %d is dead though attempt %d succeeds", seq, attempt)
				}
			}
		} else if a := p.Attempts(seq); p.Fails(seq, a) || a > 4 {
			t.Fatalf("message %d is done by attempt %d, which fails", seq, a)
		}
		work += p.Work(seq, 1)
	}
	within := func(what string, got, want, by float64) {
		t.Helper()
		if got < want-by || got > want+by {
			t.Errorf("%s: %v, want %v ± %v", what, got, want, by)
		}
	}
	within("share of failures", float64(failed)/n, 0.25, 0.01)
	within("share of dead", float64(dead)/n, 0.25*0.25*0.25*0.25, 0.001)
	within("share of panics", float64(panics)/float64(failed), 0.125, 0.01)
	within("mean work in ms", work.Seconds()*1000/n, 5, 0.1)
}

func TestPure(t *testing.T) {
	t.Parallel()
	p, q, other := Plan{Seed: 1, Fail: 25, MaxRetries: 3}, Plan{Seed: 1, Fail: 25, MaxRetries: 3}, Plan{Seed: 2, Fail: 25, MaxRetries: 3}
	differ := 0
	for seq := range int64(1000) {
		if p.Attempts(seq) != q.Attempts(seq) || p.Dead(seq) != q.Dead(seq) || p.Body(seq) != q.Body(seq) {
			t.Fatalf("message %d: two answers", seq)
		}
		if p.Attempts(seq) != other.Attempts(seq) {
			differ++
		}
		var task Task
		if err := json.Unmarshal([]byte(p.Body(seq)), &task); err != nil || task.Seq != seq {
			t.Fatalf("body %s: %v", p.Body(seq), err)
		}
	}
	if differ < 100 {
		t.Errorf("another seed changes %d of 1000 messages", differ)
	}
}

func TestNoRetries(t *testing.T) {
	t.Parallel()
	p := Plan{Seed: 3, Fail: 50}
	for seq := range int64(100) {
		if p.Attempts(seq) != 1 || p.Dead(seq) != p.Fails(seq, 1) {
			t.Errorf("message %d: %d attempts, dead %v", seq, p.Attempts(seq), p.Dead(seq))
		}
	}
}
