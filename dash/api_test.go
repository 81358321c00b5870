package dash_test

import (
	"bytes"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
)

func keysOf(o object) string { return strings.Join(slices.Sorted(maps.Keys(o)), " ") }

// The names are the command line's; a screen needs some beside them.
func TestNamesAreTheCommandLines(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	g := s.group("orders", "billing")
	id := s.publish("orders", `{"id":9007199254740993}`, xstreamq.Header("tenant", "acme"))
	s.publish("orders", `1`, xstreamq.Delay(time.Hour))
	dead := s.die("orders", "billing", "retries", "timeout", `{"n":1}`)
	key := s.prefix + "{orders}"
	if err := s.rdb.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "billing", Consumer: "w1", Streams: []string{key, ">"}, Count: 1}).Err(); err != nil {
		t.Fatal(err)
	}
	sg := q("stream", "orders", "group", "billing")

	depth := s.ok(s.get("/api/depth" + sg)).(object)
	if got := keysOf(depth); got != "dead delayed group lag length oldest_ms paused pending retry retrying stream" {
		t.Errorf("depth has %s", got)
	}
	if number(depth["pending"]) != 1 || number(depth["dead"]) != 1 || number(depth["delayed"]) != 1 || number(depth["lag"]) != 0 {
		t.Errorf("depth is %v", depth)
	}
	if got := keysOf(s.items(s.get("/api/pending" + sg))[0]); got != "consumer deliveries entry_id idle_ms retry" {
		t.Errorf("pending has %s", got)
	}
	c := s.items(s.get("/api/consumers" + sg))[0]
	if got := keysOf(c); got != "heartbeat_ms idle_ms name pending visibility_ms" || c["heartbeat_ms"] != nil {
		t.Errorf("consumers has %s: %v", got, c)
	}
	m := s.items(s.get("/api/peek" + q("stream", "orders")))[0]
	if got := keysOf(m); got != "attempt body body_bytes entry_id headers id lost published_at stream" || m["id"] != id {
		t.Errorf("peek has %s: %v", got, m)
	}
	if a := s.get("/api/get" + q("stream", "orders", "id", id)); !bytes.Contains(a.body, []byte(`"body":{"id":9007199254740993}`)) {
		t.Errorf("a number of 54 bits did not stay what it is: %s", a.body)
	}
	why := s.ok(s.get("/api/why" + sg + "&id=" + id)).(object)
	if got := keysOf(why); got != "ahead consumer detail due_at message state" || why["state"] != "in-flight" || why["consumer"] != "w1" {
		t.Errorf("why has %s: %v", got, why)
	}
	if d := s.items(s.get("/api/delayed" + q("stream", "orders")))[0]; d["due_at"] == nil {
		t.Errorf("delayed has no due_at: %v", d)
	}
	d := s.items(s.get("/api/dlq" + sg))[0]
	if got := keysOf(d); got != "attempts body body_bytes dead_at entry_id error headers id lost published_at reason stream" ||
		d["entry_id"] != dead || d["error"] != "timeout" || number(d["attempts"]) != 6 {
		t.Errorf("dlq has %s: %v", got, d)
	}
	if got := s.ok(s.get("/api/dlq/show" + sg + "&id=" + dead)).(object); got["reason"] != "retries" {
		t.Errorf("dlq/show: %v", got)
	}
	if got := keysOf(s.ok(s.get("/api/compaction" + q("stream", "orders"))).(object)); got != "floor held_by removed retain_ms" {
		t.Errorf("compaction has %s", got)
	}
	server := s.ok(s.get("/api/server")).(object)
	found := server["doctor"].([]any)
	if got := keysOf(found[0].(object)); got != "check detail fix level" {
		t.Errorf("doctor has %s", got)
	}
	one := server["servers"].([]any)[0].(object)
	if got := keysOf(one); got != "addr aof changes_since_save clients commands_per_second errors eviction fsync memory_bytes memory_most_bytes memory_peak_bytes "+
		"replicas replicas_online role save saved_at uptime_ms version" {
		t.Errorf("servers has %s", got)
	}
	if one["role"] != "master" || number(one["memory_bytes"]) < 1<<16 || one["aof"] == nil || one["fsync"] == nil || one["version"] == "" {
		t.Errorf("servers: %v", one)
	}
	ls := s.ok(s.get("/api/ls?history=5")).(object)
	row := ls["groups"].([]any)[0].(object)
	if got := keysOf(row); got != "consumers dead delayed group in_rate lag length oldest_ms out_rate pause paused pending retry retrying stream" {
		t.Errorf("ls has %s", got)
	}
	if got := len(ls["history"].([]any)[0].([]any)); got < 1 {
		t.Error("ls has no history")
	}
	if dep, err := g.Depth(t.Context()); err != nil || dep.Pending != 1 || dep.Dead != 1 {
		t.Errorf("reading changed something: %v, %v", dep, err)
	}
}

func TestBodiesAreBytes(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{MaxBody: 100})
	s.group("orders", "billing")
	binary := "a\x00\xff<b>&"
	ids := []string{}
	for _, body := range []string{binary, `"` + strings.Repeat("x", 500) + `"`} {
		ids = append(ids, s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: s.prefix + "{orders}", Values: []string{"body", body}}).Val())
	}
	s.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: s.prefix + "{orders}", Values: []string{"note", "no body"}})
	decode := func(o object) string {
		b, err := base64.StdEncoding.DecodeString(o["body_base64"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	one := s.ok(s.get("/api/get" + q("stream", "orders", "id", ids[0]))).(object)
	if decode(one) != binary || one["body"] != nil || number(one["body_bytes"]) != len(binary) {
		t.Errorf("a binary body: %v", one)
	}
	two := s.ok(s.get("/api/get" + q("stream", "orders", "id", ids[1]))).(object)
	if got := decode(two); len(got) != 100 || two["body_truncated"] != true || number(two["body_bytes"]) != 502 {
		t.Errorf("a long body: %v", two)
	}
	list := s.items(s.get("/api/peek" + q("stream", "orders", "bytes", "3", "raw", "1")))
	if decode(list[0]) != binary[:3] || decode(list[1]) != `"xx` {
		t.Errorf("three bytes each: %v", list)
	}
	if none := list[2]; number(none["body_bytes"]) != -1 || none["body_base64"] != nil || none["fields"] == nil {
		t.Errorf("no body: %v", none)
	}
	s.refused(s.get("/api/peek"+q("stream", "orders", "bytes", "101")), http.StatusBadRequest, "more bytes than MaxBody")
}

func TestDeadLettersAreFilteredAndPaged(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	s.group("orders", "billing")
	var ids []string
	for n := range 7 {
		reason := "retries"
		if n%2 == 1 {
			reason = "rejected"
		}
		ids = append(ids, s.die("orders", "billing", reason, "error "+strconv.Itoa(n), `{"n":`+strconv.Itoa(n)+`}`))
	}
	find := func(kv ...string) (got []string) {
		for _, o := range s.items(s.get("/api/dlq" + q(append([]string{"stream", "orders", "group", "billing"}, kv...)...))) {
			got = append(got, o["entry_id"].(string))
		}
		return got
	}
	for what, c := range map[string]struct{ kv, want []string }{
		"all":       {nil, ids},
		"reason":    {[]string{"reason", "rejected"}, []string{ids[1], ids[3], ids[5]}},
		"error":     {[]string{"error", "error 4"}, ids[4:5]},
		"body":      {[]string{"body", `"n":2`}, ids[2:3]},
		"newest":    {[]string{"newest", "1", "limit", "2"}, []string{ids[6], ids[5]}},
		"next page": {[]string{"after", ids[4]}, ids[5:]},
		"since":     {[]string{"since", "1h"}, ids},
		"before":    {[]string{"before", "1h"}, nil},
	} {
		if got := find(c.kv...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

func TestVerbs(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	g := s.group("orders", "billing")
	ctx := t.Context()

	s.ok(s.post("/api/pause", object{"stream": "orders", "group": "billing", "reason": "deploy", "for": "10m"}))
	if d, err := g.Depth(ctx); err != nil || !d.Paused {
		t.Errorf("not paused: %v, %v", d, err)
	}
	pause := func() any { return s.ok(s.get("/api/ls")).(object)["groups"].([]any)[0].(object)["pause"] }
	s.eventually(func() bool { return pause() != nil }, "the pause is in the list")
	if p := pause().(object); keysOf(p) != "reason since until" || p["reason"] != "deploy" {
		t.Errorf("pause: %v", p)
	}
	s.ok(s.post("/api/resume", object{"stream": "orders", "group": "billing"}))
	if d, err := g.Depth(ctx); err != nil || d.Paused {
		t.Errorf("not resumed: %v, %v", d, err)
	}

	id := s.publish("orders", `1`, xstreamq.Delay(time.Hour))
	s.ok(s.post("/api/delayed/cancel", object{"stream": "orders", "id": id}))
	s.refused(s.post("/api/delayed/cancel", object{"stream": "orders", "id": id}), http.StatusNotFound, "cancelled twice")

	a, b, c := s.die("orders", "billing", "retries", "x", "1"), s.die("orders", "billing", "retries", "x", "2"), s.die("orders", "billing", "retries", "x", "3")
	res := s.ok(s.post("/api/dlq/redrive", object{"stream": "orders", "group": "billing", "ids": []string{a, "1-1"}})).(object)
	if number(res["redriven"]) != 1 || number(res["remaining"]) != 2 || len(res["unredrivable"].([]any)) != 0 {
		t.Errorf("redrive: %v", res)
	}
	res = s.ok(s.post("/api/dlq/purge", object{"stream": "orders", "group": "billing", "ids": []string{b}})).(object)
	if number(res["purged"]) != 1 || number(res["remaining"]) != 1 {
		t.Errorf("purge: %v", res)
	}
	if res = s.ok(s.post("/api/dlq/purge", object{"stream": "orders", "group": "billing", "ids": []string{}})).(object); number(res["purged"]) != 0 {
		t.Errorf("a purge of no ids: %v", res)
	}
	s.ok(s.post("/api/dlq/edit", object{"stream": "orders", "group": "billing", "id": c, "body_text": `{"mended":true}`}))
	recs, err := g.Retrying(ctx, xstreamq.Page{})
	if err != nil || len(recs.Items) != 2 {
		t.Fatalf("%d redriven, %v", len(recs.Items), err)
	}
	if !slices.ContainsFunc(recs.Items, func(r xstreamq.Record) bool { return string(r.Body) == `{"mended":true}` }) {
		t.Errorf("the edited body is not among %v", recs.Items)
	}
	s.ok(s.post("/api/compact", object{"stream": "orders"}))
}

func TestBounds(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	s.group("orders", "billing")
	sg := q("stream", "orders", "group", "billing")
	for _, path := range []string{
		"/api/pending" + sg + "&limit=501", "/api/pending" + sg + "&limit=-1", "/api/pending" + sg + "&limit=9999999999999999999999",
		"/api/pending" + sg + "&after=x", "/api/peek", "/api/ls?history=100000", "/api/dlq" + sg + "&since=yesterday",
		"/api/dlq" + sg + "&error=" + strings.Repeat("x", 1001), "/api/depth?stream=a%20b", "/api/peek" + q("stream", "orders") + "&newest=maybe",
		"/api/dlq" + sg + "&header=x", "/api/dlq/show" + sg + "&id=x",
	} {
		s.refused(s.get(path), http.StatusBadRequest, path)
	}
	many := make([]string, 1001)
	for i := range many {
		many[i] = "1-1"
	}
	for what, c := range map[string]struct {
		path string
		in   any
	}{
		"too many ids":     {"dlq/redrive", object{"stream": "orders", "group": "billing", "ids": many}},
		"no filter":        {"dlq/purge", object{"stream": "orders", "group": "billing"}},
		"redrive of what":  {"dlq/redrive", object{"stream": "orders", "group": "billing"}},
		"rate":             {"dlq/redrive", object{"stream": "orders", "group": "billing", "filter": object{"all": true}, "rate": 1e9}},
		"a pause of years": {"pause", object{"stream": "orders", "group": "billing", "for": "900000h"}},
		"a long reason":    {"pause", object{"stream": "orders", "group": "billing", "reason": strings.Repeat("x", 2000)}},
		"unknown name":     {"pause", object{"stream": "orders", "group": "billing", "forr": "1h"}},
		"a wrong id":       {"dlq/purge", object{"stream": "orders", "group": "billing", "ids": []string{"x"}}},
		"purge to stream":  {"dlq/purge", object{"stream": "orders", "group": "billing", "filter": object{"all": true}, "to_stream": true}},
		"no body":          {"dlq/edit", object{"stream": "orders", "group": "billing", "id": "1-1"}},
	} {
		s.refused(s.post("/api/"+c.path, c.in), http.StatusBadRequest, what)
	}
	s.refused(s.post("/api/pause", object{"reason": strings.Repeat("x", 9<<20)}), http.StatusRequestEntityTooLarge, "nine MiB")
	s.refused(s.do(s.request(http.MethodPost, "/api/pause", "")), http.StatusUnsupportedMediaType, "no JSON")
	s.refused(s.get("/api/depth"+q("stream", "nosuch")), http.StatusNotFound, "no such stream")
	s.refused(s.get("/api/nosuch"), http.StatusNotFound, "no such endpoint")
}

// Names that others' groups may have, and all that ours may, come through a query whole.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	for _, name := range []string{"a", "a:b", "a.b", "a*", "a[b", "a/b", "a%2Fb", "a#b", "ünïcode", `"><svg/onload=alert(1)>`, strings.Repeat("x", 200)} {
		s.group(name, name)
		s.die(name, name, "retries", "x", "1")
	}
	for _, name := range []string{"a", "a*", "a/b", "a%2Fb", "a#b", "ünïcode", `"><svg/onload=alert(1)>`, strings.Repeat("x", 200)} {
		if d := s.ok(s.get("/api/depth" + q("stream", name, "group", name))).(object); d["group"] != name || number(d["dead"]) != 1 {
			t.Errorf("%q: %v", name, d)
		}
	}
	res := s.ok(s.post("/api/dlq/purge", object{"stream": "a*", "group": "a*", "filter": object{"all": true}})).(object)
	s.eventually(func() bool { return s.dead("a*", "a*") == 0 }, "the purge")
	if id := res["task"].(object)["id"]; id == "" {
		t.Error("no task id")
	}
	if s.dead("a", "a") != 1 || s.dead("a[b", "a[b") != 1 {
		t.Error("a purge of a* touched others")
	}
	if err := s.rdb.XGroupCreate(t.Context(), s.prefix+"{a}", "with blank <b>", "0").Err(); err != nil {
		t.Fatal(err)
	}
	ls := s.ok(s.get("/api/depth" + q("stream", "a"))).([]any)
	if len(ls) != 2 {
		t.Errorf("a foreign group is not listed: %v", ls)
	}
}
