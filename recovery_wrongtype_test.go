package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq"
)

// A dead-letter key of the wrong type keeps its messages pending, names itself, and holds up nobody else.
func TestWrongTypeOfDeadLetters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.rdb.Set(t.Context(), s.keys.DLQ, "oops", 0).Err(); err != nil {
		t.Fatal(err)
	}
	good := make(chan int, 10)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID <= 2 {
			return errors.New("no")
		}
		good <- m.Body.ID
		return nil
	}, xstreamq.MaxRetries(0))
	s.publish(1, 5)
	receive(t, good, 3, "the others")
	s.eventually(func() bool {
		return strings.Contains(s.log.String(), "WRONGTYPE") && strings.Contains(s.log.String(), s.keys.DLQ)
	}, "the log names the key")
	s.eventually(func() bool { return s.load().pending == 2 }, "the two stay pending, the others are acked")
	if err := s.rdb.Del(t.Context(), s.keys.DLQ).Err(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(bodies(t, s.dead(2))); got != "[1 2]" {
		t.Errorf("dead are %s", got)
	}
	s.settled()
}

// A key of the wrong type where retries are parked keeps failures pending; it names itself, and all else goes on.
func TestWrongTypeOfParked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.rdb.Set(t.Context(), s.keys.Parked, "oops", 0).Err(); err != nil {
		t.Fatal(err)
	}
	good := make(chan int, 10)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID <= 2 && m.Attempt == 1 {
			return errors.New("no")
		}
		good <- m.Body.ID
		return nil
	})
	s.publish(1, 5)
	receive(t, good, 3, "the others")
	s.eventually(func() bool { return strings.Contains(s.log.String(), s.keys.Parked) }, "the log names the key")
	if err := s.rdb.Del(t.Context(), s.keys.Parked).Err(); err != nil {
		t.Fatal(err)
	}
	receive(t, good, 2, "the failures' second attempts")
	s.settled()
}

// A pause flag and delayed messages of another type stop neither retries nor takeovers; the log names the keys.
func TestWrongTypeOfPauseAndDelayed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	must(t, s.rdb.RPush(t.Context(), s.keys.Paused, "oops").Err())
	must(t, s.rdb.Set(t.Context(), s.keys.Stream.Due, "oops", 0).Err())
	s.publish(1, 1)
	must(t, s.rdb.XGroupCreate(t.Context(), s.keys.Main, "svc", "0").Err())
	must(t, s.rdb.Do(t.Context(), "xreadgroup", "group", "svc", "ghost", "streams", s.keys.Main, ">").Err())
	must(t, s.rdb.HSet(t.Context(), s.keys.Workers, "ghost", "1000|1|1|live|").Err())
	good := make(chan int, 10)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID == 2 && m.Attempt == 1 {
			return errFailed
		}
		good <- m.Body.ID
		return nil
	})
	s.publish(2, 2)
	receive(t, good, 2, "the ghost's, and the failure's second attempt")
	s.settled()
	s.eventually(func() bool { return strings.Contains(s.log.String(), s.keys.Stream.Due) }, "the log names the key")
}

// A retry key of another type keeps only what failed waiting: new messages go on, the log names the key.
func TestWrongTypeOfRetries(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	good := make(chan int, 10)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID == 1 && m.Attempt == 1 {
			return errors.New("no")
		}
		good <- m.Body.ID
		return nil
	})
	if err := s.rdb.Set(t.Context(), s.keys.Retry, "oops", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.publish(1, 3)
	receive(t, good, 2, "those that did not fail")
	s.eventually(func() bool { return strings.Contains(s.log.String(), s.keys.Retry) }, "the log names the key")
	if err := s.rdb.Del(t.Context(), s.keys.Retry).Err(); err != nil {
		t.Fatal(err)
	}
	receive(t, good, 1, "the one that failed")
	s.settled()
}
