package commit

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Everything added is flushed once, each caller's in order, one batch at a time, none larger than the most.
func TestGroup(t *testing.T) {
	t.Parallel()
	const callers, each, most = 32, 500, 64
	type item struct{ caller, n int }
	var got []item
	var flushing atomic.Int32
	g := New(most, func(list []item) {
		if flushing.Add(1) != 1 {
			t.Error("two flushes at once")
		}
		defer flushing.Add(-1)
		if len(list) == 0 || len(list) > most {
			t.Errorf("a batch of %d", len(list))
		}
		got = append(got, list...)
	})
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for n := 0; n < each; n += 2 {
				g.Add(item{c, n}, item{c, n + 1})
			}
		})
	}
	all.Wait()
	g.Wait()
	if len(got) != callers*each {
		t.Fatalf("%d items were flushed, want %d", len(got), callers*each)
	}
	next := [callers]int{}
	for _, it := range got {
		if it.n != next[it.caller] {
			t.Fatalf("caller %d: item %d came after %d", it.caller, it.n, next[it.caller]-1)
		}
		next[it.caller]++
	}
}

// A lone item goes at once; while it is on its way the next batch fills.
func TestGroupFillsWhileItFlushes(t *testing.T) {
	t.Parallel()
	batches, goOn := make(chan []int), make(chan struct{})
	g := New(100, func(list []int) {
		batches <- slices.Clone(list)
		<-goOn
	})
	g.Add(1)
	if b := <-batches; !slices.Equal(b, []int{1}) {
		t.Errorf("first batch %v", b)
	}
	want := []int{2, 3, 4, 5, 6}
	for _, n := range want {
		g.Add(n)
	}
	goOn <- struct{}{}
	if b := <-batches; !slices.Equal(b, want) {
		t.Errorf("second batch %v, want %v", b, want)
	}
	close(goOn)
	g.Wait()
	g.Add()
	g.Wait() // nothing added: nothing to wait for
}

// What a flush adds again comes in a later batch, and is waited for.
func TestGroupAddsWithinAFlush(t *testing.T) {
	t.Parallel()
	var got []int
	var g *Group[int]
	g = New(10, func(list []int) {
		got = append(got, list...)
		for _, n := range list {
			if n > 0 {
				g.Add(n - 1)
			}
		}
	})
	g.Add(3)
	g.Wait()
	if !slices.Equal(got, []int{3, 2, 1, 0}) {
		t.Errorf("flushed %v", got)
	}
}

func TestWaitFor(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	g := New(10, func([]int) { <-goOn })
	g.Add(1)
	start := time.Now()
	g.WaitFor(30 * time.Millisecond)
	if took := time.Since(start); took < 30*time.Millisecond {
		t.Errorf("it waited %v for a flush that was under way", took)
	}
	close(goOn)
	g.WaitFor(time.Hour)
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for try, ms := range []int64{50, 100, 200, 400, 800, 1600, 2000, 2000, 2000} {
		most := time.Duration(ms) * time.Millisecond
		for range 200 {
			if d := Backoff(try); d < most/2 || d > most {
				t.Fatalf("try %d waits %v, want %v to %v", try, d, most/2, most)
			}
		}
	}
	if d := Backoff(1 << 40); d > 2*time.Second {
		t.Errorf("a late try waits %v", d)
	}
}
