package xstreamq_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"time"

	"github.com/xstreamq/xstreamq"
)

// One probe says when to restart the process, the other when to send it work.
func ExampleClient_ReadyHandler() {
	http.Handle("/livez", client.LiveHandler())
	http.Handle("/readyz", client.ReadyHandler())
}

func ExampleClient_Health() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, c := range client.Health(ctx).Checks {
		if !c.OK {
			log.Println(c.Name, c.Detail)
		}
	}
}

// What a colleague would say of a message that does not move.
func ExampleGroupAdmin_Why() {
	at, err := client.Admin().Group("orders", "billing").Why(context.Background(), "1760000000000-0")
	if err != nil {
		log.Fatal(err)
	}
	log.Println(at.State, at.Detail)
}

// A group reads the history again that Retain kept.
func ExampleGroupAdmin_Seek() {
	search := client.Admin().Group("orders", "search-index")
	err := search.Seek(context.Background(), xstreamq.AtTime(time.Now().Add(-24*time.Hour)))
	if errors.Is(err, xstreamq.ErrTrimmed) {
		err = search.Seek(context.Background(), xstreamq.Head) // what is left
	}
	if err != nil {
		log.Fatal(err)
	}
}

// Sent twice, stored once.
func ExampleDedupeID() {
	orders := xstreamq.NewQueue[Order](client, "orders")
	for range 2 {
		p, err := orders.Publish(context.Background(), Order{ID: 7}, xstreamq.DedupeID("order-7"))
		if err != nil {
			log.Fatal(err)
		}
		log.Println(p.ID, p.Duplicate)
	}
}

// What is too old when it would start is a dead letter; a last attempt can say more than the ones before.
func ExampleExpireAfter() {
	codes := xstreamq.NewQueue[string](client, "login-codes")
	_, err := codes.Subscribe("sms", func(_ context.Context, m *xstreamq.Message[string]) error {
		if m.Attempt == m.MaxAttempts {
			log.Println("last attempt of", m.ID)
		}
		return nil
	}, xstreamq.ExpireAfter(10*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
}

// counted is middleware that knows the body's type: a function, nothing to register.
func counted[T any](n *int, next func(context.Context, *xstreamq.Message[T]) error) func(context.Context, *xstreamq.Message[T]) error {
	return func(ctx context.Context, m *xstreamq.Message[T]) error {
		*n++
		return next(ctx, m)
	}
}

// The body's type follows from the queue: handlers may be methods, and wrapped by functions of their own.
func ExampleQueue_Subscribe_wrapped() {
	var n int
	orders := xstreamq.NewQueue[Order](client, "orders")
	if _, err := orders.Subscribe("audit", counted(&n, auditor{}.Handle)); err != nil {
		log.Fatal(err)
	}
}

type auditor struct{}

func (auditor) Handle(context.Context, *xstreamq.Message[Order]) error { return nil }
