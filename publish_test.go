package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
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
