package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// What is too old when it would start is a dead letter, and starts nowhere: by each intake, on a first delivery and on a
// retry, by its publish, the end of its delay or its redrive. What is finished is none.
func TestExpireAfter(t *testing.T) {
	t.Parallel()
	ms := func(at time.Time) string { return fmt.Sprint(at.UnixMilli()) }
	for intake, consume := range map[string]func(*site, *xstreamq.Client, func(xstreamq.Delivery), ...xstreamq.SubscribeOption){
		"Subscribe": func(s *site, c *xstreamq.Client, note func(xstreamq.Delivery), opts ...xstreamq.SubscribeOption) {
			s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { note(m.Delivery); return nil }, opts...)
			s.start(c)
		},
		"SubscribeBatch": func(s *site, c *xstreamq.Client, note func(xstreamq.Delivery), opts ...xstreamq.SubscribeOption) {
			_, err := s.queue(c).SubscribeBatch("svc", func(_ context.Context, ms []*xstreamq.Message[order]) error {
				for _, m := range ms {
					note(m.Delivery)
				}
				return nil
			}, append(opts, xstreamq.BatchSize(20))...)
			must(s.t, err)
			s.start(c)
		},
		"Pull": func(s *site, c *xstreamq.Client, note func(xstreamq.Delivery), opts ...xstreamq.SubscribeOption) {
			p := s.pullerOn(c, opts...)
			ctx, cancel := context.WithCancel(s.t.Context())
			s.t.Cleanup(cancel)
			go func() {
				for r, err := range p.All(ctx) {
					if err != nil {
						if errors.Is(err, xstreamq.ErrClosed) { // the test stops it
							return
						}
						s.t.Errorf("pulled: %v", err)
						return
					}
					note(r.Delivery)
					if err := r.Ack(ctx); err != nil {
						s.t.Errorf("ack of %s: %v", r.ID, err)
					}
				}
			}()
		},
	} {
		t.Run(intake, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			now := s.serverTime()
			old, due := ms(now.Add(-2*time.Hour))+"-", ms(now.Add(-time.Minute))
			body := []string{"body", `{"id":1}`}
			want := map[string]string{} // stable id → handled, expired, skipped
			put := func(stream, id, fate string, fields ...string) {
				s.addTo(stream, append(slices.Clone(body), append(fields, "oid", id)...)...)
				want[id] = fate
			}
			must(t, s.rdb.Do(t.Context(), "xadd", s.keys.Main, old+"0", "body", `{"id":1}`).Err()) // its worker was down
			want[old+"0"] = "expired"
			put(s.keys.Main, old+"1", "expired")
			put(s.keys.Retry, old+"2", "expired", "rc", "2", "err", "boom") // retried past it
			put(s.keys.Main, "d-"+old+"aa", "handled", "due", due)          // delayed
			put(s.keys.Main, "d-"+old+"bb", "expired", "due", ms(now.Add(-61*time.Minute)))
			put(s.keys.Retry, old+"3", "handled", "due", due, "redriven", "1") // redriven, and failed since
			put(s.keys.Main, old+"4", "expired", "due", "-1")                  // a producer's own
			put(s.keys.Main, old+"5", "skipped")
			put(s.keys.Main, "order-7", "handled")
			must(t, s.rdb.Set(t.Context(), s.keys.Seen(old+"5"), "1", time.Hour).Err())
			want[s.publish(1, 1)[0]] = "handled"
			opt, ends := watching()
			c := s.open(opt)
			var mu sync.Mutex
			got := map[string]string{}
			consume(s, c, func(d xstreamq.Delivery) {
				mu.Lock()
				got[d.ID] = "handled"
				mu.Unlock()
			}, xstreamq.ExpireAfter(time.Hour), xstreamq.DedupeTTL(time.Hour))
			var skipped int
			for _, e := range receive(t, ends, len(want), "ends") {
				switch e.outcome {
				case xstreamq.OutcomeSkipped:
					skipped++
				case xstreamq.OutcomeDead:
					if e.err != nil || e.took != 0 {
						t.Errorf("a handler ran: %+v", e)
					}
				case xstreamq.OutcomeAcked:
				default:
					t.Errorf("end %+v", e)
				}
			}
			s.settled()
			for l, err := range c.Admin().Group("orders", "svc").DeadLetters(t.Context(), xstreamq.Filter{Reason: xstreamq.ReasonExpired}) {
				must(t, err)
				got[l.ID] = "expired"
				if l.ID == old+"2" && (l.Attempts != 2 || l.Error != "boom") || l.ID != old+"2" && (l.Attempts != 0 || l.Error != "") {
					t.Errorf("dead: %+v", l)
				}
			}
			got[old+"5"] = []string{"", "skipped"}[skipped]
			if !maps.Equal(got, want) {
				t.Errorf("became\n%v, want\n%v", got, want)
			}
			must(t, c.Stop(t.Context()))
			totals, err := s.open().Admin().Group("orders", "svc").Totals(t.Context())
			if err != nil || totals != (xstreamq.Totals{Processed: 4, Dead: 5}) {
				t.Errorf("totals %+v, %v", totals, err)
			}
		})
	}
}

// The end of a delay and a redrive begin an age anew, with the times that the scripts write.
func TestExpireAfterDelayAndRedrive(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ran := make(chan xstreamq.Delivery, 10)
	const age = time.Minute
	old := fmt.Sprint(s.serverTime().Add(-time.Hour).UnixMilli())
	must(t, s.rdb.Do(t.Context(), "xadd", s.keys.Main, old+"-0", "body", `{"id":1}`).Err())
	c := s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		ran <- m.Delivery
		if m.Attempt == 1 {
			return errors.New("once more")
		}
		return nil
	}, xstreamq.ExpireAfter(age))
	dead := s.dead(1)[0]
	group := c.Admin().Group("orders", "svc")
	if _, err := group.Redrive(t.Context(), dead.EntryID, xstreamq.RedriveOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, d := range receive(t, ran, 2, "runs of the redriven") {
		if d.ID != old+"-0" || d.Attempt != i+1 || fmt.Sprint(d.PublishedAt.UnixMilli()) != old {
			t.Errorf("%+v", d)
		}
	}
	p, err := s.queue(c).Publish(t.Context(), order{2}, xstreamq.Delay(200*time.Millisecond))
	must(t, err)
	for _, d := range receive(t, ran, 2, "runs of the delayed") {
		if d.ID != p.ID {
			t.Errorf("%+v", d)
		}
	}
	// Parked an hour ago, and promoted now: its delay ended long before.
	id := "d-" + old + "-00112233aabbccdd"
	must(t, s.rdb.HSet(t.Context(), s.keys.Stream.Parked, id, wire.Pack([]string{"body", `{"id":3}`})).Err())
	must(t, s.rdb.ZAdd(t.Context(), s.keys.Stream.Due, redis.Z{Score: float64(s.serverTime().Add(-2 * age).UnixMilli()), Member: id}).Err())
	if m := s.dead(1)[0]; m.ID != id || m.Reason != "expired" {
		t.Errorf("dead: %+v", m)
	}
}
