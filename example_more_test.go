package xstreamq_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/xstreamq/xstreamq"
)

// What failed is named by index; the others stand.
func ExampleQueue_PublishBatch() {
	orders := xstreamq.NewQueue[Order](client, "orders")
	list := []Order{{ID: 1}, {ID: 2}}
	published, err := orders.PublishBatch(context.Background(), list)
	var failed xstreamq.BatchErrors
	switch {
	case errors.As(err, &failed):
		for i, err := range failed {
			log.Println(list[i], err)
		}
	case err != nil: // nothing was sent
		log.Fatal(err)
	}
	log.Println(published)
}

// A batch has options for each of its messages.
func ExampleQueue_NewBatch() {
	batch := xstreamq.NewQueue[Order](client, "orders").NewBatch()
	for id := range 100 {
		batch.Add(Order{ID: id}, xstreamq.DedupeID(fmt.Sprint("order-", id)))
	}
	if _, err := batch.Publish(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// Stored bytes become a body again: here those of dead letters.
func ExampleQueue_Decode() {
	orders := xstreamq.NewQueue[Order](client, "orders")
	order, err := orders.Decode([]byte(`{"ID":1,"Total":4200}`))
	fmt.Println(order, err)
	_, err = orders.Decode([]byte(`{"ID":"one"}`))
	fmt.Println(errors.Is(err, xstreamq.ErrInvalidBody))
	// Output:
	// {1 4200} <nil>
	// true
}

// Start and Stop are Run in two halves, for programs with a life of their own.
func ExampleClient_Start() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // bounds the start alone
	defer cancel()
	if err := client.Start(ctx); err != nil {
		log.Fatal(err)
	}
	// … the program …
	if err := client.Stop(context.Background()); errors.Is(err, xstreamq.ErrDrainTimeout) {
		log.Println("some handlers were cut, their messages are handed back")
	}
}

// Snooze puts a message back without spending an attempt.
func ExampleSnooze() {
	handler := func(_ context.Context, m *xstreamq.Message[Order]) error {
		if m.Body.Total == 0 {
			return xstreamq.Snooze(time.Hour)
		}
		return nil
	}
	fmt.Println(handler(context.Background(), &xstreamq.Message[Order]{}))
	// Output: snoozed for 1h0m0s
}

// Reject makes a dead letter at once.
func ExampleReject() {
	errNoCard := errors.New("no such card")
	err := xstreamq.Reject(fmt.Errorf("order 7: %w", errNoCard))
	fmt.Println(err, errors.Is(err, errNoCard))
	// Output: order 7: no such card true
}

// Extend gives one run more time than HandlerTimeout does.
func ExampleDelivery_Extend() {
	videos := xstreamq.NewQueue[string](client, "videos")
	_, err := videos.Subscribe("transcoder", func(ctx context.Context, m *xstreamq.Message[string]) error {
		if err := m.Extend(ctx, 6*time.Hour); err != nil {
			return err
		}
		log.Println("it may run until", m.Until())
		return nil
	}, xstreamq.HandlerTimeout(2*time.Hour), xstreamq.Concurrency(2))
	if err != nil {
		log.Fatal(err)
	}
}

// gobCodec is a codec: its methods name the type that it is for.
type gobCodec struct{}

func (gobCodec) Encode(o Order) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(o)
	return b.Bytes(), err
}

func (gobCodec) Decode(p []byte) (o Order, err error) {
	return o, gob.NewDecoder(bytes.NewReader(p)).Decode(&o)
}

// A codec of another type than the queue's is refused.
func ExampleWithCodec() {
	_ = xstreamq.NewQueue[Order](client, "orders", xstreamq.WithCodec(gobCodec{}))
	q := xstreamq.NewQueue[string](client, "names", xstreamq.WithCodec(gobCodec{}))
	_, err := q.Publish(context.Background(), "Ann")
	fmt.Println(errors.Is(err, xstreamq.ErrInvalidOption))
	// Output: true
}

// A validator runs before each publish and before each handler.
func ExampleWithValidator() {
	orders := xstreamq.NewQueue[Order](client, "orders", xstreamq.WithValidator(func(o Order) error {
		if o.Total < 0 {
			return fmt.Errorf("total is %d", o.Total)
		}
		return nil
	}))
	_, err := orders.Decode([]byte(`{"ID":1,"Total":-1}`))
	fmt.Println(err)
	// Output: invalid body: total is -1
}

// Hooks watch; they change nothing.
func ExampleWithHooks() {
	watched, err := xstreamq.Open("redis://localhost:6379", xstreamq.WithHooks(xstreamq.Hooks{
		HandleEnd: func(_ context.Context, d *xstreamq.Delivery, o xstreamq.Outcome, err error, took time.Duration) {
			log.Println(d.Stream, d.Group, d.ID, o, took, err)
		},
	}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(watched.Close())
	// Output: <nil>
}

func ExampleAdmin_Depths() {
	depths, err := client.Admin().Depths(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range depths {
		log.Println(d.Stream, d.Group, d.Pending, "in flight,", d.Dead, "dead, the oldest is", d.Oldest, "old")
	}
}

func ExampleGroupAdmin_DeadLetters() {
	orders := xstreamq.NewQueue[Order](client, "orders")
	billing := client.Admin().Group("orders", "billing")
	for l, err := range billing.DeadLetters(context.Background(), xstreamq.Filter{Reason: xstreamq.ReasonRetries}) {
		if err != nil {
			log.Fatal(err)
		}
		order, err := orders.Decode(l.Body)
		log.Println(l.EntryID, order, err, l.Error)
	}
}

// What a batch fails comes back alone: one bad message takes no other with it.
func ExampleQueue_SubscribeBatch() {
	orders := xstreamq.NewQueue[Order](client, "orders")
	_, err := orders.SubscribeBatch("warehouse", func(_ context.Context, ms []*xstreamq.Message[Order]) error {
		failed := xstreamq.BatchErrors{}
		for i, m := range ms {
			if m.Body.Total < 0 {
				failed[i] = xstreamq.Reject(errors.New("negative")) // this one only
			}
		}
		return failed.Err() // any other error: all of them
	}, xstreamq.BatchSize(500), xstreamq.BatchWait(time.Second))
	if err != nil {
		log.Fatal(err)
	}
}

// Pull is for programs that read at their own pace. Here settling is theirs.
func ExampleQueue_Pull() {
	ctx := context.Background()
	orders, err := xstreamq.NewQueue[Order](client, "orders").Pull("billing")
	if err != nil {
		log.Fatal(err)
	}
	for r, err := range orders.All(ctx) {
		if err != nil {
			log.Println(err) // it goes on
			continue
		}
		if r.Body.Total < 0 {
			err = r.Reject(ctx, errors.New("negative"))
		} else {
			err = r.Ack(ctx)
		}
		if err != nil {
			log.Println(r.ID, err)
		}
	}
}
