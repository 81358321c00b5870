package xstreamq_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// answer is what a probe gets.
func answer(t testing.TB, h http.Handler) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	return w.Code, strings.TrimSpace(w.Body.String())
}

// bobs is a site on a server of its own, as a user that the test may change.
func bobs(t *testing.T) (*site, *redistest.Server) {
	t.Helper()
	srv := redistest.Start(t, "--user", "bob", "on", ">secret", "~*", "&*", "+@all")
	s := siteOn(t, srv)
	s.url = (&url.URL{Scheme: "redis", Host: srv.Addr(), User: url.UserPassword("bob", "secret")}).String()
	return s, srv
}

// Names, order and JSON of the checks are what probes and dashboards are written against.
func TestHealthShape(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	begun, release := make(chan struct{}), make(chan struct{})
	s.subscribe(c, func(context.Context, *xstreamq.Message[order]) error {
		close(begun)
		<-release
		return nil
	})
	want := func(code int, text string, h http.Handler) {
		t.Helper()
		if got, body := answer(t, h); got != code || body != text {
			t.Errorf("%d %s\nwant %d %s", got, body, code, text)
		}
	}
	const green = `{"healthy":true,"checks":[{"name":"client","ok":true},{"name":"server","ok":true},{"name":"writable","ok":true},` +
		`{"name":"subscription orders/svc","ok":true},{"name":"loops orders/svc","ok":true}]}`
	red := func(client, sub string) string {
		text := strings.Replace(green, `true,"checks":[{"name":"client","ok":true}`, `false,"checks":[{"name":"client","ok":false,"detail":"`+client+`"}`, 1)
		if sub != "" {
			text = strings.Replace(text, `svc","ok":true`, `svc","ok":false,"detail":"`+sub+`"`, 1)
		}
		return text
	}
	want(503, red("not started", "not started"), c.ReadyHandler())
	want(200, `{"healthy":true,"checks":[{"name":"loops orders/svc","ok":true}]}`, c.LiveHandler())
	s.start(c)
	want(200, green, c.ReadyHandler())
	if n := s.rdb.Exists(t.Context(), s.keys.Probe()).Val(); n != 0 {
		t.Error("the probe made its key")
	}

	s.publish(1, 1)
	receiveOne(t, begun, "a handler runs")
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop(context.Background()) }()
	s.eventually(func() bool { return !c.Health(t.Context()).Healthy }, "red while draining")
	want(503, red("draining", ""), c.ReadyHandler())
	want(200, `{"healthy":true,"checks":[{"name":"loops orders/svc","ok":true}]}`, c.LiveHandler())
	close(release)
	if err := receiveOne(t, stopped, "the stop"); err != nil {
		t.Error(err)
	}
	want(503, red("stopped", "stopped"), c.ReadyHandler())

	var zero xstreamq.Client
	want(503, `{"healthy":false,"checks":[{"name":"client","ok":false,"detail":"client closed: it was not made by Open or New"}]}`, zero.ReadyHandler())
	want(200, `{"healthy":true,"checks":[]}`, zero.LiveHandler())
	want(200, `{"healthy":true,"checks":[{"name":"client","ok":true},{"name":"server","ok":true}]}`, s.open().ReadyHandler())
}

// Whatever breaks, health says so with its reason, in time, and is green again within five seconds of its end. None of it is for
// a restart to mend.
func TestHealthTurns(t *testing.T) {
	t.Parallel()
	do := func(s *site, args ...any) {
		if err := s.rdb.Do(context.Background(), args...).Err(); err != nil {
			s.t.Error(err)
		}
	}
	for name, a := range map[string]struct {
		hit, mend func(s *site, srv *redistest.Server)
		check     string // that tells it first of all
		detail    string
	}{
		"down": {
			func(_ *site, srv *redistest.Server) { srv.Kill() },
			func(s *site, srv *redistest.Server) { srv.Restart(s.t) }, "server", "connection refused",
		},
		"frozen": {
			func(_ *site, srv *redistest.Server) { srv.Pause() },
			func(_ *site, srv *redistest.Server) { srv.Resume() }, "server", "no answer for",
		},
		"demoted": {
			func(s *site, _ *redistest.Server) { do(s, "replicaof", "127.0.0.1", "1") },
			func(s *site, _ *redistest.Server) { do(s, "replicaof", "no", "one") }, "writable", "READONLY",
		},
		"memory full": {
			func(s *site, _ *redistest.Server) { do(s, "config", "set", "maxmemory", "1") },
			func(s *site, _ *redistest.Server) { do(s, "config", "set", "maxmemory", "0") }, "writable", "OOM",
		},
		"without replicas": {
			func(s *site, _ *redistest.Server) { do(s, "config", "set", "min-replicas-to-write", "1") },
			func(s *site, _ *redistest.Server) { do(s, "config", "set", "min-replicas-to-write", "0") }, "writable", "NOREPLICAS",
		},
		"save failed": {
			func(s *site, srv *redistest.Server) { failSave(s.t, s.rdb) },
			func(s *site, _ *redistest.Server) { do(s, "config", "set", "save", "") }, "writable", "MISCONF",
		},
		"password changed": {
			func(s *site, _ *redistest.Server) {
				do(s, "acl", "setuser", "bob", "resetpass", ">other")
				do(s, "client", "kill", "user", "bob")
			},
			func(s *site, _ *redistest.Server) { do(s, "acl", "setuser", "bob", ">secret") }, "server", "WRONGPASS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, srv := bobs(t)
			worker, producer := s.worker(nothing), s.open()
			s.queue(producer) // it has published nothing yet
			for _, c := range []*xstreamq.Client{worker, producer} {
				s.within(5*time.Second, func() bool { return c.Health(t.Context()).Healthy }, "green")
			}
			a.hit(s, srv)
			for who, c := range map[string]*xstreamq.Client{"worker": worker, "producer": producer} {
				var h xstreamq.Health
				s.within(5*time.Second, func() bool {
					began := time.Now()
					h = c.Health(t.Context())
					if took := time.Since(began); took > 2*time.Second {
						t.Errorf("%s: the answer took %v", who, took)
					}
					return says(h, a.check, a.detail)
				}, "%s: %s is red with %q: %+v", who, a.check, a.detail, &h)
				if says(h, "loops orders/svc", "") {
					t.Errorf("%s: the loops are blamed: %+v", who, h)
				}
				if code, body := answer(t, c.LiveHandler()); code != 200 {
					t.Errorf("%s: a restart is asked for: %s", who, body)
				}
			}
			a.mend(s, srv)
			for who, c := range map[string]*xstreamq.Client{"worker": worker, "producer": producer} {
				var h xstreamq.Health
				s.within(5*time.Second, func() bool {
					h = c.Health(t.Context())
					return h.Healthy
				}, "%s: green again: %+v", who, &h)
			}
		})
	}
}

// failSave takes the server's directory away, so that its snapshot fails: then it refuses writes for as long as it is to save.
func failSave(t testing.TB, rdb redis.Cmdable) {
	t.Helper()
	ctx := context.Background()
	dir, err := rdb.ConfigGet(ctx, "dir").Result()
	if err != nil || dir["dir"] == "" {
		t.Errorf("%v, %v", dir, err)
		return
	}
	for _, err := range []error{os.RemoveAll(dir["dir"]), rdb.ConfigSet(ctx, "save", "3600 1").Err(), rdb.BgSave(ctx).Err()} {
		if err != nil {
			t.Error(err)
		}
	}
}

func says(h xstreamq.Health, check, detail string) bool {
	for _, c := range h.Checks {
		if c.Name == check && !c.OK && strings.Contains(c.Detail, detail) {
			return !h.Healthy
		}
	}
	return false
}

// A worker whose server takes no reads or no acks is connected and not consuming: its own user lost a command.
func TestHealthOfRefusedCommands(t *testing.T) {
	t.Parallel()
	for command, detail := range map[string]string{"xreadgroup": "read: ", "xack": "settle: ", "time": "tick: "} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s, _ := bobs(t)
			c := s.worker(nothing)
			if err := s.rdb.Do(t.Context(), "acl", "setuser", "bob", "-"+command).Err(); err != nil {
				t.Fatal(err)
			}
			s.publish(1, 3)
			s.within(5*time.Second, func() bool { return says(c.Health(t.Context()), "subscription orders/svc", detail) }, "red with %s", detail)
			if err := s.rdb.Do(t.Context(), "acl", "setuser", "bob", "+"+command).Err(); err != nil {
				t.Fatal(err)
			}
			s.within(5*time.Second, func() bool { return c.Health(t.Context()).Healthy }, "green again")
			s.settled()
		})
	}
}

// Of a server that may evict what is stored, the log warns at the start, and health says so and stays green: so it was set up.
func TestHealthOfEviction(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	detail := func(c *xstreamq.Client) string {
		for _, check := range c.Health(t.Context()).Checks {
			if check.Name == "writable" && check.OK {
				return check.Detail
			}
		}
		return "no such check"
	}
	c := s.worker(nothing)
	if got := detail(c); got != "" || s.log.count() > 0 {
		t.Errorf("without eviction: %q, logged:\n%s", got, s.log)
	}
	must(t, s.rdb.ConfigSet(t.Context(), "maxmemory-policy", "volatile-lru").Err())
	if got := detail(c); !strings.Contains(got, "maxmemory-policy is volatile-lru") {
		t.Errorf("health says %q", got)
	}
	if h := c.Health(t.Context()); !h.Healthy {
		t.Errorf("%+v", h)
	}
	s.worker(nothing)
	if text := s.log.String(); !strings.Contains(text, "maxmemory-policy noeviction") || !strings.Contains(text, "policy=volatile-lru") {
		t.Errorf("logged at the start:\n%s", text)
	}
}

// A cluster that serves the stream's slot no more is red with its reason, and green again when it does.
func TestHealthOfALostSlot(t *testing.T) {
	t.Parallel()
	s := clusterOfOne(t)
	c := s.worker(nothing)
	var h xstreamq.Health
	s.eventually(func() bool { h = c.Health(t.Context()); return h.Healthy }, "green: %+v", &h)
	node := s.rdb.(*redis.Client)
	slot := node.ClusterKeySlot(t.Context(), s.keys.Main).Val()
	must(t, node.ClusterDelSlots(t.Context(), int(slot)).Err())
	s.within(5*time.Second, func() bool {
		h = c.Health(t.Context())
		return says(h, "writable", "CLUSTERDOWN") && says(h, "subscription orders/svc", "CLUSTERDOWN")
	}, "red: %+v", &h)
	if code, body := answer(t, c.LiveHandler()); code != 200 {
		t.Errorf("a restart is asked for: %s", body)
	}
	must(t, node.ClusterAddSlots(t.Context(), int(slot)).Err())
	s.within(5*time.Second, func() bool { h = c.Health(t.Context()); return h.Healthy }, "green again: %+v", &h)
}

// A worker all of whose handlers are stuck is red: it consumes nothing, however well the server fares.
func TestHealthOfStuckHandlers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	c := s.worker(func(context.Context, *xstreamq.Message[order]) error {
		<-release
		return nil
	}, xstreamq.Concurrency(2), xstreamq.HandlerTimeout(300*time.Millisecond), xstreamq.VisibilityTimeout(time.Second))
	s.publish(1, 2)
	s.within(5*time.Second, func() bool {
		return says(c.Health(t.Context()), "subscription orders/svc", "2 of 2 handlers do not heed the end of their context")
	}, "red")
	if code, body := answer(t, c.LiveHandler()); code != 200 {
		t.Errorf("a restart is asked for: %s", body)
	}
	free()
	s.within(5*time.Second, func() bool { return c.Health(t.Context()).Healthy }, "green again")
}

// A removed group is red until somebody subscribes anew or ends the subscription; a paused one is healthy and says so.
func TestHealthOfGroups(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	sub := s.subscribe(c, nothing)
	s.start(c)
	g := c.Admin().Group("orders", "svc")
	if err := g.Pause(t.Context(), "stocktaking", 0); err != nil {
		t.Fatal(err)
	}
	s.eventually(func() bool {
		h := c.Health(t.Context())
		return h.Healthy && strings.Contains(fmt.Sprint(h), "{subscription orders/svc true paused}")
	}, "paused is said")
	if err := g.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.Delete(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	s.eventually(func() bool { return says(c.Health(t.Context()), "subscription orders/svc", "group was removed") }, "removed is red")
	if code, body := answer(t, c.LiveHandler()); code != 200 {
		t.Errorf("a restart is asked for: %s", body)
	}
	<-sub.Stopped()
	s.subscribe(c, nothing)
	s.within(5*time.Second, func() bool { return c.Health(t.Context()).Healthy }, "green again")
}

// A loop that ends by itself is for a restart to mend. What ends it here is a hook that ends its goroutine.
func TestHealthOfADeadLoop(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{Reclaimed: func(context.Context, xstreamq.GroupRef, int) { runtime.Goexit() }}))
	s.subscribe(c, nothing)
	s.start(c)
	if code, body := answer(t, c.LiveHandler()); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	if err := c.Admin().Group("orders", "svc").Pause(t.Context(), "", 0); err != nil {
		t.Fatal(err)
	}
	s.eventually(func() bool { return strings.Contains(fmt.Sprint(c.Health(t.Context())), "paused") }, "paused")
	s.publish(1, 1)
	if err := s.rdb.HSet(t.Context(), s.keys.Workers, "dead~1", "1000|1|1|live|").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.rdb.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "svc", Consumer: "dead~1", Streams: []string{s.keys.Main, ">"}}).Err(); err != nil {
		t.Fatal(err)
	}
	var body string
	s.eventually(func() bool {
		var code int
		code, body = answer(t, c.LiveHandler())
		return code == 503
	}, "live is red")
	var h xstreamq.Health
	if err := json.Unmarshal([]byte(body), &h); err != nil || !says(h, "loops orders/svc", "sweep") || len(h.Checks) != 1 {
		t.Errorf("%s, %v", body, err)
	}
	if !says(c.Health(t.Context()), "loops orders/svc", "sweep") {
		t.Errorf("%+v", c.Health(t.Context()))
	}
}

// Probes that come while the server hangs wait for one and the same look at it, also on a client without read timeouts.
func TestHealthProbesDoNotPileUp(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := siteOn(t, srv)
	rdb := s.borrowed(func(o *redis.UniversalOptions) { o.ReadTimeout, o.WriteTimeout = -1, -1 })
	c, err := xstreamq.New(rdb, xstreamq.Prefix(s.prefix))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // nothing runs
	s.queue(c)
	if h := c.Health(t.Context()); !h.Healthy {
		t.Fatalf("%+v", h)
	}
	srv.Pause()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if h := c.Health(ctx); !says(h, "server", "no answer for") || !says(h, "writable", "no answer for") {
			t.Errorf("%+v", h)
		}
		cancel()
	}
	if n := rdb.PoolStats().TotalConns; n > 2 {
		t.Errorf("%d connections for 20 probes", n)
	}
	srv.Resume()
	s.within(5*time.Second, func() bool { return c.Health(t.Context()).Healthy }, "green again")
}
