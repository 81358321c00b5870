package engine

import (
	"testing"
	"time"
)

// A backlog never lets the buffer run empty; its memory is bounded all the same, and its order kept.
func TestQueueUnderBacklog(t *testing.T) {
	t.Parallel()
	var q queue
	next, want := 0, 0
	push := func() {
		q.push(&Run{arrived: epoch.Add(time.Duration(next))})
		next++
	}
	for range 10 {
		push()
	}
	for range 100_000 {
		push()
		if got := int(q.front().arrived.Sub(epoch)); got != want {
			t.Fatalf("front is %d, want %d", got, want)
		}
		q.pop()
		want++
	}
	if q.len() != 10 || len(q.list) > 1000 {
		t.Errorf("%d waiting in a list of %d", q.len(), len(q.list))
	}
}
