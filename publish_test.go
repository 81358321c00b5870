package xstreamq_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

func TestPublishStoresOneEntry(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p, err := s.queue(s.open()).Publish(t.Context(), order{ID: 7}, xstreamq.Header("trace", "a<b"), xstreamq.Headers(map[string]string{"k": "v"}))
	if err != nil {
		t.Fatal(err)
	}
	list := s.entries(s.keys.Main)
	if len(list) != 1 || list[0].EntryID != p.ID || p.Duplicate {
		t.Fatalf("published %+v, stored %+v", p, list)
	}
	if list[0].Body != `{"id":7}` {
		t.Errorf("body %s", list[0].Body)
	}
	if got := fmt.Sprint(wire.ParseHeaders(list[0].Headers)); got != "map[k:v trace:a<b]" {
		t.Errorf("headers %s", got)
	}
	member, err := s.rdb.SIsMember(t.Context(), s.keys.Registry(), `["orders",""]`).Result()
	if err != nil || !member {
		t.Errorf("the registry does not name the stream: %v", err)
	}
}

// Callers that publish at once share pipelines; each gets the id of its own message.
func TestPublishConcurrently(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open())
	const callers, each = 64, 20
	var mu sync.Mutex
	ids := map[string]int{}
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for n := range each {
				o := c*each + n
				p, err := q.Publish(t.Context(), order{ID: o})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				ids[p.ID] = o
				mu.Unlock()
			}
		})
	}
	all.Wait()
	list := s.entries(s.keys.Main)
	if len(list) != callers*each || len(ids) != callers*each {
		t.Fatalf("%d entries, %d ids, want %d of each", len(list), len(ids), callers*each)
	}
	for _, m := range list {
		if want := fmt.Sprintf(`{"id":%d}`, ids[m.EntryID]); m.Body != want {
			t.Fatalf("entry %s has body %s, its publisher sent %s", m.EntryID, m.Body, want)
		}
	}
}

func TestPublishBatch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open())
	orders := make([]order, 1000)
	for i := range orders {
		orders[i].ID = i
	}
	got, err := q.PublishBatch(t.Context(), orders, xstreamq.Header("h", "1"))
	if err != nil {
		t.Fatal(err)
	}
	list := s.entries(s.keys.Main)
	if len(list) != len(orders) || len(got) != len(orders) {
		t.Fatalf("%d entries, %d results", len(list), len(got))
	}
	for i, m := range list {
		if m.EntryID != got[i].ID || m.Body != fmt.Sprintf(`{"id":%d}`, i) || m.Headers != `{"h":"1"}` {
			t.Fatalf("%d: result %v, entry %+v", i, got[i], m)
		}
	}
	if got, err := q.PublishBatch(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("an empty batch: %v, %v", got, err)
	}
	_, err = q.PublishBatch(t.Context(), orders[:2], xstreamq.DedupeID("one"))
	if !errors.Is(err, xstreamq.ErrInvalidOption) {
		t.Errorf("one dedupe id for a batch: %v", err)
	}
}

// Options of its own for each message: some deduplicated, some delayed, in one batch.
func TestBatchWithOptions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open())
	b := q.NewBatch()
	for i := range 50 {
		b.Add(order{ID: i}, xstreamq.DedupeID("o-"+strconv.Itoa(i%10)))
	}
	b.Add(order{ID: 50})
	b.Add(order{ID: 51}, xstreamq.Delay(time.Hour))
	if b.Len() != 52 {
		t.Errorf("length %d", b.Len())
	}
	got, err := b.Publish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if b.Len() != 0 {
		t.Errorf("length %d after Publish", b.Len())
	}
	firsts, id := 0, map[int]string{}
	for i := range 50 {
		if !got[i].Duplicate {
			firsts++
		}
		if was := id[i%10]; was != "" && was != got[i].ID {
			t.Errorf("message %d got id %s, its first %s", i, got[i].ID, was)
		}
		id[i%10] = got[i].ID
	}
	if firsts != 10 || s.rdb.XLen(t.Context(), s.keys.Main).Val() != 11 || s.rdb.ZCard(t.Context(), s.keys.Stream.Due).Val() != 1 {
		t.Errorf("%d firsts, want 10; %d entries, want 11; %d delayed, want 1", firsts,
			s.rdb.XLen(t.Context(), s.keys.Main).Val(), s.rdb.ZCard(t.Context(), s.keys.Stream.Due).Val())
	}
	b.Add(order{ID: 1})
	b.Add(order{ID: 2}, xstreamq.DedupeID(""))
	if _, err := b.Publish(t.Context()); !errors.Is(err, xstreamq.ErrInvalidName) || !strings.Contains(err.Error(), "message 1 ") {
		t.Errorf("a batch with a wrong option: %v", err)
	}
	if n := s.rdb.XLen(t.Context(), s.keys.Main).Val(); n != 11 {
		t.Errorf("%d entries after a batch that was refused, want 11", n)
	}
}

// What fails in the middle of a batch is named by its index; the others stand.
func TestBatchErrorsNameTheirMessages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open())
	if err := s.rdb.Set(t.Context(), s.keys.Sent("bad"), "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.rdb.Del(t.Context(), s.keys.Sent("bad")).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.rdb.LPush(t.Context(), s.keys.Sent("bad"), "x").Err(); err != nil { // a marker of the wrong type
		t.Fatal(err)
	}
	b := q.NewBatch()
	b.Add(order{ID: 0})
	b.Add(order{ID: 1}, xstreamq.DedupeID("bad"))
	b.Add(order{ID: 2}, xstreamq.DedupeID("good"))
	got, err := b.Publish(t.Context())
	var failed xstreamq.BatchErrors
	if !errors.As(err, &failed) || len(failed) != 1 || failed[1] == nil || !strings.Contains(failed[1].Error(), "WRONGTYPE") {
		t.Fatalf("errors %v", err)
	}
	if got[0].ID == "" || got[1].ID != "" || got[2].ID == "" {
		t.Errorf("results %v", got)
	}
	if n := s.rdb.XLen(t.Context(), s.keys.Main).Val(); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
}

func TestDedupeOneOfMany(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	clients := []*xstreamq.Queue[order]{s.queue(s.open()), s.queue(s.open()), s.queue(s.open()), s.queue(s.open())}
	for round := range 50 {
		id := "order-" + strconv.Itoa(round)
		results := make([]xstreamq.Published, 100)
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() {
				var err error
				if results[i], err = clients[i%4].Publish(t.Context(), order{ID: i}, xstreamq.DedupeID(id)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		firsts := 0
		for _, p := range results {
			if !p.Duplicate {
				firsts++
			}
			if p.ID != results[0].ID {
				t.Errorf("round %d: ids %s and %s", round, p.ID, results[0].ID)
			}
		}
		if n := s.rdb.XLen(t.Context(), s.keys.Main).Val(); firsts != 1 || n != int64(round+1) {
			t.Fatalf("round %d: %d firsts, %d entries", round, firsts, n)
		}
		if ttl := s.rdb.PTTL(t.Context(), s.keys.Sent(id)).Val(); ttl <= 0 || ttl > 10*time.Minute {
			t.Errorf("marker lives for %v, want the window", ttl)
		}
	}
}

// A delayed message's id is the same for a repeated publish, and stays when it is delivered.
func TestDedupeDelayed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open(), xstreamq.DedupeWindow(time.Minute))
	first, err := q.Publish(t.Context(), order{ID: 1}, xstreamq.DedupeID("x"), xstreamq.Delay(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	second, err := q.Publish(t.Context(), order{ID: 1}, xstreamq.DedupeID("x"), xstreamq.Delay(time.Hour))
	if err != nil || second.ID != first.ID || !second.Duplicate || !strings.HasPrefix(first.ID, "d-") {
		t.Fatalf("%+v, then %+v, %v", first, second, err)
	}
	ran := make(chan *xstreamq.Message[order], 2)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { ran <- m; return nil })
	if m := receiveOne(t, ran, "the delayed message"); m.ID != first.ID || m.EntryID == first.ID {
		t.Errorf("delivered as id %s, entry %s; published as %s", m.ID, m.EntryID, first.ID)
	}
}

// A dedupe id whose message could not be stored stays free.
func TestDedupeAfterAFailedPublish(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open())
	if err := s.rdb.Set(t.Context(), s.keys.Main, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if p, err := q.Publish(t.Context(), order{ID: 1}, xstreamq.DedupeID("k")); err == nil || p.ID != "" || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Fatalf("publish onto a string: %+v, %v", p, err)
	}
	if p, err := q.Publish(t.Context(), order{ID: 1}); err == nil || p.ID != "" || errors.Is(err, xstreamq.ErrUncertain) {
		t.Fatalf("plain publish onto a string: %+v, %v", p, err)
	}
	if err := s.rdb.Del(t.Context(), s.keys.Main).Err(); err != nil {
		t.Fatal(err)
	}
	p, err := q.Publish(t.Context(), order{ID: 1}, xstreamq.DedupeID("k"))
	if err != nil || p.Duplicate || s.rdb.XLen(t.Context(), s.keys.Main).Val() != 1 {
		t.Fatalf("publish after the failed one: %+v, %v", p, err)
	}
}

func TestPublishDelayed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open())
	at := func(opt xstreamq.PublishOption) (xstreamq.Published, time.Time) {
		t.Helper()
		p, err := q.Publish(t.Context(), order{ID: 1}, opt)
		if err != nil {
			t.Fatal(err)
		}
		score, err := s.rdb.ZScore(t.Context(), s.keys.Stream.Due, p.ID).Result()
		if errors.Is(err, redis.Nil) {
			return p, time.Time{}
		}
		if err != nil {
			t.Fatal(err)
		}
		return p, time.UnixMilli(int64(score))
	}
	before := s.serverTime()
	_, due := at(xstreamq.Delay(time.Hour))
	if due.Before(before.Add(time.Hour).Truncate(time.Millisecond)) || due.After(s.serverTime().Add(time.Hour)) {
		t.Errorf("due %v, published at %v with an hour's delay", due, before)
	}
	when := before.Add(90 * time.Minute).Truncate(time.Millisecond)
	if _, due := at(xstreamq.DeliverAt(when)); !due.Equal(when) {
		t.Errorf("due %v, want %v", due, when)
	}
	for name, opt := range map[string]xstreamq.PublishOption{
		"zero delay": xstreamq.Delay(0), "negative delay": xstreamq.Delay(-time.Hour),
		"past": xstreamq.DeliverAt(before.Add(-time.Hour)), "long past": xstreamq.DeliverAt(time.Unix(-1e9, 0)), "zero time": xstreamq.DeliverAt(time.Time{}),
	} {
		if p, due := at(opt); !due.IsZero() || !wire.IsEntryID(p.ID) {
			t.Errorf("%s: id %s, due %v, want it in the stream", name, p.ID, due)
		}
	}
	for name, opt := range map[string]xstreamq.PublishOption{
		"Delay": xstreamq.Delay(11 * 365 * 24 * time.Hour), "DeliverAt": xstreamq.DeliverAt(time.Now().AddDate(11, 0, 0)),
		"Delay(1ns)": xstreamq.Delay(1),
	} {
		if _, err := q.Publish(t.Context(), order{}, opt); !errors.Is(err, xstreamq.ErrInvalidOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A delayed message is delivered when it is due by the server's clock, no earlier, and once.
func TestDelayedDelivery(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	type got struct {
		id string
		at time.Time
	}
	ran := make(chan got, 10)
	h := func(_ context.Context, m *xstreamq.Message[order]) error {
		ran <- got{m.ID, s.serverTime()}
		return nil
	}
	q := s.queue(s.worker(h))
	s.worker(h)
	if _, err := q.Publish(t.Context(), order{ID: 1}, xstreamq.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	start := s.serverTime()
	p, err := q.Publish(t.Context(), order{ID: 2}, xstreamq.Delay(300*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	one := receiveOne(t, ran, "the message that is due")
	if one.id != p.ID || one.at.Sub(start) < 299*time.Millisecond {
		t.Errorf("message %s after %v, want %s after 300ms", one.id, one.at.Sub(start), p.ID)
	}
	silent(t, ran, 300*time.Millisecond, "another delivery")
	if n := s.rdb.ZCard(t.Context(), s.keys.Stream.Due).Val(); n != 1 {
		t.Errorf("%d still delayed, want 1", n)
	}
}

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

// Names that would split a hash tag, meet other keys or break a line are refused by publisher and subscriber alike; all
// others reach their own stream only.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	handler := func(context.Context, *xstreamq.Message[order]) error { return nil }
	for _, name := range []string{
		"", "}x", "{", "a{b}c", "{x}", "a b", " ", "a\tb", "a\nb", "a\x00b", "a\x7f", "\u00a0", "\u2028", "a\xff", strings.Repeat("k", 201), strings.Repeat("ü", 101),
	} {
		q := xstreamq.NewQueue[order](c, name)
		_, publish := q.Publish(t.Context(), order{})
		_, batch := q.PublishBatch(t.Context(), []order{{}})
		_, empty := q.PublishBatch(t.Context(), nil)
		_, subscribe := q.Subscribe("svc", handler)
		_, group := s.queue(c).Subscribe(name, handler)
		for call, err := range map[string]error{"Publish": publish, "PublishBatch": batch, "empty PublishBatch": empty, "Subscribe": subscribe, "group": group} {
			if !errors.Is(err, xstreamq.ErrInvalidName) || !strings.Contains(err.Error(), strconv.Quote(name)) {
				t.Errorf("%s of name %q: %v", call, name, err)
			}
		}
	}
	for _, name := range []string{"a", "a:b", "a.b", "a*", "a[b", "a/b", "a%2Fb", "a#b", "ünïcode", "?", `a"b`, "<img>", strings.Repeat("k", 200)} {
		q := xstreamq.NewQueue[order](c, name)
		if _, err := q.Publish(t.Context(), order{}); err != nil {
			t.Errorf("name %q: %v", name, err)
		}
		if n := s.rdb.XLen(t.Context(), s.prefix+"{"+name+"}").Val(); n != 1 {
			t.Errorf("name %q: its stream has %d entries, want 1", name, n)
		}
		if _, err := q.Subscribe(name, handler); err != nil {
			t.Errorf("group %q: %v", name, err)
		}
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

// A context that is over before the call sends nothing and says so.
func TestPublishWithAnEndedContext(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	q := s.queue(s.open())
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("changed my mind")
	cancel(cause)
	_, plain := q.Publish(ctx, order{})
	_, delayed := q.Publish(ctx, order{}, xstreamq.Delay(time.Hour))
	_, batch := q.PublishBatch(ctx, []order{{1}, {2}})
	for call, err := range map[string]error{"plain": plain, "delayed": delayed, "batch": batch} {
		if !errors.Is(err, xstreamq.ErrUnavailable) || errors.Is(err, xstreamq.ErrUncertain) || !errors.Is(err, cause) {
			t.Errorf("%s: %v, want ErrUnavailable with the cause", call, err)
		}
	}
	if n := s.rdb.Exists(t.Context(), s.keys.Main, s.keys.Stream.Due).Val(); n != 0 {
		t.Error("something was stored")
	}
}

// A server that does not answer: the outcome is unknown, in time, and nothing is sent twice when it wakes.
func TestPublishToAFrozenServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := siteOn(t, srv)
	borrowed, err := xstreamq.New(redis.NewClient(&redis.Options{Addr: srv.Addr(), ReadTimeout: 4 * time.Second}), xstreamq.Prefix(s.prefix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = borrowed.Close() })
	owned := s.open()
	srv.Pause()
	defer srv.Resume()
	type result struct {
		name string
		err  error
		took time.Duration
	}
	results := make(chan result, 10)
	n := 0
	publish := func(name string, f func(ctx context.Context) error) {
		n++
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
			defer cancel()
			start := time.Now()
			results <- result{name, f(ctx), time.Since(start)}
		}()
	}
	for name, c := range map[string]*xstreamq.Client{"borrowed": borrowed, "owned": owned} {
		q := s.queue(c)
		publish(name+" plain", func(ctx context.Context) error { _, err := q.Publish(ctx, order{1}); return err })
		publish(name+" delayed", func(ctx context.Context) error {
			_, err := q.Publish(ctx, order{2}, xstreamq.Delay(time.Hour))
			return err
		})
	}
	for _, r := range receive(t, results, n, "publishes return") {
		if !errors.Is(r.err, xstreamq.ErrUncertain) && !errors.Is(r.err, xstreamq.ErrUnavailable) {
			t.Errorf("%s: %v", r.name, r.err)
		}
		if r.took > 2*time.Second {
			t.Errorf("%s took %v with a context of 700ms", r.name, r.took)
		}
	}
	srv.Resume()
	q := s.queue(owned)
	if _, err := q.Publish(t.Context(), order{3}); err != nil {
		t.Fatal(err)
	}
	if n := s.rdb.XLen(t.Context(), s.keys.Main).Val(); n > 3 {
		t.Errorf("%d entries of 3 publishes", n)
	}
	if n := s.rdb.ZCard(t.Context(), s.keys.Stream.Due).Val(); n > 2 {
		t.Errorf("%d delayed of 2 publishes", n)
	}
}

// A server that stands still for longer than the client waits gets each publish once, whatever the client library would
// repeat on its own.
func TestAFreezePublishesOnce(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]xstreamq.PublishOption{"plain": nil, "delayed": {xstreamq.Delay(time.Hour)}} {
		for _, owned := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s owned %v", name, owned), func(t *testing.T) {
				t.Parallel()
				srv := redistest.Start(t)
				s := siteOn(t, srv)
				c, err := xstreamq.New(s.borrowed(func(o *redis.UniversalOptions) { o.ReadTimeout, o.MaxRetries = 200*time.Millisecond, 5 }), xstreamq.Prefix(s.prefix))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				if owned {
					c = s.open(xstreamq.RedisOptions(func(o *redis.UniversalOptions) { o.ReadTimeout, o.MaxRetries = 200*time.Millisecond, 5 }))
				}
				publish := func() error {
					_, err := s.queue(c).Publish(t.Context(), order{1}, opts...)
					return err
				}
				if err := publish(); err != nil { // makes a connection and loads the script
					t.Fatal(err)
				}
				srv.Pause()
				defer srv.Resume()
				if err := publish(); !errors.Is(err, xstreamq.ErrUncertain) {
					t.Errorf("%v, want ErrUncertain", err)
				}
				srv.Resume()
				if err := publish(); err != nil { // what the frozen server had been sent runs before it answers this
					t.Fatal(err)
				}
				if n := s.rdb.XLen(t.Context(), s.keys.Main).Val() + s.rdb.ZCard(t.Context(), s.keys.Stream.Due).Val(); n != 3 {
					t.Errorf("%d messages of 3 publishes", n)
				}
			})
		}
	}
}

// With a dedupe id a publish is repeated until it is answered, and is still one message.
func TestDedupedPublishOutlastsAFreeze(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := siteOn(t, srv)
	c := s.open(xstreamq.RedisOptions(func(o *redis.UniversalOptions) { o.ReadTimeout = 200 * time.Millisecond }))
	q := s.queue(c)
	srv.Pause()
	done := make(chan error, 1)
	var p xstreamq.Published
	go func() {
		var err error
		p, err = q.Publish(context.Background(), order{1}, xstreamq.DedupeID("k"))
		done <- err
	}()
	silent(t, done, 600*time.Millisecond, "the publish returned while the server was frozen")
	srv.Resume()
	if err := receiveOne(t, done, "the publish"); err != nil {
		t.Fatal(err)
	}
	list := s.entries(s.keys.Main)
	if len(list) != 1 || list[0].ID != p.ID {
		t.Errorf("stored %+v, published %+v", list, p)
	}
}

// A server that is not there is no reason to lie: nothing was stored.
func TestPublishToNobody(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := xstreamq.Open("redis://user:secret@"+addr, xstreamq.PublishTimeout(300*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, err = xstreamq.NewQueue[order](c, "orders").Publish(t.Context(), order{})
	if !errors.Is(err, xstreamq.ErrUnavailable) || errors.Is(err, xstreamq.ErrUncertain) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	if strings.Contains(fmt.Sprint(err), "secret") {
		t.Errorf("the error tells the password: %v", err)
	}
}

func TestPublishHooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	type key struct{}
	type end struct {
		out xstreamq.Outgoing
		p   xstreamq.Published
		err error
		ctx any
	}
	ends := make(chan end, 10)
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{
		PublishStart: func(ctx context.Context, o *xstreamq.Outgoing) context.Context {
			o.Headers["trace"] = "t1"
			return context.WithValue(ctx, key{}, "span")
		},
		PublishEnd: func(ctx context.Context, o *xstreamq.Outgoing, p xstreamq.Published, err error) {
			ends <- end{*o, p, err, ctx.Value(key{})}
		},
	}), xstreamq.WithHooks(xstreamq.Hooks{PublishStart: func(context.Context, *xstreamq.Outgoing) context.Context { panic("a hook") }}))
	q := s.queue(c)
	given := map[string]string{"a": "b"}
	p, err := q.Publish(t.Context(), order{1}, xstreamq.Headers(given), xstreamq.DedupeID("d"))
	if err != nil {
		t.Fatal(err)
	}
	e := receiveOne(t, ends, "PublishEnd")
	if e.p != p || e.err != nil || e.ctx != "span" || e.out.Stream != "orders" || e.out.DedupeID != "d" || string(e.out.Body) != `{"id":1}` {
		t.Errorf("end %+v", e)
	}
	if got := fmt.Sprint(wire.ParseHeaders(s.entries(s.keys.Main)[0].Headers)); got != "map[a:b trace:t1]" {
		t.Errorf("headers %s", got)
	}
	if len(given) != 1 {
		t.Errorf("the caller's map became %v", given)
	}
	if _, err := q.PublishBatch(t.Context(), []order{{1}, {2}}, xstreamq.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, e := range receive(t, ends, 2, "PublishEnd of a batch") {
		if e.err != nil || e.p.ID == "" || time.Until(e.out.Due) < 59*time.Minute {
			t.Errorf("end %+v", e)
		}
	}
	if !strings.Contains(s.log.String(), "PublishStart") {
		t.Error("the hook's panic was not logged")
	}
}

func TestBatchErrorsText(t *testing.T) {
	t.Parallel()
	if err := (xstreamq.BatchErrors{}).Err(); err != nil {
		t.Errorf("no errors: %v", err)
	}
	e := xstreamq.BatchErrors{9: xstreamq.ErrUncertain, 2: xstreamq.ErrTooLarge, 5: xstreamq.ErrAuth, 11: xstreamq.ErrClosed}
	if !errors.Is(e.Err(), xstreamq.ErrAuth) || errors.Is(e.Err(), xstreamq.ErrFormat) {
		t.Error("errors.Is does not find the messages' own errors")
	}
	if got, want := e.Error(), "4 messages failed; 2: body too large; 5: server refused the login or a command; 9: outcome unknown; …"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
