// Reminders: messages for later, which may be called off as long as they are not due.
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq"
)

// Reminder is a message.
type Reminder struct{ Who, What string }

// Reminders sets and calls off reminders.
type Reminders struct {
	queue  *xstreamq.Queue[Reminder]
	stream *xstreamq.StreamAdmin
}

// Set returns the id by which the reminder may be called off.
func (r Reminders) Set(ctx context.Context, at time.Time, what Reminder) (id string, err error) {
	p, err := r.queue.Publish(ctx, what, xstreamq.DeliverAt(at))
	return p.ID, err
}

// CallOff reports whether it came in time.
func (r Reminders) CallOff(ctx context.Context, id string) (bool, error) {
	err := r.stream.CancelDelayed(ctx, id)
	if errors.Is(err, xstreamq.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	client, err := xstreamq.Open(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }() // Run has drained
	r, err := start(client, func(r Reminder) { log.Println(r.Who+",", r.What) })
	if err != nil {
		log.Fatal(err)
	}
	if _, err := r.Set(ctx, time.Now().Add(3*time.Second), Reminder{"Ann", "tea is ready"}); err != nil {
		log.Fatal(err)
	}
	if err := client.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func start(client *xstreamq.Client, remind func(Reminder)) (Reminders, error) {
	queue := xstreamq.NewQueue[Reminder](client, "reminders")
	_, err := queue.Subscribe("bell", func(_ context.Context, m *xstreamq.Message[Reminder]) error {
		remind(m.Body)
		return nil
	})
	return Reminders{queue, client.Admin().Stream(queue.Stream())}, err
}
