package dash_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
)

// bodies are what each POST takes.
func bodies(id string) map[string]object {
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

// guarded is a site with one of everything that a verb could change, and what says that nothing was.
func guarded(t *testing.T, cfg dash.Config) (s *site, in map[string]object, unchanged func()) {
	t.Helper()
	s = newSite(t, cfg)
	g := s.group("orders", "billing")
	s.publish("orders", `1`)
	later := s.publish("orders", `1`, xstreamq.Delay(time.Hour))
	in = bodies(s.die("orders", "billing", "retries", "x", "1"))
	in["delayed/cancel"]["id"] = later
	before, err := g.Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, in, func() {
		t.Helper()
		after, err := g.Depth(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before.Lag, after.Lag, before.Oldest, after.Oldest = nil, nil, 0, 0
		before.Read, after.Read = nil, nil
		if before != after {
			t.Errorf("something was changed: %+v, was %+v", after, before)
		}
	}
}

// Of every route there is: read-only refuses what changes something, and answers the rest.
func TestReadOnlyIsTheServers(t *testing.T) {
	t.Parallel()
	s, in, unchanged := guarded(t, dash.Config{ReadOnly: true})
	gets, posts := dash.Routes()
	for path, verb := range posts {
		if in[path] == nil {
			t.Fatalf("no test for POST %s: say what it takes", path)
		}
		if !verb.Changes() {
			t.Errorf("%s is a POST, and its verb %s changes nothing", path, verb)
		}
		s.refused(s.post("/api/"+path, in[path]), http.StatusForbidden, path)
	}
	for path, verb := range gets {
		if verb.Changes() {
			t.Errorf("%s is a GET, and its verb %s changes something", path, verb)
		}
	}
	unchanged()
	if c := s.ok(s.get("/api/config")).(object); c["read_only"] != true {
		t.Errorf("config: %v", c)
	}
}

// Every route is asked for by its verb, and a refused one does nothing.
func TestAuthorizeIsAskedForEveryVerb(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []dash.Action
	s, in, unchanged := guarded(t, dash.Config{Authorize: func(_ *http.Request, a dash.Action) error {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, a)
		return errors.New("not for you")
	}})
	gets, posts := dash.Routes()
	once := func(what string, verb dash.Verb, a answer) dash.Action {
		t.Helper()
		s.refused(a, http.StatusForbidden, what)
		if !strings.Contains(string(a.body), "not for you") {
			t.Errorf("%s: %s", what, a.body)
		}
		mu.Lock()
		defer mu.Unlock()
		defer func() { asked = nil }()
		if len(asked) != 1 || asked[0].Verb != verb {
			t.Fatalf("%s was asked for as %+v, want %s, once", what, asked, verb)
		}
		return asked[0]
	}
	for path, verb := range gets {
		once(path, verb, s.get("/api/"+path+q("stream", "orders", "group", "billing", "id", "1-1")))
	}
	for path, verb := range posts {
		a := once(path, verb, s.post("/api/"+path, in[path]))
		if path != "tasks/cancel" && a.Stream != "orders" {
			t.Errorf("%s was asked for as %+v", path, a)
		}
		switch verb {
		case dash.VerbRedrive:
			if a.Group != "billing" || !slices.Equal(a.IDs, in[path]["ids"].([]string)) {
				t.Errorf("redrive was asked for as %+v", a)
			}
		case dash.VerbPurge:
			if a.Filter == nil || !a.Filter.All {
				t.Errorf("purge was asked for as %+v", a)
			}
		case dash.VerbCancelTask:
			if a.Task != "x" {
				t.Errorf("cancel-task was asked for as %+v", a)
			}
		}
	}
	if a := s.get("/"); a.status != http.StatusForbidden {
		t.Errorf("the page: %d", a.status)
	}
	unchanged()
}

// Who may redrive may not by that cancel what another has begun.
func TestCancellingATaskIsAVerbOfItsOwn(t *testing.T) {
	t.Parallel()
	var may atomic.Bool
	s := newSite(t, dash.Config{Authorize: func(_ *http.Request, a dash.Action) error {
		if a.Verb == dash.VerbCancelTask && (!may.Load() || a.Stream != "orders" || a.Group != "billing" || a.Task == "") {
			return errors.New("not for you")
		}
		return nil
	}})
	s.group("orders", "billing")
	for range 20 {
		s.die("orders", "billing", "retries", "timeout", "1")
	}
	in := object{"stream": "orders", "group": "billing", "filter": object{"all": true}, "rate": 0.5}
	id := s.ok(s.post("/api/dlq/redrive", in)).(object)["task"].(object)["id"].(string)
	state := func() any { return s.ok(s.get("/api/tasks" + q("id", id))).(object)["state"] }
	s.refused(s.post("/api/tasks/cancel", object{"id": id}), http.StatusForbidden, "cancelling")
	if got := state(); got != "running" {
		t.Errorf("a task whose cancelling was refused is %v", got)
	}
	may.Store(true)
	s.ok(s.post("/api/tasks/cancel", object{"id": id}))
	s.eventually(func() bool { return state() == "cancelled" }, "cancelled")
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

// Of every route: what another site sends, and what comes by another method, changes nothing.
func TestOtherSitesAndMethodsAreRefused(t *testing.T) {
	t.Parallel()
	s, in, unchanged := guarded(t, dash.Config{})
	gets, posts := dash.Routes()
	for path := range posts {
		body, err := json.Marshal(in[path])
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
			req := s.request(http.MethodPost, "/api/"+path, string(body))
			req.Header.Set(name, value)
			s.refused(s.do(req), http.StatusForbidden, path+" with "+name)
		}
		query := url.Values{}
		for name, v := range in[path] {
			query.Set(name, fmt.Sprint(v))
		}
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
			if a := s.do(s.request(method, "/api/"+path+"?"+query.Encode(), "")); a.status != http.StatusMethodNotAllowed || a.head.Get("Allow") != http.MethodPost {
				t.Errorf("%s %s: %d, allowed %q", method, path, a.status, a.head.Get("Allow"))
			}
		}
	}
	for path := range gets {
		if a := s.post("/api/"+path, object{}); a.status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, a.status)
		}
	}
	if a := s.post("/", object{}); a.status != http.StatusMethodNotAllowed {
		t.Errorf("POST /: %d", a.status)
	}
	unchanged()
}
