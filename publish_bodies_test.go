package xstreamq_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq"
)

func TestMaxBody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	q := xstreamq.NewQueue[[]byte](c, "orders", xstreamq.MaxBody(10))
	if _, err := q.Publish(t.Context(), make([]byte, 10)); err != nil {
		t.Error(err)
	}
	_, err := q.Publish(t.Context(), make([]byte, 11))
	if !errors.Is(err, xstreamq.ErrTooLarge) || !strings.Contains(err.Error(), "11 bytes, MaxBody is 10") {
		t.Errorf("11 bytes: %v", err)
	}
	if _, err := q.PublishBatch(t.Context(), [][]byte{{1}, make([]byte, 11)}); !errors.Is(err, xstreamq.ErrTooLarge) {
		t.Errorf("in a batch: %v", err)
	}
	if n := s.rdb.XLen(t.Context(), s.keys.Main).Val(); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}

type checked struct{ N int }

func (c checked) Validate() error {
	if c.N < 0 {
		return fmt.Errorf("n is %d", c.N)
	}
	return nil
}

type pointed struct{ N int }

func (p *pointed) Validate() error {
	if p.N < 0 {
		return fmt.Errorf("n is %d", p.N)
	}
	return nil
}

func TestPublishRefusesInvalidBodies(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	refused := func(err error, part string) {
		t.Helper()
		if !errors.Is(err, xstreamq.ErrInvalidBody) || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), "orders") {
			t.Errorf("%v, want ErrInvalidBody with the queue's name and %q", err, part)
		}
	}
	_, err := xstreamq.NewQueue[checked](c, "orders").Publish(t.Context(), checked{-1})
	refused(err, "n is -1")
	_, err = xstreamq.NewQueue[pointed](c, "orders").Publish(t.Context(), pointed{-2})
	refused(err, "n is -2")
	_, err = xstreamq.NewQueue[*pointed](c, "orders").Publish(t.Context(), &pointed{-3})
	refused(err, "n is -3")
	_, err = xstreamq.NewQueue[float64](c, "orders").Publish(t.Context(), math.NaN())
	refused(err, "encode float64")
	bad := errors.New("not on Sundays")
	q := xstreamq.NewQueue[order](c, "orders", xstreamq.WithValidator(func(o order) error {
		if o.ID == 7 {
			return bad
		}
		return nil
	}))
	_, err = q.Publish(t.Context(), order{7})
	refused(err, "not on Sundays")
	if !errors.Is(err, bad) {
		t.Errorf("%v does not wrap the validator's error", err)
	}
	_, err = q.PublishBatch(t.Context(), []order{{1}, {7}})
	refused(err, "message 1 of the batch")
	if n := s.rdb.Exists(t.Context(), s.keys.Main).Val(); n != 0 {
		t.Error("something was stored")
	}
	if _, err := q.Publish(t.Context(), order{1}); err != nil {
		t.Error(err)
	}
}

type reverse struct{}

func (reverse) Encode(s string) ([]byte, error) {
	if s == "" {
		return nil, errors.New("nothing to reverse")
	}
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return b, nil
}

func (r reverse) Decode(b []byte) (string, error) {
	out, err := r.Encode(string(b))
	return string(out), err
}

func TestCodec(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	q := xstreamq.NewQueue[string](c, "orders", xstreamq.WithCodec[string](reverse{}))
	if _, err := q.Publish(t.Context(), ""); !errors.Is(err, xstreamq.ErrInvalidBody) || !strings.Contains(err.Error(), "nothing to reverse") {
		t.Errorf("an encoder's error: %v", err)
	}
	if _, err := q.Publish(t.Context(), "abc"); err != nil {
		t.Fatal(err)
	}
	if list := s.entries(s.keys.Main); len(list) != 1 || list[0].Body != "cba" {
		t.Fatalf("stored %+v", list)
	}
	got := make(chan *xstreamq.Message[string], 1)
	if _, err := q.Subscribe("svc", func(_ context.Context, m *xstreamq.Message[string]) error { got <- m; return nil }); err != nil {
		t.Fatal(err)
	}
	s.start(c)
	if m := receiveOne(t, got, "delivery"); m.Body != "abc" || string(m.Raw) != "cba" {
		t.Errorf("body %q, raw %q", m.Body, m.Raw)
	}
}

// Decode is what a subscription makes of stored bytes; what is wrong with the queue is told, not run into.
func TestDecode(t *testing.T) {
	t.Parallel()
	none := func(string) error { return errors.New("none is good") }
	q := xstreamq.NewQueue[string](nil, "orders", xstreamq.WithCodec[string](reverse{}))
	if v, err := q.Decode([]byte("cba")); v != "abc" || err != nil || q.Stream() != "orders" {
		t.Errorf("%q, %v of %s", v, err, q.Stream())
	}
	var nothing *xstreamq.Queue[string]
	for want, q := range map[error]*xstreamq.Queue[string]{
		xstreamq.ErrInvalidBody: xstreamq.NewQueue[string](nil, "orders", xstreamq.WithValidator(none)),
		xstreamq.ErrInvalidName: xstreamq.NewQueue[string](nil, "or ders"),
		xstreamq.ErrClosed:      {},
	} {
		if _, err := q.Decode([]byte(`"abc"`)); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if _, err := nothing.Decode(nil); !errors.Is(err, xstreamq.ErrClosed) || nothing.Stream() != "" {
		t.Errorf("a nil queue: %v", err)
	}
}

// Bytes pass untouched through both ends, whatever they are.
func TestBytesPassUntouched(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	bodies := [][]byte{{}, []byte("a\x00\xff\r\n<b>&"), []byte(`{"id":15947634569000323,"tags":[]}`), bytes.Repeat([]byte{0xfe}, 1<<20)}
	got := make(chan []byte, len(bodies))
	q := xstreamq.NewQueue[[]byte](c, "orders")
	if _, err := q.Subscribe("svc", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		if m.Attempt == 1 {
			return errors.New("once more, through the parked set and the retry stream")
		}
		got <- m.Body
		return nil
	}, fast, xstreamq.Concurrency(1)); err != nil {
		t.Fatal(err)
	}
	s.start(c)
	for _, body := range bodies {
		if _, err := q.Publish(t.Context(), body); err != nil {
			t.Fatal(err)
		}
		if b := receiveOne(t, got, "delivery"); !bytes.Equal(b, body) {
			t.Errorf("published %d bytes %.40q, delivered %d bytes %.40q", len(body), body, len(b), b)
		}
	}
	raw := xstreamq.NewQueue[json.RawMessage](c, "raw")
	if _, err := raw.Publish(t.Context(), json.RawMessage(`{"a": 1}`)); err != nil {
		t.Fatal(err)
	}
	if v := s.rdb.XRange(t.Context(), s.prefix+"{raw}", "-", "+").Val(); len(v) != 1 || v[0].Values["body"] != `{"a": 1}` {
		t.Errorf("stored %v", v)
	}
}
