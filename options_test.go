package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

// A wrong value is refused by the call that takes the option, by a text that names option, value and what would do.
func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	client := func(o xstreamq.ClientOption) error {
		c, err := xstreamq.Open("redis://localhost", o)
		if c != nil {
			_ = c.Close()
		}
		return err
	}
	queue := func(o xstreamq.QueueOption) error {
		_, err := s.queue(c, o).Publish(t.Context(), order{})
		_, batch := s.queue(c, o).PublishBatch(t.Context(), nil)
		_, subscribe := s.queue(c, o).Subscribe("svc", nothing)
		for _, other := range []error{batch, subscribe} {
			if fmt.Sprint(other) != fmt.Sprint(err) {
				t.Errorf("Publish says %v, another call %v", err, other)
			}
		}
		return err
	}
	publish := func(o xstreamq.PublishOption) error {
		_, err := s.queue(c).Publish(t.Context(), order{}, o)
		b := s.queue(c).NewBatch()
		b.Add(order{}, o)
		if _, batch := b.Publish(t.Context()); !strings.Contains(fmt.Sprint(batch), fmt.Sprint(err)) {
			t.Errorf("Publish says %v, a batch %v", err, batch)
		}
		if defaults := client(xstreamq.PublishDefaults(o)); fmt.Sprint(defaults) != fmt.Sprint(err) {
			t.Errorf("Publish says %v, Open with it as default %v", err, defaults)
		}
		return err
	}
	subscribe := func(o xstreamq.SubscribeOption) error {
		_, err := s.queue(c).Subscribe("svc", nothing, o)
		if defaults := client(xstreamq.SubscribeDefaults(o)); defaults == nil || !strings.Contains(fmt.Sprint(err), defaults.Error()) {
			t.Errorf("Subscribe says %v, Open with it as default %v", err, defaults)
		}
		return err
	}
	const day = 24 * time.Hour
	for _, x := range []struct {
		err   error
		parts string // space-separated
	}{
		{client(xstreamq.DrainTimeout(-1)), "DrainTimeout(-1ns) 24h"},
		{client(xstreamq.DrainTimeout(2 * day)), "DrainTimeout(48h0m0s)"},
		{client(xstreamq.PublishTimeout(0)), "PublishTimeout(0s) 1ms"},
		{client(xstreamq.SweepInterval(time.Millisecond)), "SweepInterval(1ms) 50ms 1m0s"},
		{client(xstreamq.SweepInterval(time.Hour)), "SweepInterval(1h0m0s)"},
		{client(xstreamq.RedisOptions(nil)), "RedisOptions(nil)"},
		{client(xstreamq.MaxConcurrency(0)), "MaxConcurrency(0) 1 100000"},
		{client(xstreamq.MaxConcurrency(100_001)), "MaxConcurrency(100001)"},
		{client(xstreamq.WithLogger(nil)), "WithLogger(nil)"},
		{client(nil), "option 1 nil"},
		{client(xstreamq.SubscribeDefaults(nil)), "option 1 nil"},
		{queue(xstreamq.Retain(-1)), "Retain(-1ns) orders"},
		{queue(xstreamq.Retain(11 * 365 * day)), "Retain("},
		{queue(xstreamq.DedupeWindow(0)), "DedupeWindow(0s) 1ms"},
		{queue(xstreamq.MaxBody(0)), "MaxBody(0) 536870912"},
		{queue(xstreamq.MaxBody(512<<20 + 1)), "MaxBody(536870913)"},
		{queue(xstreamq.WithCodec[string](nil)), "WithCodec(nil)"},
		{queue(xstreamq.WithCodec[string](reverse{})), "WithCodec(xstreamq_test.reverse) xstreamq_test.order"},
		{queue(xstreamq.WithValidator[order](nil)), "WithValidator(nil)"},
		{queue(xstreamq.WithValidator(func(string) error { return nil })), "WithValidator(func(string) func(xstreamq_test.order)"},
		{queue(nil), "option 1 nil"},
		{publish(xstreamq.Delay(time.Microsecond)), "Delay(1µs) 1ms"},
		{publish(xstreamq.Delay(11 * 365 * day)), "Delay("},
		{publish(xstreamq.DeliverAt(time.Now().AddDate(11, 0, 0))), "DeliverAt( 10 years"},
		{publish(xstreamq.Header("", "v")), `Header("")`},
		{publish(xstreamq.Headers(map[string]string{"": "v"})), `Header("")`},
		{publish(nil), "option 1 nil"},
		{subscribe(xstreamq.VisibilityTimeout(999 * time.Millisecond)), "VisibilityTimeout(999ms) 1s 12h"},
		{subscribe(xstreamq.VisibilityTimeout(13 * time.Hour)), "VisibilityTimeout(13h0m0s)"},
		{subscribe(xstreamq.HandlerTimeout(0)), "HandlerTimeout(0s) 1ms"},
		{subscribe(xstreamq.HandlerTimeout(31 * day)), "HandlerTimeout("},
		{subscribe(xstreamq.MaxRetries(-1)), "MaxRetries(-1) RetryForever"},
		{subscribe(xstreamq.MaxRetries(1_000_001)), "MaxRetries(1000001)"},
		{subscribe(xstreamq.MaxLost(-1)), "MaxLost(-1)"},
		{subscribe(xstreamq.WithBackoff(nil)), "WithBackoff(nil)"},
		{subscribe(xstreamq.Concurrency(0)), "Concurrency(0) 1 100000"},
		{subscribe(xstreamq.Concurrency(100_001)), "Concurrency(100001)"},
		{subscribe(xstreamq.Prefetch(-1)), "Prefetch(-1)"},
		{subscribe(xstreamq.StartFrom("yesterday")), "Position(yesterday) AtTime"},
		{subscribe(xstreamq.StartFrom(xstreamq.AfterID("12"))), "Position(12)"},
		{subscribe(xstreamq.DedupeTTL(0)), "DedupeTTL(0s)"},
		{subscribe(xstreamq.ExpireAfter(0)), "ExpireAfter(0s)"},
		{subscribe(xstreamq.ExpireAfter(11 * 365 * 24 * time.Hour)), "ExpireAfter("},
		{subscribe(xstreamq.MaxParked(0)), "MaxParked(0) 1"},
		{subscribe(xstreamq.OnDeadLetter(nil)), "OnDeadLetter(nil)"},
		{subscribe(xstreamq.WithMiddleware(nil)), "WithMiddleware(nil)"},
		{subscribe(xstreamq.BatchSize(0)), "BatchSize(0) 1 10000"},
		{subscribe(xstreamq.BatchSize(10_001)), "BatchSize(10001)"},
		{subscribe(xstreamq.BatchWait(-1)), "BatchWait(-1ns) 0s 1m"},
		{subscribe(xstreamq.BatchWait(time.Hour)), "BatchWait(1h0m0s)"},
	} {
		if !errors.Is(x.err, xstreamq.ErrInvalidOption) {
			t.Errorf("%v, want ErrInvalidOption with %s", x.err, x.parts)
			continue
		}
		for part := range strings.FieldsSeq(x.parts) {
			if !strings.Contains(x.err.Error(), part) {
				t.Errorf("%v does not say %s", x.err, part)
			}
		}
	}
	for _, x := range []struct {
		err  error
		part string
	}{
		{client(xstreamq.Prefix("a{b")), `"a{b"`},
		{client(xstreamq.Prefix(strings.Repeat("p", 201))), "201 bytes"},
		{client(xstreamq.Prefix("a b")), `"a b"`},
		{client(xstreamq.ConsumerPrefix("")), `""`},
		{client(xstreamq.ConsumerPrefix("a\nb")), `"a\nb"`},
		{publish(xstreamq.DedupeID("")), "0 bytes"},
		{publish(xstreamq.DedupeID(strings.Repeat("d", 201))), "201 bytes"},
	} {
		if !errors.Is(x.err, xstreamq.ErrInvalidName) || !strings.Contains(x.err.Error(), x.part) {
			t.Errorf("%v, want ErrInvalidName with %s", x.err, x.part)
		}
	}
	if n := s.rdb.Exists(t.Context(), s.keys.Main).Val(); n != 0 {
		t.Error("something was stored")
	}
	for what, err := range map[string]error{
		"the widest dedupe id": publish(xstreamq.DedupeID(strings.Repeat("\xff", 200))), "the empty prefix": client(xstreamq.Prefix("")),
		"no drain": client(xstreamq.DrainTimeout(0)), "no history": queue(xstreamq.Retain(0)),
	} {
		if err != nil && !errors.Is(err, xstreamq.ErrAlreadySubscribed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// One option type a call: a misplaced option does not compile, since no type converts to another.
func TestMisplacedOptionsDoNotCompile(t *testing.T) {
	t.Parallel()
	types := []reflect.Type{
		reflect.TypeFor[xstreamq.ClientOption](), reflect.TypeFor[xstreamq.QueueOption](),
		reflect.TypeFor[xstreamq.PublishOption](), reflect.TypeFor[xstreamq.SubscribeOption](),
	}
	for _, a := range types {
		for _, b := range types {
			if a != b && (a.AssignableTo(b) || a.ConvertibleTo(b)) {
				t.Errorf("%v passes for %v", a, b)
			}
		}
	}
}

// Later options win, and a call's own stand over a client's defaults.
func TestOptionOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open(xstreamq.PublishDefaults(xstreamq.Delay(time.Hour), xstreamq.Header("a", "1"), xstreamq.Header("b", "1")),
		xstreamq.SubscribeDefaults(xstreamq.MaxRetries(7), xstreamq.HandlerTimeout(time.Hour)))
	q := s.queue(c, xstreamq.MaxBody(1), xstreamq.MaxBody(100))
	if _, err := q.Publish(t.Context(), order{1}, xstreamq.Delay(time.Minute), xstreamq.Delay(0), xstreamq.Header("b", "2")); err != nil {
		t.Fatal(err)
	}
	type seen struct {
		most    int
		until   time.Duration
		headers string
	}
	got := make(chan seen, 1)
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		got <- seen{m.MaxAttempts, time.Until(m.Until()), fmt.Sprint(m.Headers)}
		return nil
	}, xstreamq.HandlerTimeout(time.Minute), xstreamq.HandlerTimeout(10*time.Minute), xstreamq.NoVisibilityTimeout(), xstreamq.VisibilityTimeout(time.Second))
	s.start(c)
	v := receiveOne(t, got, "delivery")
	if v.most != 8 || v.until < 9*time.Minute || v.until > 10*time.Minute || v.headers != "map[a:1 b:2]" {
		t.Errorf("%+v", v)
	}
	if _, err := q.Publish(t.Context(), order{1}); err != nil || s.rdb.ZCard(t.Context(), s.keys.Stream.Due).Val() != 1 {
		t.Errorf("the default delay: %v", err)
	}
}

// A stream's retention is stored by its workers, with the group.
func TestRetainIsStored(t *testing.T) {
	t.Parallel()
	for want, opt := range map[string]xstreamq.QueueOption{"86400000": xstreamq.Retain(24 * time.Hour), "forever": xstreamq.RetainForever(), "0": xstreamq.Retain(0)} {
		s := newSite(t)
		c := s.open()
		if _, err := s.queue(c, opt).Subscribe("svc", nothing); err != nil {
			t.Fatal(err)
		}
		s.start(c)
		if got := s.rdb.HGet(t.Context(), s.keys.Stream.Meta, "retain").Val(); got != want {
			t.Errorf("stored %q, want %q", got, want)
		}
	}
}
