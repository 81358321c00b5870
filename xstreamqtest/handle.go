package xstreamqtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xstreamq/xstreamq"
)

// Published is what stands in the queue's stream or waits in its delay set, decoded, oldest first; for producers' tests.
// Attempt is 1. Where a subscription runs, messages that are done are compacted away after a while. A body that the queue
// cannot decode fails the test.
func Published[T any](k *Kit, q *xstreamq.Queue[T]) []xstreamq.Message[T] {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), drainMost)
	defer cancel()
	stream := k.client.Admin().Stream(q.Stream())
	var records []xstreamq.Record
	for _, read := range []func(context.Context, xstreamq.Page) (xstreamq.Records, error){stream.Peek, stream.Delayed} {
		for page, more := (xstreamq.Page{Limit: 1000}), true; more; {
			got, err := read(ctx, page)
			if errors.Is(err, xstreamq.ErrNotFound) {
				break // nothing was published
			}
			if err != nil {
				k.t.Fatalf("xstreamqtest: Published: %v", err)
			}
			records = append(records, got.Items...)
			page.After, more = got.Next, got.Next != ""
		}
	}
	slices.SortStableFunc(records, func(a, b xstreamq.Record) int { return a.PublishedAt.Compare(b.PublishedAt) })
	out := make([]xstreamq.Message[T], 0, len(records))
	for _, r := range records {
		body, err := q.Decode(r.Body)
		if err != nil {
			k.t.Fatalf("xstreamqtest: Published: message %s of %s: %v", r.ID, q.Stream(), err)
		}
		out = append(out, xstreamq.Message[T]{Body: body, Delivery: xstreamq.Delivery{
			ID: r.ID, EntryID: r.EntryID, Stream: r.Stream, Headers: r.Headers, Raw: r.Body, Attempt: 1, PublishedAt: r.PublishedAt,
		}})
	}
	return out
}

// Handle runs h once on body as a subscription with opts would (codec, validation, middleware, panics, timeout), and returns
// what became of the message. The body goes through JSON, []byte and json.RawMessage untouched; an invalid one is
// what the handler's side makes of it: OutcomeFailed with ErrInvalidBody. It happens apart from the kit's own messages:
// neither Drain nor Published sees it.
func Handle[T any](k *Kit, h func(context.Context, *xstreamq.Message[T]) error, body T, opts ...xstreamq.SubscribeOption) (xstreamq.Outcome, error) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), drainMost)
	defer cancel()
	type end struct {
		o   xstreamq.Outcome
		err error
	}
	ended := make(chan end, 1)
	client, err := xstreamq.Open(k.URL(), append(slices.Clip(k.opts),
		xstreamq.Prefix(fmt.Sprintf("xstreamqtest-handle-%d:", k.handles.Add(1))),
		xstreamq.WithHooks(xstreamq.Hooks{
			HandleEnd: func(_ context.Context, _ *xstreamq.Delivery, o xstreamq.Outcome, err error, _ time.Duration) {
				select {
				case ended <- end{o, err}:
				default: // only the first delivery counts
				}
			},
		}))...)
	if err != nil {
		k.t.Fatalf("xstreamqtest: Handle: %v", err)
	}
	defer func() {
		over, cut := context.WithCancel(ctx)
		cut()
		_ = client.Stop(over) // what it holds is nobody's
		_ = client.Close()    // likewise
	}()
	if _, err := xstreamq.NewQueue[T](client, "handle").Subscribe("handle", h, opts...); err != nil {
		k.t.Fatalf("xstreamqtest: Handle: %v", err)
	}
	if err := client.Start(ctx); err != nil {
		k.t.Fatalf("xstreamqtest: Handle: %v", err)
	}
	raw, err := encode(body)
	if err != nil {
		k.t.Fatalf("xstreamqtest: Handle: encode %T: %v", body, err)
	}
	// By the raw bytes: the queue of T would refuse what is invalid, and no other producer has to.
	if _, err := xstreamq.NewQueue[[]byte](client, "handle").Publish(ctx, raw); err != nil {
		k.t.Fatalf("xstreamqtest: Handle: %v", err)
	}
	select {
	case e := <-ended:
		return e.o, e.err
	case <-ctx.Done():
		k.t.Fatalf("xstreamqtest: Handle: the handler did not end within %s", drainMost)
		return "", nil
	}
}

func encode(body any) ([]byte, error) {
	switch b := body.(type) {
	case []byte:
		return b, nil
	case json.RawMessage:
		return b, nil
	}
	return json.Marshal(body)
}
