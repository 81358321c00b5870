package codecs_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/examples/codecs"
	"github.com/xstreamq/xstreamq/examples/internal/servers"
)

// roundTrip publishes v, then returns what a handler got.
func roundTrip[T any](t *testing.T, v T, opts ...xstreamq.QueueOption) T {
	t.Helper()
	client, err := xstreamq.Open(servers.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	q := xstreamq.NewQueue[T](client, "q", opts...)
	got := make(chan T, 1)
	if _, err := q.Subscribe("g", func(_ context.Context, m *xstreamq.Message[T]) error { got <- m.Body; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Publish(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return <-got
}

func TestProto(t *testing.T) {
	t.Parallel()
	want := timestamppb.New(time.Unix(1, 2)) // any generated message
	got := roundTrip(t, want, xstreamq.WithCodec(codecs.Proto[timestamppb.Timestamp, *timestamppb.Timestamp]{}))
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Order has numbers at the edges, which must come back exactly.
type Order struct {
	ID    uint64 `validate:"required"`
	Least int64
	Total float64 `validate:"gte=0"`
	Email string  `validate:"required,email"`
}

var order = Order{ID: math.MaxUint64, Least: math.MinInt64, Total: 0.1, Email: "ann@example.com"}

func TestMsgPack(t *testing.T) {
	t.Parallel()
	if got := roundTrip(t, order, xstreamq.WithCodec(codecs.MsgPack[Order]{})); got != order {
		t.Errorf("got %+v", got)
	}
	if got := roundTrip(t, &order, xstreamq.WithCodec(codecs.MsgPack[*Order]{})); *got != order {
		t.Errorf("got %+v by a pointer", got)
	}
}

// JSON, the default, keeps them too, by value and by pointer.
func TestJSONNumbers(t *testing.T) {
	t.Parallel()
	if got := roundTrip(t, order); got != order {
		t.Errorf("got %+v", got)
	}
	if got := roundTrip(t, &order); *got != order {
		t.Errorf("got %+v by a pointer", got)
	}
}

func TestValidated(t *testing.T) {
	t.Parallel()
	if got := roundTrip(t, order, codecs.Validated[Order]()); got != order {
		t.Errorf("got %+v", got)
	}
	q := xstreamq.NewQueue[Order](nil, "q", codecs.Validated[Order]())
	if _, err := q.Decode([]byte(`{"ID":1,"Email":"nonsense"}`)); !errors.Is(err, xstreamq.ErrInvalidBody) || !strings.Contains(err.Error(), "Email") {
		t.Errorf("a wrong address: %v", err)
	}
}
