package dash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/dash"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

func contextWithLocal(ctx context.Context, addr net.Addr) context.Context {
	return context.WithValue(ctx, http.LocalAddrContextKey, addr)
}

// events reads the samples of a live stream until its test ends.
func (s *site) events(query string) <-chan object {
	s.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(s.request(http.MethodGet, "/api/live"+query, ""))
	if err != nil {
		s.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("live: %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	s.t.Cleanup(func() { res.Body.Close() })
	out := make(chan object)
	go func() {
		defer close(out)
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var o object
			d := json.NewDecoder(strings.NewReader(data))
			d.UseNumber()
			if d.Decode(&o) != nil {
				return
			}
			select {
			case out <- o:
			case <-s.t.Context().Done():
				return
			}
		}
	}()
	return out
}

// await takes samples until one is as wanted.
func (s *site) await(from <-chan object, good func(object) bool, what string) {
	s.t.Helper()
	var last object
	for end := time.After(patience); ; {
		select {
		case o, ok := <-from:
			if !ok {
				s.t.Fatalf("the stream ended before %s; last %v", what, last)
			}
			if last = o; good(o) {
				return
			}
		case <-end:
			s.t.Fatalf("not within %v: %s; last %v", patience, what, last)
		}
	}
}

func rows(o object) []any { list, _ := o["groups"].([]any); return list }

func TestLive(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	s.group("orders", "billing")
	s.group("mails", "sender")
	all, one := s.events(""), s.events(q("stream", "orders", "group", "billing"))
	s.await(all, func(o object) bool { return len(rows(o)) == 2 }, "two groups")
	s.die("orders", "billing", "retries", "x", "1")
	s.await(one, func(o object) bool {
		return len(rows(o)) == 1 && number(rows(o)[0].(object)["dead"]) == 1
	}, "one dead letter")
	s.dash.Close()
	for range all { // it ends
	}
}

func TestRedisDownAndBack(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := siteOn(t, srv, dash.Config{})
	s.group("orders", "billing")
	live := s.events("")
	s.await(live, func(o object) bool { return o["error"] == "" && len(rows(o)) == 1 }, "a good sample")
	srv.Kill()
	s.await(live, func(o object) bool { return o["error"] != "" && o["error_since"] != nil && len(rows(o)) == 1 }, "it says so, with what was known last")
	for _, path := range []string{"depth", "pending", "consumers", "peek", "dlq", "delayed", "compaction"} {
		a := s.get("/api/" + path + q("stream", "orders", "group", "billing"))
		s.refused(a, http.StatusServiceUnavailable, path)
	}
	if a := s.get("/"); a.status != http.StatusOK {
		t.Errorf("the page itself: %d", a.status)
	}
	if o := s.ok(s.get("/api/ls")).(object); o["error"] == "" || len(rows(o)) != 1 {
		t.Errorf("polling: %v", o)
	}
	srv.Restart(t)
	s.await(live, func(o object) bool { return o["error"] == "" }, "it heals by itself")
}

func TestTaskGoesOnAndIsCancelled(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	s.group("orders", "billing")
	for range 200 {
		s.die("orders", "billing", "retries", "timeout", "1")
	}
	s.die("orders", "billing", "retries", "other", "1")
	in := object{"stream": "orders", "group": "billing", "filter": object{"error": "timeout"}, "rate": 20}
	id := s.ok(s.post("/api/dlq/redrive", in)).(object)["task"].(object)["id"].(string)
	task := func() object { return s.ok(s.get("/api/tasks" + q("id", id))).(object) }
	s.eventually(func() bool { return number(task()["done"]) > 0 }, "progress")
	if k := task(); k["state"] != "running" || k["rate"].(json.Number).String() != "20" {
		t.Errorf("task: %v", k)
	}
	s.ok(s.post("/api/tasks/cancel", object{"id": id}))
	s.eventually(func() bool { return task()["state"] == "cancelled" }, "cancelled")
	k := task()
	if n := number(k["done"]); n == 0 || n >= 200 || s.dead("orders", "billing") != 201-n {
		t.Errorf("cancelled after %d, %d dead letters are left", n, s.dead("orders", "billing"))
	}
	in["rate"] = 0
	id = s.ok(s.post("/api/dlq/redrive", in)).(object)["task"].(object)["id"].(string)
	s.eventually(func() bool { return task()["state"] == "done" }, "the rest")
	if k := task(); number(k["remaining"]) != 1 || s.dead("orders", "billing") != 1 {
		t.Errorf("done: %v", k)
	}
	list := s.ok(s.get("/api/tasks" + q("stream", "orders"))).([]any)
	if len(list) != 2 || list[0].(object)["id"] != id {
		t.Errorf("tasks: %v", list)
	}
	s.refused(s.post("/api/tasks/cancel", object{"id": "nosuch"}), http.StatusNotFound, "no such task")
}

func TestTasksAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	s.group("orders", "billing")
	for range 20 {
		s.die("orders", "billing", "retries", "timeout", "1")
	}
	in := object{"stream": "orders", "group": "billing", "filter": object{"error": "timeout"}, "rate": 0.5}
	for range 4 {
		s.ok(s.post("/api/dlq/redrive", in))
	}
	s.refused(s.post("/api/dlq/redrive", in), http.StatusTooManyRequests, "a fifth task")
	s.dash.Close() // cancels them
	if list := s.ok(s.get("/api/tasks")).([]any); list[0].(object)["state"] == "running" {
		t.Errorf("still running: %v", list)
	}
}
