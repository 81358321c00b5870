package xstreamq_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/wire"
)

func TestDedupeOneOfMany(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	clients := []*xstreamq.Queue[order]{s.queue(s.open()), s.queue(s.open()), s.queue(s.open()), s.queue(s.open())}
	for round := range 50 {
		id := "order-" + strconv.Itoa(round)
		results := make([]xstreamq.Published, 100)
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() {
				var err error
				if results[i], err = clients[i%4].Publish(t.Context(), order{ID: i}, xstreamq.DedupeID(id)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		firsts := 0
		for _, p := range results {
			if !p.Duplicate {
				firsts++
			}
			if p.ID != results[0].ID {
				t.Errorf("round %d: ids %s and %s", round, p.ID, results[0].ID)
			}
		}
		if n := s.rdb.XLen(t.Context(), s.keys.Main).Val(); firsts != 1 || n != int64(round+1) {
			t.Fatalf("round %d: %d firsts, %d entries", round, firsts, n)
		}
		if ttl := s.rdb.PTTL(t.Context(), s.keys.Sent(id)).Val(); ttl <= 0 || ttl > 10*time.Minute {
			t.Errorf("marker lives for %v, want the window", ttl)
		}
	}
}

// A delayed message's id is the same for a repeated publish, and stays when it is delivered.
func TestDedupeDelayed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open(), xstreamq.DedupeWindow(time.Minute))
	first, err := q.Publish(t.Context(), order{ID: 1}, xstreamq.DedupeID("x"), xstreamq.Delay(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	second, err := q.Publish(t.Context(), order{ID: 1}, xstreamq.DedupeID("x"), xstreamq.Delay(time.Hour))
	if err != nil || second.ID != first.ID || !second.Duplicate || !strings.HasPrefix(first.ID, "d-") {
		t.Fatalf("%+v, then %+v, %v", first, second, err)
	}
	ran := make(chan *xstreamq.Message[order], 2)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { ran <- m; return nil })
	if m := receiveOne(t, ran, "the delayed message"); m.ID != first.ID || m.EntryID == first.ID {
		t.Errorf("delivered as id %s, entry %s; published as %s", m.ID, m.EntryID, first.ID)
	}
}

// A dedupe id whose message could not be stored stays free.
func TestDedupeAfterAFailedPublish(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open())
	if err := s.rdb.Set(t.Context(), s.keys.Main, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if p, err := q.Publish(t.Context(), order{ID: 1}, xstreamq.DedupeID("k")); err == nil || p.ID != "" || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Fatalf("publish onto a string: %+v, %v", p, err)
	}
	if p, err := q.Publish(t.Context(), order{ID: 1}); err == nil || p.ID != "" || errors.Is(err, xstreamq.ErrUncertain) {
		t.Fatalf("plain publish onto a string: %+v, %v", p, err)
	}
	if err := s.rdb.Del(t.Context(), s.keys.Main).Err(); err != nil {
		t.Fatal(err)
	}
	p, err := q.Publish(t.Context(), order{ID: 1}, xstreamq.DedupeID("k"))
	if err != nil || p.Duplicate || s.rdb.XLen(t.Context(), s.keys.Main).Val() != 1 {
		t.Fatalf("publish after the failed one: %+v, %v", p, err)
	}
}

func TestPublishDelayed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open())
	at := func(opt xstreamq.PublishOption) (xstreamq.Published, time.Time) {
		t.Helper()
		p, err := q.Publish(t.Context(), order{ID: 1}, opt)
		if err != nil {
			t.Fatal(err)
		}
		score, err := s.rdb.ZScore(t.Context(), s.keys.Stream.Due, p.ID).Result()
		if errors.Is(err, redis.Nil) {
			return p, time.Time{}
		}
		if err != nil {
			t.Fatal(err)
		}
		return p, time.UnixMilli(int64(score))
	}
	before := s.serverTime()
	_, due := at(xstreamq.Delay(time.Hour))
	if due.Before(before.Add(time.Hour).Truncate(time.Millisecond)) || due.After(s.serverTime().Add(time.Hour)) {
		t.Errorf("due %v, published at %v with an hour's delay", due, before)
	}
	when := before.Add(90 * time.Minute).Truncate(time.Millisecond)
	if _, due := at(xstreamq.DeliverAt(when)); !due.Equal(when) {
		t.Errorf("due %v, want %v", due, when)
	}
	for name, opt := range map[string]xstreamq.PublishOption{
		"zero delay": xstreamq.Delay(0), "negative delay": xstreamq.Delay(-time.Hour),
		"past": xstreamq.DeliverAt(before.Add(-time.Hour)), "long past": xstreamq.DeliverAt(time.Unix(-1e9, 0)), "zero time": xstreamq.DeliverAt(time.Time{}),
	} {
		if p, due := at(opt); !due.IsZero() || !wire.IsEntryID(p.ID) {
			t.Errorf("%s: id %s, due %v, want it in the stream", name, p.ID, due)
		}
	}
	for name, opt := range map[string]xstreamq.PublishOption{
		"Delay": xstreamq.Delay(11 * 365 * 24 * time.Hour), "DeliverAt": xstreamq.DeliverAt(time.Now().AddDate(11, 0, 0)),
		"Delay(1ns)": xstreamq.Delay(1),
	} {
		if _, err := q.Publish(t.Context(), order{}, opt); !errors.Is(err, xstreamq.ErrInvalidOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A delayed message is delivered when it is due by the server's clock, no earlier, and once.
func TestDelayedDelivery(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	type got struct {
		id string
		at time.Time
	}
	ran := make(chan got, 10)
	h := func(_ context.Context, m *xstreamq.Message[order]) error {
		ran <- got{m.ID, s.serverTime()}
		return nil
	}
	q := s.queue(s.worker(h))
	s.worker(h)
	if _, err := q.Publish(t.Context(), order{ID: 1}, xstreamq.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	start := s.serverTime()
	p, err := q.Publish(t.Context(), order{ID: 2}, xstreamq.Delay(300*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	one := receiveOne(t, ran, "the message that is due")
	if one.id != p.ID || one.at.Sub(start) < 299*time.Millisecond {
		t.Errorf("message %s after %v, want %s after 300ms", one.id, one.at.Sub(start), p.ID)
	}
	silent(t, ran, 300*time.Millisecond, "another delivery")
	if n := s.rdb.ZCard(t.Context(), s.keys.Stream.Due).Val(); n != 1 {
		t.Errorf("%d still delayed, want 1", n)
	}
}
