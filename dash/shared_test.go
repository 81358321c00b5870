package dash

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xstreamq/xstreamq"
)

// However many tabs ask, and however often: one question an interval, and fewer when it takes long.
func TestSharedAsksOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := newShared(ctx, time.Second)
		var asked atomic.Int64
		takes := time.Duration(0)
		ask := func(key string) (int64, error) {
			return once(t.Context(), s, key, func(context.Context) (int64, error) {
				n := asked.Add(1)
				time.Sleep(takes)
				return n, nil
			})
		}
		tabs := func() {
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					if _, err := ask("a"); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		for range 40 { // ten seconds
			tabs()
			time.Sleep(250 * time.Millisecond)
		}
		if n := asked.Load(); n != 10 {
			t.Errorf("50 tabs made it ask %d times in ten seconds, want 10", n)
		}
		takes = time.Second
		time.Sleep(time.Second)
		asked.Store(0)
		tabs()
		time.Sleep(8 * time.Second)
		tabs()
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times within nine seconds for what takes one", n)
		}
		takes = 0
		s.forget()
		if n, _ := ask("a"); n != 2 {
			t.Errorf("after a change the old answer is given: %d", n)
		}
		for i := range 2 * sharedMost {
			if _, err := ask(strconv.Itoa(i)); err != nil {
				t.Error(err)
			}
		}
		kept := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.answers)
		}
		if n := kept(); n > sharedMost {
			t.Errorf("%d answers are kept", n)
		}
		time.Sleep(2 * time.Second)
		if n := kept(); n != 0 {
			t.Errorf("%d answers are kept after their time", n)
		}
		end()
		if _, err := once(t.Context(), s, "b", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }); err == nil {
			t.Error("a closed dashboard answers")
		}
	})
}

func TestSharedKeepsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t.Context(), time.Second)
		fail := errors.New("down")
		if _, err := once(t.Context(), s, "a", func(context.Context) (int, error) { return 0, fail }); !errors.Is(err, fail) {
			t.Error(err)
		}
		if n, err := once(t.Context(), s, "a", func(context.Context) (int, error) { return 7, nil }); n != 7 || err != nil {
			t.Error(n, err)
		}
		// Who asked first and went away takes nobody's answer along.
		ctx, leave := context.WithCancel(t.Context())
		leave()
		slow := func(context.Context) (int, error) { time.Sleep(time.Second); return 8, nil }
		if _, err := once(ctx, s, "b", slow); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n, err := once(t.Context(), s, "b", slow); n != 8 || err != nil {
			t.Error(n, err)
		}
		if _, err := once(t.Context(), s, "c", func(context.Context) (int, error) { return 0, xstreamq.ErrNotFound }); !errors.Is(err, xstreamq.ErrNotFound) {
			t.Error(err)
		}
	})
}
