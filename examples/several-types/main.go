// Several types of messages on one stream: a header says which, a map says what to do. Order across types is kept no more
// than within one; what it is for is one backlog, one group, one place to look.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/xstreamq/xstreamq"
)

type (
	// Created is one type of message.
	Created struct{ Order, Total int }
	// Cancelled is another.
	Cancelled struct {
		Order  int
		Reason string
	}
)

// kinds are what the header "kind" may say, and what is done with each.
type kinds map[string]func(context.Context, json.RawMessage) error

// on adds a kind by its own type.
func on[T any](k kinds, kind string, h func(context.Context, T) error) {
	k[kind] = func(ctx context.Context, body json.RawMessage) error {
		var v T
		if err := json.Unmarshal(body, &v); err != nil {
			return fmt.Errorf("%w: %s: %w", xstreamq.ErrInvalidBody, kind, err) // retried: a newer worker may read it
		}
		return h(ctx, v)
	}
}

func (k kinds) handle(ctx context.Context, m *xstreamq.Message[json.RawMessage]) error {
	h, known := k[m.Headers["kind"]]
	if !known {
		return fmt.Errorf("kind %q is unknown here", m.Headers["kind"]) // likewise: a deploy may bring one that knows it
	}
	return h(ctx, m.Body)
}

// publish sends v as one of a kind.
func publish(ctx context.Context, q *xstreamq.Queue[json.RawMessage], kind string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = q.Publish(ctx, body, xstreamq.Header("kind", kind))
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	client, err := xstreamq.Open(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }() // Run has drained
	k := kinds{}
	on(k, "created", func(_ context.Context, c Created) error { log.Println("new", c.Order, c.Total); return nil })
	on(k, "cancelled", func(_ context.Context, c Cancelled) error { log.Println("gone", c.Order, c.Reason); return nil })
	orders := xstreamq.NewQueue[json.RawMessage](client, "orders")
	if _, err := orders.Subscribe("warehouse", k.handle); err != nil {
		log.Fatal(err)
	}
	if err := publish(ctx, orders, "created", Created{1, 4200}); err != nil {
		log.Fatal(err)
	}
	if err := client.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
