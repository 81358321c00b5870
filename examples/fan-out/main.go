// One stream, three services' groups, each with its own policy; on a client that the program already had.
package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

// Order is a message.
type Order struct {
	ID    string
	Total int64
}

type handler func(context.Context, *xstreamq.Message[Order]) error

// services are what reads the stream; each group gets every order.
type services struct{ billing, mail, search handler }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	opt, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		log.Fatal(err)
	}
	rdb := redis.NewClient(opt)
	defer func() { _ = rdb.Close() }()
	show := func(service string) handler {
		return func(_ context.Context, m *xstreamq.Message[Order]) error {
			log.Println(service, m.Body.ID, m.Body.Total) // a real one uses m.ID as the idempotency key: the same on every retry
			return nil
		}
	}
	if err := run(ctx, rdb, services{show("billing"), show("mail"), show("search")}); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rdb *redis.Client, s services) error {
	client, err := xstreamq.New(rdb, xstreamq.SubscribeDefaults(xstreamq.VisibilityTimeout(time.Minute)))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // rdb stays open
	orders := xstreamq.NewQueue[Order](client, "orders", xstreamq.Retain(24*time.Hour))
	for _, g := range []struct {
		name    string
		handler handler
		opts    []xstreamq.SubscribeOption
	}{
		{"billing", s.billing, []xstreamq.SubscribeOption{xstreamq.MaxRetries(20), xstreamq.DedupeTTL(48 * time.Hour), xstreamq.OnDeadLetter(page)}},
		{"mail", s.mail, []xstreamq.SubscribeOption{xstreamq.MaxRetries(1), xstreamq.WithBackoff(xstreamq.Exponential{Initial: 10 * time.Millisecond})}},
		{"search", s.search, []xstreamq.SubscribeOption{xstreamq.RetryForever(), xstreamq.Concurrency(64)}},
	} {
		if _, err := orders.Subscribe(g.name, g.handler, g.opts...); err != nil {
			return err
		}
	}
	if _, err := orders.Publish(ctx, Order{ID: "o-1", Total: 4200}); err != nil {
		return err
	}
	return client.Run(ctx)
}

func page(_ context.Context, l xstreamq.DeadLetter) {
	log.Printf("dead letter %s after %d attempts: %s", l.ID, l.Attempts, l.Error)
}
