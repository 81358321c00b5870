package xstreamq_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// pointerError is an error whose text a nil pointer cannot give.
type pointerError struct{ text string }

func (e *pointerError) Error() string { return e.text }

// brokenChain is an error whose cause cannot be asked for.
type brokenChain struct{}

func (brokenChain) Error() string { return "broken" }
func (brokenChain) Unwrap() error { panic("no cause to give") }

// A handler's error that panics when it is asked is a failed attempt; the process goes on.
func TestErrorsThatPanic(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		switch m.Body.ID {
		case 1:
			var none *pointerError
			return none
		case 2:
			return brokenChain{}
		case 3:
			return xstreamq.RetryAfter(time.Hour, (*pointerError)(nil))
		}
		return errors.New("plain")
	}, xstreamq.MaxRetries(0))
	s.publish(1, 4)
	said := map[string]string{}
	for _, m := range s.dead(4) {
		said[m.Body] = m.Err
	}
	for body, want := range map[string]string{
		`{"id":1}`: "nil pointer", `{"id":2}`: "no cause to give", `{"id":3}`: "nil pointer", `{"id":4}`: "plain",
	} {
		if !strings.Contains(said[body], want) {
			t.Errorf("%s failed with %q, want %q", body, said[body], want)
		}
	}
}

// Once a try may have stored a message, no refusal of a later one makes it a message that is not stored.
func TestUncertainStaysUncertain(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	if err := s.rdb.Do(t.Context(), "acl", "setuser", "bob", "on", ">secret", "~*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	rdb := s.borrowed(func(o *redis.UniversalOptions) { o.Username, o.Password = "bob", "secret" })
	rdb.AddHook(&losing{lose: first(func(words string) bool {
		if !strings.Contains(words, ".sent:") {
			return false
		}
		if err := s.rdb.Do(context.Background(), "acl", "setuser", "bob", "-evalsha", "-eval").Err(); err != nil {
			t.Error(err)
		}
		return true
	})})
	c, err := xstreamq.New(rdb, xstreamq.Prefix(s.prefix), xstreamq.WithLogger(slog.New(s.log)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // nothing runs
	_, err = s.queue(c).Publish(t.Context(), order{1}, xstreamq.DedupeID("k"))
	if !errors.Is(err, xstreamq.ErrUncertain) || errors.Is(err, xstreamq.ErrAuth) || errors.Is(err, xstreamq.ErrUnavailable) {
		t.Errorf("publish: %v, want ErrUncertain alone", err)
	}
	if n := s.rdb.XLen(t.Context(), s.keys.Main).Val(); n != 1 {
		t.Errorf("%d entries, want the one that the first try stored", n)
	}
}

// Close waits for publishes of every kind that are on the wire.
func TestCloseWaitsForPublishes(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]xstreamq.PublishOption{
		"plain": nil, "delayed": {xstreamq.Delay(time.Hour)}, "deduplicated": {xstreamq.DedupeID("k")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			s := siteOn(t, srv)
			c := s.open()
			q := s.queue(c)
			if _, err := q.Publish(t.Context(), order{1}); err != nil {
				t.Fatal(err)
			}
			srv.Pause()
			published, closed := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := q.Publish(context.Background(), order{2}, opts...)
				published <- err
			}()
			silent(t, published, 100*time.Millisecond, "published by a frozen server")
			go func() { closed <- c.Close() }()
			silent(t, closed, 200*time.Millisecond, "closed over a publish")
			silent(t, published, 0, "given up by Close")
			srv.Resume()
			if err := receiveOne(t, published, "the publish"); err != nil {
				t.Errorf("publish: %v", err)
			}
			if err := receiveOne(t, closed, "Close"); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// A hook that takes its time costs no lease.
func TestSlowHooksCostNoLease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	told, release := make(chan bool, 10), make(chan struct{})
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{
		Paused: func(_ context.Context, _ xstreamq.GroupRef, paused bool, _ string) {
			told <- paused
			<-release
		},
	}))
	var runs calls
	h := func(_ context.Context, m *xstreamq.Message[order]) error {
		runs.add(m.ID)
		<-release
		return nil
	}
	s.subscribe(c, h, xstreamq.VisibilityTimeout(time.Second), xstreamq.HandlerTimeout(time.Hour))
	s.start(c)
	ids := s.publish(1, 1)
	s.eventually(func() bool { return runs.total() == 1 }, "the handler runs")
	s.worker(h, xstreamq.VisibilityTimeout(time.Second), xstreamq.HandlerTimeout(time.Hour))
	if err := s.rdb.Set(t.Context(), s.keys.Paused, "{}", 0).Err(); err != nil {
		t.Fatal(err)
	}
	receiveOne(t, told, "the pause")
	if err := s.rdb.Del(t.Context(), s.keys.Paused).Err(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second) // three leases
	close(release)
	if paused := receiveOne(t, told, "the end of the pause"); paused {
		t.Error("two beginnings of one pause")
	}
	s.settled()
	runs.each(t, ids, 1)
}

// A group that somebody moves back is given again what is in flight: it does not run a second time beside itself.
func TestGroupMovedBackInFlight(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun, release := make(chan int, 10), make(chan struct{})
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		begun <- m.Body.ID
		<-release
		return nil
	}, xstreamq.Concurrency(8))
	s.publish(1, 1)
	receiveOne(t, begun, "the handler")
	if err := s.rdb.XGroupSetID(t.Context(), s.keys.Main, "svc", "0").Err(); err != nil {
		t.Fatal(err)
	}
	s.publish(2, 2)
	if got := receiveOne(t, begun, "the next message"); got != 2 {
		t.Errorf("message %d was begun while it runs", got)
	}
	silent(t, begun, 300*time.Millisecond, "begun while it runs")
	close(release)
	s.settled()
}

// A compaction that is dated in the future, by a clock that was set back since, keeps nobody from the next.
func TestCompactionAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.worker(func(context.Context, *xstreamq.Message[order]) error { return nil })
	future := strconv.FormatInt(s.serverTime().Add(24*time.Hour).UnixMilli(), 10)
	if err := s.rdb.HSet(t.Context(), s.keys.Stream.Meta, "compacted", future).Err(); err != nil {
		t.Fatal(err)
	}
	s.eventually(func() bool { return s.rdb.HGet(t.Context(), s.keys.Stream.Meta, "compacted").Val() != future }, "a compaction")
}

// What was read starts only on a lease that is good for a while: not while the server does not answer heartbeats.
func TestNothingStartsOnAnOldLease(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := siteOn(t, srv)
	if err := s.rdb.XGroupCreateMkStream(t.Context(), s.keys.Retry, "svc", "0").Err(); err != nil {
		t.Fatal(err)
	}
	s.publish(1, 1)
	s.addTo(s.keys.Retry, "body", `{"id":2}`) // one read brings both, for one handler
	begun, release := make(chan int, 10), make(chan struct{})
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		begun <- m.Body.ID
		<-release
		return nil
	}, xstreamq.Concurrency(1), xstreamq.VisibilityTimeout(2*time.Second), xstreamq.HandlerTimeout(time.Hour))
	if got := receiveOne(t, begun, "the retry"); got != 2 {
		t.Fatalf("message %d was begun first", got)
	}
	srv.Pause()
	silent(t, begun, 1200*time.Millisecond, "begun beside the one handler") // over half a lease
	close(release)
	silent(t, begun, 300*time.Millisecond, "begun on an old lease")
	srv.Resume()
	if got := receiveOne(t, begun, "the other"); got != 1 {
		t.Errorf("message %d was begun", got)
	}
	s.settled()
}
