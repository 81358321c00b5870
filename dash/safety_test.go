package dash_test

import (
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
)

// writes are all POSTs, with what they take.
func writes(id string) map[string]object {
	sg := func(more object) object {
		o := object{"stream": "orders", "group": "billing"}
		maps.Copy(o, more)
		return o
	}
	return map[string]object{
		"pause": sg(nil), "resume": sg(nil), "delayed/cancel": {"stream": "orders", "id": "d-1"}, "compact": {"stream": "orders"},
		"dlq/redrive": sg(object{"ids": []string{id}}), "dlq/purge": sg(object{"filter": object{"all": true}}),
		"dlq/edit": sg(object{"id": id, "body_text": "2"}), "tasks/cancel": {"id": "x"},
	}
}

var readPaths = []string{
	"config", "ls", "live", "depth", "pending", "consumers", "retrying", "peek", "get", "why", "delayed", "dlq", "dlq/show", "compaction", "server", "tasks",
}

func TestReadOnlyIsTheServers(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{ReadOnly: true})
	s.group("orders", "billing")
	id := s.die("orders", "billing", "retries", "x", "1")
	for path, in := range writes(id) {
		if path == "tasks/cancel" {
			continue // there can be none
		}
		s.refused(s.post("/api/"+path, in), http.StatusForbidden, path)
	}
	if s.dead("orders", "billing") != 1 {
		t.Error("a read-only dashboard changed something")
	}
	if c := s.ok(s.get("/api/config")).(object); c["read_only"] != true {
		t.Errorf("config: %v", c)
	}
}

// Every path is asked for by its verb, and a refused one does nothing.
func TestAuthorizeIsAskedForEveryVerb(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[dash.Verb]dash.Action{}
	s := newSite(t, dash.Config{Authorize: func(_ *http.Request, a dash.Action) error {
		mu.Lock()
		defer mu.Unlock()
		asked[a.Verb] = a
		return errors.New("not for you")
	}})
	s.group("orders", "billing")
	id := s.die("orders", "billing", "retries", "x", "1")
	for _, path := range readPaths {
		a := s.get("/api/" + path + q("stream", "orders", "group", "billing", "id", "1-1"))
		s.refused(a, http.StatusForbidden, path)
		if !strings.Contains(string(a.body), "not for you") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	for path, in := range writes(id) {
		want := http.StatusForbidden
		if path == "tasks/cancel" {
			want = http.StatusNotFound // whose it would be is not known
		}
		s.refused(s.post("/api/"+path, in), want, path)
	}
	if a := s.get("/"); a.status != http.StatusForbidden {
		t.Errorf("the page: %d", a.status)
	}
	if s.dead("orders", "billing") != 1 {
		t.Error("a refused verb was done")
	}
	mu.Lock()
	defer mu.Unlock()
	for _, v := range []dash.Verb{
		dash.VerbOpen, dash.VerbList, dash.VerbDepth, dash.VerbPending, dash.VerbConsumers, dash.VerbRetrying, dash.VerbPeek, dash.VerbGet, dash.VerbWhy,
		dash.VerbDelayed, dash.VerbDeadList, dash.VerbCompaction, dash.VerbServer, dash.VerbTasks,
		dash.VerbPause, dash.VerbResume, dash.VerbCancel, dash.VerbRedrive, dash.VerbEdit, dash.VerbPurge, dash.VerbCompact,
	} {
		if _, ok := asked[v]; !ok {
			t.Errorf("nobody was asked for %s", v)
		}
	}
	if a := asked[dash.VerbRedrive]; a.Stream != "orders" || a.Group != "billing" || !slices.Equal(a.IDs, []string{id}) {
		t.Errorf("redrive was asked for as %+v", a)
	}
	if a := asked[dash.VerbPurge]; a.Filter == nil || !a.Filter.All {
		t.Errorf("purge was asked for as %+v", a)
	}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []string
	s := newSite(t, dash.Config{Audit: func(r *http.Request, a dash.Action, err error) {
		mu.Lock()
		defer mu.Unlock()
		line := r.Header.Get("X-User") + " " + string(a.Verb) + " " + a.Stream + "/" + a.Group
		if err != nil {
			line += " " + err.Error()
		}
		if a.Task != "" {
			line += " ended"
		}
		told = append(told, line)
	}})
	s.group("orders", "billing")
	s.die("orders", "billing", "retries", "x", "1")
	for _, in := range []struct{ path, body string }{
		{"pause", `{"stream":"orders","group":"billing"}`},
		{"pause", `{"stream":"orders","group":"nosuch"}`},
		{"dlq/purge", `{"stream":"orders","group":"billing","filter":{"all":true}}`},
	} {
		req := s.request(http.MethodPost, "/api/"+in.path, in.body)
		req.Header.Set("X-User", "ann")
		s.do(req)
	}
	s.get("/api/ls")
	s.eventually(func() bool { mu.Lock(); defer mu.Unlock(); return len(told) == 4 }, "four lines of the audit")
	want := []string{"ann pause orders/billing", "ann pause orders/nosuch admin: pause of orders/nosuch: group not found", "ann purge orders/billing", "ann purge orders/billing ended"}
	slices.Sort(told[2:])
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{Redact: func(_ *http.Request, m *dash.Message) {
		m.Body = []byte(strings.ReplaceAll(string(m.Body), "4242", "****"))
		m.Error = strings.ReplaceAll(m.Error, "4242", "****")
		delete(m.Headers, "token")
	}})
	g := s.group("orders", "billing")
	s.publish("orders", `{"card":"4242"}`, xstreamq.Header("token", "secret"))
	s.publish("orders", `{"card":"4242"}`, xstreamq.Header("token", "secret"), xstreamq.Delay(time.Hour))
	secret := s.die("orders", "billing", "retries", "card 4242 refused", `{"card":"4242"}`)
	plain := s.die("orders", "billing", "retries", "other", `{"card":"1"}`)
	sg := q("stream", "orders", "group", "billing")
	for _, path := range []string{"peek" + sg, "delayed" + sg, "dlq" + sg, "dlq/show" + sg + "&id=" + secret, "why" + sg + "&id=" + secret} {
		a := s.get("/api/" + path)
		if s.ok(a); strings.Contains(string(a.body), "4242") || strings.Contains(string(a.body), "secret") || !strings.Contains(string(a.body), "****") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	for _, f := range []string{"body", "error"} {
		if n := len(s.items(s.get("/api/dlq" + sg + "&" + f + "=4242"))); n != 0 {
			t.Errorf("a search of the %s finds what is hidden", f)
		}
		if n := len(s.items(s.get("/api/dlq" + sg + "&" + f + "=****"))); n != 1 {
			t.Errorf("a search of the %s does not find what is shown: %d", f, n)
		}
	}
	edit := func(id string) answer {
		return s.post("/api/dlq/edit", object{"stream": "orders", "group": "billing", "id": id, "body_text": "1"})
	}
	s.refused(edit(secret), http.StatusConflict, "editing what is hidden")
	s.ok(edit(plain))
	s.ok(s.post("/api/dlq/redrive", object{"stream": "orders", "group": "billing", "ids": []string{secret}}))
	recs, err := g.Retrying(t.Context(), xstreamq.Page{})
	if err != nil || !slices.ContainsFunc(recs.Items, func(r xstreamq.Record) bool { return string(r.Body) == `{"card":"4242"}` }) {
		t.Errorf("redacting changed what is stored: %v, %v", recs.Items, err)
	}
}

func TestOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	s.group("orders", "billing")
	id := s.die("orders", "billing", "retries", "x", "1")
	for path, in := range map[string]string{"dlq/purge": `{"stream":"orders","group":"billing","ids":["` + id + `"]}`, "pause": `{"stream":"orders","group":"billing"}`} {
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
			req := s.request(http.MethodPost, "/api/"+path, in)
			req.Header.Set(name, value)
			s.refused(s.do(req), http.StatusForbidden, path+" with "+name)
		}
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			if a := s.do(s.request(method, "/api/"+path+q("stream", "orders", "group", "billing", "ids", id), "")); a.status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, a.status)
			}
		}
	}
	for _, path := range readPaths {
		if a := s.post("/api/"+path, object{}); a.status != http.StatusMethodNotAllowed && a.status != http.StatusNotFound {
			t.Errorf("POST %s: %d", path, a.status)
		}
	}
	if a := s.post("/", object{}); a.status != http.StatusMethodNotAllowed {
		t.Errorf("POST /: %d", a.status)
	}
	if d := s.ok(s.get("/api/depth" + q("stream", "orders", "group", "billing"))).(object); d["paused"] != false || s.dead("orders", "billing") != 1 {
		t.Error("something was changed")
	}
}

func TestUnknownHostIsRefusedOnLoopback(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{Hosts: []string{"queues.internal"}})
	for host, want := range map[string]int{
		"localhost": 200, "LocalHost:80": 200, "127.0.0.1:1": 200, "[::1]:80": 200, "queues.internal": 200, "queues.internal:443": 200,
		"evil.example": 421, "127.0.0.1.evil.example": 421, "10.0.0.1": 421, "queues.internal.evil.example": 421,
	} {
		for _, path := range []string{"/", "/api/config", "/assets/app.js"} {
			req := s.request(http.MethodGet, path, "")
			req.Host = host
			if a := s.do(req); a.status != want {
				t.Errorf("%s with Host %s: %d, want %d", path, host, a.status, want)
			}
		}
	}
	// Elsewhere the network, not the name, says who may come.
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "http://anything.example/api/config", nil)
	s.dash.ServeHTTP(rec, req.WithContext(contextWithLocal(req.Context(), &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80})))
	if rec.Code != http.StatusOK {
		t.Errorf("not on loopback: %d", rec.Code)
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	for _, path := range []string{"/", "/api/config", "/assets/app.js", "/assets/app.css"} {
		a := s.get(path)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
		csp := a.head.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
			t.Errorf("%s: CSP %q", path, csp)
		}
		if a.head.Get("X-Content-Type-Options") != "nosniff" || a.head.Get("Cache-Control") == "" {
			t.Errorf("%s: %v", path, a.head)
		}
	}
	page := string(s.get("/").body)
	for _, bad := range []string{"<script>", " onclick=", " style=", "http://", "https://", "//cdn"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q, which the CSP or a network without the Internet would refuse", bad)
		}
	}
	first := s.get("/assets/app.js")
	req := s.request(http.MethodGet, "/assets/app.js", "")
	req.Header.Set("If-None-Match", first.head.Get("ETag"))
	if a := s.do(req); a.status != http.StatusNotModified {
		t.Errorf("asked again with its ETag: %d", a.status)
	}
}

// Any prefix will do, stripped or not; a path without its slash is led to the one with it.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	mux := http.NewServeMux()
	mux.Handle("/", s.dash)
	mux.Handle("/ops/queues/", s.dash)
	mux.Handle("/ops/api/", s.dash)
	mux.Handle("/stripped/", http.StripPrefix("/stripped", s.dash))
	mux.Handle("/bare", http.StripPrefix("/bare", s.dash))
	web := httptest.NewServer(mux)
	defer web.Close()
	client := http.Client{Transport: http.DefaultTransport}
	for _, prefix := range []string{"/", "/ops/queues/", "/ops/api/", "/stripped/"} {
		for _, path := range []string{"", "?page=dead&stream=a", "assets/app.js", "api/config"} {
			res, err := client.Get(web.URL + prefix + path)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
			want := map[string]string{"assets/app.js": "text/javascript", "api/config": "application/json"}[path]
			if want == "" {
				want = "text/html"
			}
			if res.StatusCode != http.StatusOK || kind != want || len(body) == 0 {
				t.Errorf("%s%s: %d %s", prefix, path, res.StatusCode, kind)
			}
		}
	}
	for from, to := range map[string]string{"/bare?page=dead": "./bare/?page=dead", "/ops/queues/x": "./x/"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+from, nil)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusPermanentRedirect || res.Header.Get("Location") != to {
			t.Errorf("%s: %d to %q, want %q", from, res.StatusCode, res.Header.Get("Location"), to)
		}
	}
	for _, path := range []string{"/favicon.ico", "/assets/nosuch.js", "/assets/../dash.go"} {
		if a := s.get(path); a.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

func TestZeroConfigNeedsNoLogger(t *testing.T) {
	t.Parallel()
	c, err := xstreamq.Open("redis://127.0.0.1:1", xstreamq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	h := dash.New(c.Admin(), dash.Config{})
	defer h.Close()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	if rec.Code != http.StatusOK {
		t.Errorf("status %d", rec.Code)
	}
}
