package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

type Order struct{ ID, Total int }

// client is made by Open or New, once in a program.
var client *xstreamq.Client

// A client that was opened connects with its first call, and is closed by its owner.
func ExampleOpen() {
	client, err := xstreamq.Open("redis://localhost:6379", xstreamq.DrainTimeout(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.Close()) // in a program: deferred

	_, err = xstreamq.Open("redis://localhost:6379", xstreamq.DrainTimeout(-time.Second))
	fmt.Println(errors.Is(err, xstreamq.ErrInvalidOption))
	fmt.Println(err)
	// Output:
	// <nil>
	// true
	// invalid option: DrainTimeout(-1s): 0s to 24h0m0s is needed
}

// A client that was borrowed is never closed by the queue.
func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	borrowed, err := xstreamq.New(rdb, xstreamq.SubscribeDefaults(xstreamq.VisibilityTimeout(time.Minute)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(borrowed.Close(), rdb.Close())
	// Output: <nil> <nil>
}

// Making a queue does no I/O. What is wrong with its name is told by every method, before anything is sent.
func ExampleNewQueue() {
	orders := xstreamq.NewQueue[Order](client, "orders {eu}")
	_, err := orders.Publish(context.Background(), Order{ID: 1})
	fmt.Println(errors.Is(err, xstreamq.ErrInvalidName))
	fmt.Println(err)
	// Output:
	// true
	// invalid name: stream "orders {eu}" contains ' '; braces, white space and control characters are not allowed
}

func ExampleQueue_Publish() {
	orders := xstreamq.NewQueue[Order](client, "orders")

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	p, err := orders.Publish(ctx, Order{ID: 1, Total: 4200},
		xstreamq.Delay(time.Minute), xstreamq.DedupeID("order-1"), xstreamq.Header("tenant", "acme"))
	switch {
	case errors.Is(err, xstreamq.ErrUncertain):
		log.Println("stored or not; with the dedupe id it is safe to repeat:", err)
	case err != nil:
		log.Println("not stored:", err)
	default:
		log.Println(p.ID, p.Duplicate)
	}
}

func ExampleQueue_Subscribe() {
	orders := xstreamq.NewQueue[Order](client, "orders")
	_, err := orders.Subscribe("billing", func(ctx context.Context, m *xstreamq.Message[Order]) error {
		log.Println("charging", m.Body.Total, "under the key", m.ID)
		return ctx.Err()
	}, xstreamq.MaxRetries(8), xstreamq.DedupeTTL(24*time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// A handler is a function of a message, and a message can be made by hand: a unit test needs no server.
func ExampleMessage() {
	handler := func(_ context.Context, m *xstreamq.Message[Order]) error {
		if m.Body.Total < 0 {
			return xstreamq.Reject(fmt.Errorf("order %d: total %d", m.Body.ID, m.Body.Total))
		}
		return nil
	}
	fmt.Println(handler(context.Background(), &xstreamq.Message[Order]{Body: Order{ID: 1, Total: 4200}}))
	fmt.Println(handler(context.Background(), &xstreamq.Message[Order]{Body: Order{ID: 2, Total: -1}}))
	// Output:
	// <nil>
	// order 2: total -1
}

func ExampleExponential() {
	b := xstreamq.Exponential{Initial: time.Second, Max: 30 * time.Second, Jitter: -1} // no jitter
	for failures := range 7 {
		fmt.Println(b.Delay(failures+1, nil))
	}
	// Output:
	// 1s
	// 2s
	// 4s
	// 8s
	// 16s
	// 30s
	// 30s
}

// A backoff may look at the error.
func ExampleBackoffFunc() {
	errBusy := errors.New("busy")
	b := xstreamq.BackoffFunc(func(attempt int, err error) time.Duration {
		if errors.Is(err, errBusy) {
			return 10 * time.Minute
		}
		return time.Duration(attempt) * time.Second
	})
	fmt.Println(b.Delay(3, errors.New("timeout")), b.Delay(3, errBusy))
	// Output: 3s 10m0s
}

// RetryAfter, Snooze and Reject are errors: what they wrap is still found.
func ExampleRetryAfter() {
	errBusy := errors.New("busy")
	err := xstreamq.RetryAfter(time.Minute, fmt.Errorf("card service: %w", errBusy))
	fmt.Println(err, errors.Is(err, errBusy))
	// Output: card service: busy true
}

func ExampleBatchErrors() {
	err := xstreamq.BatchErrors{7: xstreamq.ErrUncertain, 2: xstreamq.ErrUnavailable}.Err()
	fmt.Println(err)
	fmt.Println(errors.Is(err, xstreamq.ErrUncertain), xstreamq.BatchErrors{}.Err())
	// Output:
	// 2 messages failed; 2: server unavailable; 7: outcome unknown
	// true <nil>
}

// Middleware sees every error, also those of decoding; here it names who failed.
func ExampleWithMiddleware() {
	named := func(next xstreamq.Handler) xstreamq.Handler {
		return func(ctx context.Context, d *xstreamq.Delivery) error {
			if err := next(ctx, d); err != nil {
				return fmt.Errorf("%s/%s: %w", d.Stream, d.Group, err)
			}
			return nil
		}
	}
	h := named(func(context.Context, *xstreamq.Delivery) error { return errors.New("busy") })
	fmt.Println(h(context.Background(), &xstreamq.Delivery{Stream: "orders", Group: "billing"}))
	// Output: orders/billing: busy
}

func ExampleGroupAdmin_RedriveAll() {
	billing := client.Admin().Group("orders", "billing")
	res, err := billing.RedriveAll(context.Background(), xstreamq.Filter{ErrorContains: "timeout"}, xstreamq.Bulk{Rate: 50})
	if err != nil {
		log.Fatal(err)
	}
	log.Println(res.Done, "redriven,", res.Remaining, "left,", res.Unredrivable, "without a body")
}
