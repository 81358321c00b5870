// The quick start: one message, published and handled.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/xstreamq/xstreamq"
)

// Order is a message.
type Order struct{ ID, Total int }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	client, err := xstreamq.Open(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // Run has drained
	orders := xstreamq.NewQueue[Order](client, "orders")

	if _, err := orders.Subscribe("order-service", func(_ context.Context, m *xstreamq.Message[Order]) error {
		fmt.Println("processing", m.Body.ID)
		return nil
	}); err != nil {
		log.Fatal(err)
	}
	if _, err := orders.Publish(ctx, Order{ID: 1, Total: 4200}); err != nil {
		log.Fatal(err)
	}
	if err := client.Run(ctx); err != nil { // until Ctrl-C, then drains
		log.Fatal(err)
	}
}
