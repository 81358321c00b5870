package xstreamq_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// patience bounds what must happen and gives no sooner signal of failing: a loaded machine is slow.
const patience = 15 * time.Second

// order is the body of most tests.
type order struct {
	ID int `json:"id"`
}

// site is one stream and group that a test has to itself, and a plain client to look at what is stored.
type site struct {
	t      testing.TB
	url    string
	prefix string
	opts   *redis.UniversalOptions
	rdb    redis.UniversalClient
	keys   keys.Group
	log    *logbook
}

// newSite is a site on what tests share: a server, a cluster or what a Sentinel watches. A test that asks something of one
// server's process has a server of its own.
func newSite(t testing.TB) *site {
	t.Helper()
	return siteOn(t, redistest.Deployed(t))
}

// siteOn is a site on a server of the test's own, which it may stop, freeze or configure.
func siteOn(t testing.TB, srv interface {
	URL() string
	Options() *redis.UniversalOptions
},
) *site {
	t.Helper()
	s := &site{t: t, url: srv.URL(), prefix: redistest.Prefix(t), opts: srv.Options(), log: &logbook{}}
	s.rdb = s.borrowed()
	s.keys = keys.NewStream(s.prefix, "orders").Group("svc")
	return s
}

// borrowed is a client of the site's Redis that the test lends out, as changed, and closes itself.
func (s *site) borrowed(change ...func(*redis.UniversalOptions)) redis.UniversalClient {
	s.t.Helper()
	o := *s.opts
	for _, f := range change {
		f(&o)
	}
	c := redis.NewUniversalClient(&o)
	s.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.t.Errorf("the borrowed client was closed by somebody else: %v", err)
		}
	})
	return c
}

// open makes a client that sweeps often and is closed with the test.
func (s *site) open(opts ...xstreamq.ClientOption) *xstreamq.Client {
	s.t.Helper()
	c, err := xstreamq.Open(s.url, append([]xstreamq.ClientOption{
		xstreamq.Prefix(s.prefix), xstreamq.SweepInterval(100 * time.Millisecond), xstreamq.WithLogger(slog.New(s.log)),
	}, opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.t.Errorf("close: %v", err)
		}
	})
	return c
}

// worker is a running client with one subscription of the site's stream and group.
func (s *site) worker(h func(context.Context, *xstreamq.Message[order]) error, opts ...xstreamq.SubscribeOption) *xstreamq.Client {
	s.t.Helper()
	c := s.open()
	s.subscribe(c, h, opts...)
	s.start(c)
	return c
}

func (s *site) subscribe(c *xstreamq.Client, h func(context.Context, *xstreamq.Message[order]) error, opts ...xstreamq.SubscribeOption) *xstreamq.Subscription {
	s.t.Helper()
	sub, err := s.queue(c).Subscribe("svc", h, append([]xstreamq.SubscribeOption{fast}, opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return sub
}

// fast is a backoff that tests need not wait for.
var fast = xstreamq.WithBackoff(xstreamq.BackoffFunc(func(int, error) time.Duration { return 20 * time.Millisecond }))

func (s *site) queue(c *xstreamq.Client, opts ...xstreamq.QueueOption) *xstreamq.Queue[order] {
	return xstreamq.NewQueue[order](c, "orders", opts...)
}

func (s *site) start(c *xstreamq.Client) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := c.Start(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// publish adds orders from..to and returns their ids.
func (s *site) publish(from, to int) (ids []string) {
	s.t.Helper()
	for n := from; n <= to; n++ {
		ids = append(ids, s.add("body", `{"id":`+strconv.Itoa(n)+`}`))
	}
	return ids
}

// add puts an entry into the stream as any Redis client would.
func (s *site) add(fields ...string) string { s.t.Helper(); return s.addTo(s.keys.Main, fields...) }

func (s *site) addTo(stream string, fields ...string) string {
	s.t.Helper()
	id, err := s.rdb.XAdd(s.t.Context(), &redis.XAddArgs{Stream: stream, Values: fields}).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// entries reads a stream, fields in order.
func (s *site) entries(stream string) (out []wire.Message) {
	s.t.Helper()
	v, err := s.rdb.Do(s.t.Context(), "xrange", stream, "-", "+").Slice()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range v {
		pair := e.([]any)
		var fields []string
		for _, f := range pair[1].([]any) {
			fields = append(fields, f.(string))
		}
		out = append(out, wire.Parse(pair[0].(string), fields))
	}
	return out
}

// dead waits for n dead letters and returns them.
func (s *site) dead(n int) []wire.Message {
	s.t.Helper()
	var list []wire.Message
	s.eventually(func() bool {
		list = s.entries(s.keys.DLQ)
		return len(list) >= n
	}, "%d dead letters", n)
	if len(list) > n {
		s.t.Fatalf("%d dead letters, want %d: %v", len(list), n, list)
	}
	return list
}

// load is how much of the group is where.
type load struct{ pending, retry, parked, dead int64 }

func (s *site) load() load {
	k := s.keys
	n, err := countLoad.Eval(context.Background(), s.rdb, []string{k.Main, k.Retry, k.Parked, k.DLQ}, "svc").Int64Slice()
	if err != nil { // an unreachable server says nothing of what it holds
		return load{-1, -1, -1, -1}
	}
	return load{n[0], n[1], n[2], n[3]}
}

// countLoad counts at one moment: what moves meanwhile must not be missed in both places. MULTI is refused where memory is
// full. A stream or group that is not there, or a key of another type, holds nothing.
var countLoad = redis.NewScript(`
local function count(name, ...)
  local n = redis.pcall(name, ...)
  return type(n) == 'number' and n or type(n) == 'table' and n[1] or 0
end
return {
  count('XPENDING', KEYS[1], ARGV[1]) + count('XPENDING', KEYS[2], ARGV[1]),
  count('XLEN', KEYS[2]), count('HLEN', KEYS[3]), count('XLEN', KEYS[4]),
}`)

// settled waits until nothing is pending, to be retried or parked, and the group was given all.
func (s *site) settled() {
	s.t.Helper()
	var l load
	s.eventually(func() bool {
		if !s.delivered() { // first: what is read after this look is pending in the next
			return false
		}
		l = s.load()
		return l.pending+l.retry+l.parked == 0
	}, "everything settled, is %v", &l)
}

// delivered says that nothing in the stream waits to be read.
func (s *site) delivered() bool {
	groups, err := s.rdb.XInfoGroups(context.Background(), s.keys.Main).Result()
	if err != nil {
		return false
	}
	last, err := s.rdb.XRevRangeN(context.Background(), s.keys.Main, "+", "-", 1).Result()
	for _, g := range groups {
		if g.Name == "svc" {
			return err == nil && (len(last) == 0 || wire.CompareIDs(g.LastDeliveredID, last[0].ID) >= 0)
		}
	}
	return false
}

func (s *site) eventually(f func() bool, what string, args ...any) {
	s.t.Helper()
	s.within(patience, f, what, args...)
}

func (s *site) within(d time.Duration, f func() bool, what string, args ...any) {
	s.t.Helper()
	for end := time.Now().Add(d); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within %v: "+what+"\nlog:\n%s", append(append([]any{d}, args...), s.log)...)
		}
	}
}

// serverTime is the server's clock.
func (s *site) serverTime() time.Time {
	s.t.Helper()
	now, err := s.rdb.Time(s.t.Context()).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return now
}

// parkedOnly waits for the one parked failure and returns its fields and when it is due.
func (s *site) parkedOnly() (wire.Message, time.Time) {
	s.t.Helper()
	var due []redis.Z
	s.eventually(func() bool {
		due = s.rdb.ZRangeWithScores(s.t.Context(), s.keys.Due, 0, -1).Val()
		return len(due) == 1
	}, "one parked failure")
	member := due[0].Member.(string)
	packed, err := s.rdb.HGet(s.t.Context(), s.keys.Parked, member).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	fields, err := wire.Unpack(packed)
	if err != nil {
		s.t.Fatal(err)
	}
	return wire.Parse(member, fields), time.UnixMilli(int64(due[0].Score))
}

// receive takes n values from a channel.
func receive[T any](t testing.TB, from <-chan T, n int, what string) []T {
	t.Helper()
	limit := time.After(patience)
	out := make([]T, 0, n)
	for len(out) < n {
		select {
		case v := <-from:
			out = append(out, v)
		case <-limit:
			t.Fatalf("%d of %d within %v: %s", len(out), n, patience, what)
		}
	}
	return out
}

func receiveOne[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	return receive(t, from, 1, what)[0]
}

// silent checks that nothing comes for d.
func silent[T any](t testing.TB, from <-chan T, d time.Duration, what string) {
	t.Helper()
	select {
	case v := <-from:
		t.Fatalf("%s: %v", what, v)
	case <-time.After(d):
	}
}

// calls counts handler runs by message.
type calls struct {
	mu sync.Mutex
	by map[string]int
}

func (c *calls) add(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[id]++
	return c.by[id]
}

func (c *calls) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.by {
		n += v
	}
	return n
}

func (c *calls) distinct() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.by)
}

// each checks that every message was handled n times.
func (c *calls) each(t testing.TB, ids []string, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if c.by[id] != n {
			t.Errorf("message %s was handled %d times, want %d", id, c.by[id], n)
		}
	}
	if len(c.by) != len(ids) {
		t.Errorf("%d messages were handled, want %d", len(c.by), len(ids))
	}
}

// logbook is a slog.Handler that keeps what was logged.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (b *logbook) Enabled(context.Context, slog.Level) bool { return true }
func (b *logbook) WithAttrs([]slog.Attr) slog.Handler       { return b }
func (b *logbook) WithGroup(string) slog.Handler            { return b }

func (b *logbook) Handle(ctx context.Context, r slog.Record) error {
	var line bytes.Buffer
	err := slog.NewTextHandler(&line, nil).Handle(ctx, r)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, strings.TrimSpace(line.String()))
	return err
}

func (b *logbook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "\n")
}

func (b *logbook) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lines)
}

// bodies are the numbers of orders, sorted.
func bodies(t testing.TB, list []wire.Message) (out []int) {
	t.Helper()
	for _, m := range list {
		var o order
		if err := json.Unmarshal([]byte(m.Body), &o); err != nil {
			t.Fatal(err)
		}
		out = append(out, o.ID)
	}
	slices.Sort(out)
	return out
}

// commands counts the calls of commands that the server has run, by its own statistics.
func (s *site) commands(names ...string) (n int64) {
	s.t.Helper()
	info, err := s.rdb.Info(s.t.Context(), "commandstats").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		for _, name := range names {
			if rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":calls="); ok {
				count, _, _ := strings.Cut(rest, ",")
				v, err := strconv.ParseInt(count, 10, 64)
				if err != nil {
					s.t.Fatal(err)
				}
				n += v
			}
		}
	}
	return n
}

// scan reads the first words of a line.
func scan(line string, words ...*string) bool {
	list := strings.Fields(line)
	if len(list) < len(words) {
		return false
	}
	for i, w := range words {
		*w = list[i]
	}
	return true
}

// everyKey is what is stored under a prefix, on every node.
func everyKey(t testing.TB, rdb redis.UniversalClient, prefix string) (names []string) {
	t.Helper()
	var mu sync.Mutex
	look := func(ctx context.Context, node *redis.Client) error {
		list, err := node.Keys(ctx, prefix+"*").Result()
		mu.Lock()
		defer mu.Unlock()
		names = append(names, list...)
		return err
	}
	var err error
	if c, ok := rdb.(*redis.ClusterClient); ok {
		err = c.ForEachMaster(t.Context(), look)
	} else {
		err = look(t.Context(), rdb.(*redis.Client))
	}
	if err != nil {
		t.Fatal(err)
	}
	return names
}
