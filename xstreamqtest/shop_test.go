package xstreamqtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/xstreamqtest"
)

// What follows is how a user's package and its tests look.

type order struct{ ID int }

type shop struct{ orders *xstreamq.Queue[order] }

func (s *shop) buy(ctx context.Context, id int) error {
	_, err := s.orders.Publish(ctx, order{ID: id}, xstreamq.Header("source", "web"))
	return err
}

func (s *shop) handle(_ context.Context, m *xstreamq.Message[order]) error {
	if m.Body.ID < 0 {
		return xstreamq.Reject(errors.New("negative"))
	}
	if m.Body.ID == 13 && m.Attempt < 3 {
		return errors.New("flaky")
	}
	return nil
}

func open(t *testing.T) (*xstreamqtest.Kit, *shop) {
	t.Helper()
	kit := xstreamqtest.New(t)
	return kit, &shop{xstreamq.NewQueue[order](kit.Client(), "orders")}
}

func (s *shop) mustBuy(t *testing.T, ids ...int) {
	t.Helper()
	for _, id := range ids {
		if err := s.buy(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *shop) mustSubscribe(t *testing.T, h func(context.Context, *xstreamq.Message[order]) error, opts ...xstreamq.SubscribeOption) {
	t.Helper()
	if _, err := s.orders.Subscribe("svc", h, opts...); err != nil {
		t.Fatal(err)
	}
}

// A handler alone: no server at all, a Message is a literal.
func TestHandlerAlone(t *testing.T) {
	t.Parallel()
	m := &xstreamq.Message[order]{Body: order{ID: 1}, Delivery: xstreamq.Delivery{Attempt: 1}}
	if err := (&shop{}).handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func TestPublished(t *testing.T) {
	t.Parallel()
	kit, s := open(t)
	if got := xstreamqtest.Published(kit, s.orders); len(got) != 0 {
		t.Fatalf("published %+v before anything was", got)
	}
	if _, err := s.orders.Publish(t.Context(), order{ID: 8}, xstreamq.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	kit.Advance(time.Second)
	s.mustBuy(t, 7)
	got := xstreamqtest.Published(kit, s.orders)
	if len(got) != 2 || got[0].Body.ID != 8 || got[1].Body.ID != 7 || got[1].Headers["source"] != "web" || got[1].Stream != "orders" {
		t.Fatalf("published %+v", got)
	}
	if d := got[1].PublishedAt.Sub(got[0].PublishedAt); d < time.Second || d > 3*time.Second {
		t.Errorf("a second apart by the server's clock, it says %s", d)
	}
}

// The whole life, backoffs of 30 s and a minute included, without waiting for them.
func TestRetriesThenDead(t *testing.T) {
	t.Parallel()
	kit, s := open(t)
	s.mustSubscribe(t, s.handle)
	s.mustBuy(t, 1, 13, -1)
	if got, want := kit.Drain(), (xstreamqtest.Tally{Acked: 2, Failed: 2, Rejected: 1, Dead: 1}); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for l, err := range kit.Client().Admin().Group("orders", "svc").DeadLetters(t.Context(), xstreamq.Filter{}) {
		if err != nil || l.Reason != xstreamq.ReasonRejected {
			t.Fatal(l, err)
		}
		if body, err := s.orders.Decode(l.Body); err != nil || body.ID != -1 {
			t.Errorf("dead %+v, %v", body, err)
		}
	}
	s.mustBuy(t, 2)
	if got, want := kit.Drain(), (xstreamqtest.Tally{Acked: 1}); got != want {
		t.Errorf("the second Drain says %+v, want %+v: it begins anew", got, want)
	}
}

func TestPublishWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	kit, s := open(t)
	kit.Break(xstreamq.ErrUnavailable)
	if err := s.buy(t.Context(), 1); !errors.Is(err, xstreamq.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	kit.Mend()
	s.mustBuy(t, 1)
}

func TestOneHandlerOnce(t *testing.T) {
	t.Parallel()
	kit := xstreamqtest.New(t)
	o, err := xstreamqtest.Handle(kit, (&shop{}).handle, order{ID: 13}, xstreamq.MaxRetries(0))
	if o != xstreamq.OutcomeDead || err == nil {
		t.Fatal(o, err)
	}
}
