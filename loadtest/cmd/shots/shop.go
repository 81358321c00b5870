package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
	"github.com/xstreamq/xstreamq/loadtest/internal/server"
)

// order is what the shop's messages are about.
type order struct {
	ID       int    `json:"id"`
	Customer string `json:"customer"`
	Total    string `json:"total"`
	Items    []item `json:"items"`
}

type item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

var (
	errCard    = errors.New("card processor: 502 Bad Gateway after 3 tries: upstream connect timeout")
	errAddress = errors.New("address line 2 has 212 characters, at most 120 are allowed")
	errSMTP    = errors.New("smtp: 421 4.7.0 try again later")
)

// team is one group's workers: how many, how long one message takes, and what share of them fails.
type team struct {
	stream, group string
	workers       int
	takes         time.Duration
	fails         float64
	err           error
	last          bool // a failure is final
}

// shop is a dashboard over a server of its own, on which a shop is at work.
type shop struct {
	url   string
	close func()
}

// openShop brings about what an operator meets: most is well, one group is paused, one has nobody, one has dead letters.
func openShop(ctx context.Context, dir string) (_ *shop, err error) {
	srv, err := server.Start(dir, "--save", "", "--appendonly", "yes", "--maxmemory", "512mb")
	if err != nil {
		return nil, err
	}
	quiet := xstreamq.WithLogger(slog.New(slog.DiscardHandler))
	var clients []*xstreamq.Client
	open := func() (*xstreamq.Client, error) {
		c, err := xstreamq.Open("redis://"+srv.Addr(), quiet)
		if err == nil {
			clients = append(clients, c)
		}
		return c, err
	}
	s := &shop{close: func() {
		for _, c := range clients {
			_ = c.Close() // the server goes too
		}
		_ = srv.Kill()
	}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, t := range []team{
		{"orders", "billing", 3, 60 * time.Millisecond, 0.25, errCard, false},
		{"orders", "search-index", 1, 15 * time.Millisecond, 0, nil, false},
		{"orders", "warehouse", 2, 90 * time.Millisecond, 0.03, errAddress, true},
		{"emails", "sender", 2, 150 * time.Millisecond, 0.2, errSMTP, false},
		{"payments.captured", "ledger", 1, 30 * time.Millisecond, 0, nil, false},
	} {
		for range t.workers {
			c, err := open()
			if err != nil {
				return nil, err
			}
			if err := t.work(ctx, c); err != nil {
				return nil, err
			}
		}
	}
	c, err := open()
	if err != nil {
		return nil, err
	}
	if err := stock(ctx, c); err != nil {
		return nil, err
	}
	go trade(ctx, c)
	d := dash.New(c.Admin(), dash.Config{Environment: "production"})
	web := httptest.NewServer(d)
	s.url = web.URL + "/"
	before := s.close
	s.close = func() {
		d.Close()
		web.CloseClientConnections()
		web.Close()
		before()
	}
	return s, nil
}

func (t team) work(ctx context.Context, c *xstreamq.Client) error {
	_, err := xstreamq.NewQueue[order](c, t.stream).Subscribe(t.group, func(ctx context.Context, m *xstreamq.Message[order]) error {
		select {
		case <-time.After(t.takes + rand.N(t.takes)):
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case t.err == nil, rand.Float64() >= t.fails:
			return nil
		case t.last:
			return xstreamq.Reject(t.err)
		default:
			return fmt.Errorf("order %d: %w", m.Body.ID, t.err)
		}
	}, xstreamq.Concurrency(4), xstreamq.MaxRetries(2), xstreamq.WithBackoff(xstreamq.Exponential{Initial: 10 * time.Second, Max: time.Minute}))
	if err != nil {
		return err
	}
	return c.Start(ctx)
}

var customers = []string{"Ada Lovelace", "José Ñandú", "Søren Kierkegård", "Zoë O'Brien", "Grace Hopper", "Łukasz Żółć"}

func newOrder() order {
	o := order{ID: 100_000 + rand.IntN(900_000), Customer: customers[rand.IntN(len(customers))], Total: fmt.Sprintf("%d.%02d", rand.IntN(400), rand.IntN(100))}
	for range 1 + rand.IntN(3) {
		o.Items = append(o.Items, item{fmt.Sprintf("SKU-%04d", rand.IntN(10_000)), 1 + rand.IntN(4)})
	}
	return o
}

// stock is what lies there before anybody works: messages for later, a group without workers, and one that is paused.
func stock(ctx context.Context, c *xstreamq.Client) error {
	for i := range 40 {
		if _, err := xstreamq.NewQueue[order](c, "reminders").Publish(ctx, newOrder(), xstreamq.Delay(time.Duration(i+1)*17*time.Minute), xstreamq.Header("tenant", "acme")); err != nil {
			return err
		}
	}
	for _, g := range [][2]string{{"reports.nightly", "builder"}, {"reminders", "mailer"}} {
		if _, err := c.Admin().Group(g[0], g[1]).Create(ctx, xstreamq.Head); err != nil {
			return err
		}
	}
	reports := make([]order, 1_340)
	for i := range reports {
		reports[i] = newOrder()
	}
	if _, err := xstreamq.NewQueue[order](c, "reports.nightly").PublishBatch(ctx, reports); err != nil {
		return err
	}
	return c.Admin().Group("emails", "sender").Pause(ctx, "SMTP provider is down, see #incident-42", time.Hour)
}

// trade publishes, now more and now less, until the end.
func trade(ctx context.Context, c *xstreamq.Client) {
	orders, emails, paid := xstreamq.NewQueue[order](c, "orders"), xstreamq.NewQueue[order](c, "emails"), xstreamq.NewQueue[order](c, "payments.captured")
	for n := 0; ctx.Err() == nil; n++ {
		for range rand.IntN(8 + 6*(n/40%3)) {
			_, _ = orders.Publish(ctx, newOrder(), xstreamq.Header("tenant", "acme"), xstreamq.Header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")) // the next one comes
		}
		if n%3 == 0 {
			_, _ = emails.Publish(ctx, newOrder())
			_, _ = paid.Publish(ctx, newOrder())
		}
		select {
		case <-ctx.Done():
		case <-time.After(250 * time.Millisecond):
		}
	}
}
