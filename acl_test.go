package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// pageRoles are the lines of docs/acl.md, by user.
func pageRoles(t *testing.T) map[string][]any {
	t.Helper()
	page, err := os.ReadFile("docs/acl.md")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string][]any{}
	for _, m := range regexp.MustCompile(`(?m)^ACL SETUSER (\w+) .*$`).FindAllStringSubmatch(string(page), -1) {
		for word := range strings.FieldsSeq(m[0]) {
			roles[m[1]] = append(roles[m[1]], word)
		}
	}
	if len(roles) != 5 {
		t.Fatalf("the page has %d roles, want 5", len(roles))
	}
	return roles
}

// rights is a server with the page's users.
type rights struct {
	*site
}

// as is a client of a role, which logs to the site's book and is closed with the test.
func (r *rights) as(role string) *xstreamq.Client {
	r.t.Helper()
	u, err := url.Parse(r.url)
	if err != nil {
		r.t.Fatal(err)
	}
	u.User = url.UserPassword(role, "PASSWORD")
	old := r.url
	defer func() { r.url = old }()
	r.url = u.String()
	return r.open()
}

// raw is a plain client of a role.
func (r *rights) raw(role string) redis.UniversalClient {
	r.t.Helper()
	return r.borrowed(func(o *redis.UniversalOptions) { o.Username, o.Password = role, "PASSWORD" })
}

// TestLeastPrivilege holds the page to its word: each role does its whole job with the rights that it names, and nothing of
// what the others are for.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	on := func(name string, d interface {
		URL() string
		Options() *redis.UniversalOptions
	}, servers ...*redistest.Server,
	) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &rights{site: siteOn(t, d)}
			r.prefix, r.keys = "", keys.NewStream("", "orders").Group("svc") // as on the page
			for _, s := range servers {
				for _, line := range pageRoles(t) {
					if err := s.Client(t).Do(t.Context(), line...).Err(); err != nil {
						t.Fatalf("%v: %v", line, err)
					}
				}
			}
			r.allowed()
			r.refused()
		})
	}
	alone := redistest.Start(t)
	on("alone", alone, alone)
	cluster := redistest.Cluster(t)
	on("cluster", cluster, cluster.Servers...)
}

// allowed does every role's job.
func (r *rights) allowed() {
	t, ctx := r.t, r.t.Context()
	var told atomic.Int32
	worker := r.as("worker")
	r.subscribe(worker, func(_ context.Context, m *xstreamq.Message[order]) error {
		switch {
		case m.Body.ID == 2:
			return errors.New("never")
		case m.Body.ID == 3 && m.Attempt == 1:
			return errors.New("once")
		case m.Body.ID == 4 && m.Headers["again"] == "" && told.Load() == 0:
			return xstreamq.Snooze(50 * time.Millisecond)
		}
		return nil
	}, xstreamq.MaxRetries(1), xstreamq.DedupeTTL(time.Minute), xstreamq.OnDeadLetter(func(context.Context, xstreamq.DeadLetter) { told.Add(1) }))
	r.start(worker)

	plainly, producing := r.as("plain"), r.as("producer")
	plain, producer := r.queue(plainly), r.queue(producing)
	for name, q := range map[string]*xstreamq.Queue[order]{"plain": plain, "producer": producer} {
		if _, err := q.Publish(ctx, order{1}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		short, cancel := context.WithTimeout(ctx, 3*time.Second)
		_, err := q.Publish(short, order{1}, xstreamq.WaitReplicas(1))
		cancel()
		if !errors.Is(err, xstreamq.ErrNotReplicated) || errors.Is(err, xstreamq.ErrAuth) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := plain.PublishBatch(ctx, []order{{2}, {3}, {4}}); err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := producer.Publish(ctx, order{1}, xstreamq.DedupeID("k")); err != nil {
			t.Error(err)
		}
		if _, err := producer.Publish(ctx, order{1}, xstreamq.Delay(20*time.Millisecond), xstreamq.DedupeID("d")); err != nil {
			t.Error(err)
		}
	}
	if _, err := producer.Publish(ctx, order{1}, xstreamq.DedupeID("k"), xstreamq.WaitReplicas(1)); errors.Is(err, xstreamq.ErrAuth) {
		t.Error(err)
	}
	r.dead(1)
	r.settled()
	r.eventually(func() bool { return told.Load() == 1 }, "the dead letter is told")

	// A consumer that died, and compaction of a group that is old enough.
	for _, args := range [][]any{
		{"hset", r.keys.Workers, "dead~1", "1000|1|1|live|"},
		{"hset", r.keys.Groups, "svc", "0-0|1"},
		{"hdel", r.keys.Stream.Meta, "compacted"},
		{"set", r.keys.Paused, "{}"},
	} {
		if err := r.rdb.Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	r.add("body", `{"id":1}`)
	if err := r.rdb.Do(ctx, "xreadgroup", "group", "svc", "dead~1", "streams", r.keys.Main, ">").Err(); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if err := r.rdb.Del(ctx, r.keys.Paused).Err(); err != nil {
		t.Fatal(err)
	}
	r.settled()
	r.eventually(func() bool { return r.rdb.XLen(ctx, r.keys.Main).Val() == 0 }, "compacted")
	r.eventually(func() bool { return !r.rdb.HExists(ctx, r.keys.Workers, "dead~1").Val() }, "the dead consumer is gone")
	for name, c := range map[string]*xstreamq.Client{"worker": worker, "plain": plainly, "producer": producing} {
		if h := c.Health(ctx); !h.Healthy {
			t.Errorf("%s: %+v", name, h)
		}
	}

	r.add("body", `{"id":2}`)
	r.dead(2)
	if err := r.rdb.XGroupCreate(ctx, r.keys.Main, "other", "0").Err(); err != nil {
		t.Fatal(err)
	}
	list := r.entries(r.keys.DLQ)
	delayed, err := producer.Publish(ctx, order{1}, xstreamq.Delay(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	reader := r.calls(r.as("readonly"), list[0].EntryID, delayed.ID)
	for name, f := range reader.reads {
		if err := f(); err != nil {
			t.Errorf("read-only: %s: %v", name, err)
		}
	}
	for name, f := range reader.changes {
		if err := f(); !errors.Is(err, xstreamq.ErrAuth) {
			t.Errorf("read-only: %s: %v, want ErrAuth", name, err)
		}
	}
	op := r.calls(r.as("operator"), list[0].EntryID, delayed.ID)
	for name, f := range op.reads {
		if err := f(); err != nil {
			t.Errorf("operator: %s: %v", name, err)
		}
	}
	if err := worker.Stop(ctx); err != nil {
		t.Error(err)
	}
	for _, name := range op.order {
		if err := op.changes[name](); err != nil {
			t.Errorf("operator: %s: %v", name, err)
		}
	}
	for _, word := range []string{"NOPERM", "ACL failure", "permissions", "can't run"} {
		if strings.Contains(r.log.String(), word) {
			t.Errorf("refused: %s", r.log)
			break
		}
	}
}

// adminCalls are calls of every method of Admin, by whether they change anything; order is that of the changes.
type adminCalls struct {
	reads, changes map[string]func() error
	order          []string
}

func (r *rights) calls(c *xstreamq.Client, dead, delayed string) adminCalls {
	ctx := r.t.Context()
	a, s, g := c.Admin(), c.Admin().Stream("orders"), c.Admin().Group("orders", "svc")
	other := c.Admin().Group("orders", "other")
	one := func(_ any, err error) error { return err }
	out := adminCalls{reads: map[string]func() error{
		"Registered":       func() error { return one(a.Registered(ctx)) },
		"Admin.Depths":     func() error { return one(a.Depths(ctx)) },
		"Doctor":           func() error { return one(a.Doctor(ctx)) },
		"Servers":          func() error { return one(a.Servers(ctx)) },
		"Depths":           func() error { return one(s.Depths(ctx)) },
		"Depth":            func() error { return one(g.Depth(ctx)) },
		"Peek":             func() error { return one(s.Peek(ctx, xstreamq.Page{Newest: true})) },
		"Get":              func() error { return one(s.Get(ctx, delayed)) },
		"Delayed":          func() error { return one(s.Delayed(ctx, xstreamq.Page{})) },
		"Retention":        func() error { return one(s.Retention(ctx)) },
		"Compact, dry run": func() error { return one(s.Compact(ctx, true)) },
		"Pending":          func() error { return one(g.Pending(ctx, xstreamq.Page{})) },
		"Consumers":        func() error { return one(g.Consumers(ctx)) },
		"Retrying":         func() error { return one(g.Retrying(ctx, xstreamq.Page{})) },
		"Totals":           func() error { return one(g.Totals(ctx)) },
		"Why":              func() error { return one(g.Why(ctx, delayed)) },
		"DeadLetters": func() error {
			for _, err := range g.DeadLetters(ctx, xstreamq.Filter{}) {
				return err
			}
			return errors.New("none")
		},
		"DeadLetterPage": func() error {
			_, _, err := g.DeadLetterPage(ctx, xstreamq.Filter{}, xstreamq.Page{Newest: true})
			return err
		},
		"RedriveAll, dry run": func() error { return one(g.RedriveAll(ctx, xstreamq.Filter{All: true}, xstreamq.Bulk{DryRun: true})) },
	}, changes: map[string]func() error{}}
	for _, x := range []struct {
		name string
		f    func() error
	}{
		{"Create", func() error { return one(other.Create(ctx, xstreamq.Head)) }},
		{"Pause", func() error { return g.Pause(ctx, "", time.Hour) }},
		{"Resume", func() error { return g.Resume(ctx) }},
		{"CancelDelayed", func() error { return s.CancelDelayed(ctx, delayed) }},
		{"Seek", func() error { return other.Seek(ctx, xstreamq.Tail) }},
		{"SetRetention", func() error { return s.SetRetention(ctx, time.Hour) }},
		{"Compact", func() error { return one(s.Compact(ctx, false)) }},
		{"Redrive", func() error { return one(g.Redrive(ctx, dead, xstreamq.RedriveOptions{})) }},
		{"RedriveAll", func() error { return one(g.RedriveAll(ctx, xstreamq.Filter{All: true}, xstreamq.Bulk{})) }},
		{"Purge", func() error { return g.Purge(ctx, r.bury()) }},
		{"Redrive to the stream", func() error { return one(g.Redrive(ctx, r.bury(), xstreamq.RedriveOptions{ToStream: true})) }},
		{"PurgeAll", func() error {
			r.bury()
			return one(g.PurgeAll(ctx, xstreamq.Filter{All: true}, xstreamq.Bulk{}))
		}},
		{"RemoveConsumer", func() error {
			if err := r.rdb.HSet(ctx, r.keys.Workers, "left~1", "1000|1|1|live|").Err(); err != nil {
				return err
			}
			return g.RemoveConsumer(ctx, "left~1")
		}},
		{"Delete", func() error { return other.Delete(ctx, true) }},
	} {
		out.changes[x.name] = x.f
		out.order = append(out.order, x.name)
	}
	for _, v := range []any{a, s, g} {
		for m := range reflect.TypeOf(v).Methods() {
			if out.reads[m.Name] == nil && out.changes[m.Name] == nil && m.Name != "Stream" && m.Name != "Group" {
				r.t.Errorf("no role is tried with %s", m.Name)
			}
		}
	}
	return out
}

// bury puts a dead letter in its place by hand.
func (r *rights) bury() string {
	return r.addTo(r.keys.DLQ, "body", "x", "reason", "retries", "oid", "1-1")
}

// refused tries what a role is not for, by its own hand and through the library.
func (r *rights) refused() {
	t, ctx := r.t, r.t.Context()
	main, dlq := r.keys.Main, r.keys.DLQ
	reading := []string{
		"xrange " + main + " - +", "xread streams " + main + " 0", "xreadgroup group svc me streams " + main + " >", "xrange " + dlq + " - +",
		"hgetall " + r.keys.Parked, "xinfo stream " + main,
	}
	acking := []string{"xack " + main + " svc 1-1", "xgroup destroy " + main + " svc", "xtrim " + main + " maxlen 0", "del " + main}
	changing := []string{
		"xadd " + main + " * body x", "xdel " + dlq + " 1-1", "set " + r.keys.Paused + " x", "hset " + r.keys.Workers + " a b", "hdel " + r.keys.Parked + " a",
		"zadd " + r.keys.Due + " 1 a", "sadd xstreamq:registry x", "srem xstreamq:registry x", "unlink " + main, "xgroup setid " + main + " svc 0",
		"xgroup create " + main + " new 0", "xgroup delconsumer " + main + " svc me", "xclaim " + main + " svc me 0 1-1",
	}
	nobody := []string{
		"keys *", "config set maxmemory 1", "flushall", "flushdb", "acl list", "shutdown nosave", "client kill type normal", "script flush",
		"xadd {other} nomkstream * body x", "get other", "xrange {orders2} - +", "rename " + main + " x", "dump " + main, "expire " + main + " 1",
	}
	for role, list := range map[string][]string{
		"plain":    slices.Concat(reading, acking, nobody, []string{"xdel " + main + " 1-1", "get " + r.keys.Paused, "eval return 0"}),
		"producer": slices.Concat(reading, acking, nobody),
		"worker":   slices.Concat(nobody, []string{"del " + main, "unlink " + dlq, "xgroup destroy " + main + " svc", "xgroup setid " + main + " svc 0", "srem xstreamq:registry x"}),
		"operator": slices.Concat(nobody, []string{"xread streams " + main + " 0", "xreadgroup group svc me streams " + main + " >", "xclaim " + main + " svc me 0 1-1"}),
		"readonly": slices.Concat(acking, changing, nobody, []string{"xreadgroup group svc me streams " + main + " >"}),
	} {
		raw := r.raw(role)
		for _, line := range list {
			var args []any
			for w := range strings.FieldsSeq(line) {
				args = append(args, w)
			}
			if args[0] == "eval" {
				args = []any{"eval", "return 0", 1, main}
			}
			if err := raw.Do(ctx, args...).Err(); conn.Code(err) != "NOPERM" {
				t.Errorf("%s: %s: %v, want NOPERM", role, line, err)
			}
		}
	}

	_, err := r.queue(r.as("readonly")).Publish(ctx, order{1})
	named(t, "a publish of read-only", err, "xadd", xstreamq.ErrAuth)
	_, err = r.queue(r.as("plain")).Publish(ctx, order{1}, xstreamq.DedupeID("k"))
	named(t, "a deduplicated publish of plain", err, "eval", xstreamq.ErrAuth)
	c := r.as("producer")
	r.subscribe(c, nothing)
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	named(t, "a subscription of producer", c.Start(bounded), "", xstreamq.ErrAuth)
}

func named(t testing.TB, what string, err error, command string, want error) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), command) {
		t.Errorf("%s: %v, want %v naming %q", what, err, want, command)
	}
}
