package browser_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
	"github.com/xstreamq/xstreamq/loadtest/internal/browser"
	"github.com/xstreamq/xstreamq/loadtest/internal/server"
)

// chromium is one browser for all tests: starting one takes seconds.
var chromium *browser.Browser

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	b, err := browser.Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer b.Close()
	chromium = b
	return m.Run()
}

// site is a dashboard over a server of its own, mounted in four ways.
type site struct {
	t      *testing.T
	srv    *server.Server
	client *xstreamq.Client
	web    *httptest.Server
}

var prefixes = []string{"/", "/ops/queues/", "/stripped/"}

func newSite(t *testing.T, cfg dash.Config) *site {
	t.Helper()
	return newSiteBehind(t, cfg, func(h http.Handler) http.Handler { return h })
}

// newSiteBehind has something before it, as a proxy may be.
func newSiteBehind(t *testing.T, cfg dash.Config, before func(http.Handler) http.Handler) *site {
	t.Helper()
	s := &site{t: t}
	var err error
	if s.srv, err = server.Start(t.TempDir(), "--save", ""); err != nil {
		t.Fatal(err)
	}
	if s.client, err = xstreamq.Open("redis://"+s.srv.Addr(), xstreamq.WithLogger(slog.New(slog.DiscardHandler))); err != nil {
		t.Fatal(err)
	}
	cfg.Interval = 250 * time.Millisecond
	d := dash.New(s.client.Admin(), cfg)
	mux := http.NewServeMux()
	mux.Handle("/", d)
	mux.Handle("/ops/queues/", d)
	mux.Handle("/stripped/", http.StripPrefix("/stripped", d))
	s.web = httptest.NewServer(before(mux))
	t.Cleanup(func() {
		d.Close()
		s.web.CloseClientConnections()
		s.web.Close()
		if err := s.client.Close(); err != nil {
			t.Error(err)
		}
		if err := s.srv.Kill(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *site) page() *browser.Page {
	s.t.Helper()
	p, err := chromium.Page(1280, 800, "light")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if said := p.Complaints(); len(said) > 0 {
			s.t.Errorf("the browser complains: %q", said)
		}
		p.Close()
	})
	return p
}

// steps does one after the other and fails at the first that fails.
func (s *site) steps(all ...error) {
	s.t.Helper()
	for i, err := range all {
		if err != nil {
			s.t.Fatalf("step %d: %v", i+1, err)
		}
	}
}

func (s *site) group(stream, group string) *xstreamq.GroupAdmin {
	s.t.Helper()
	g := s.client.Admin().Group(stream, group)
	if _, err := g.Create(s.t.Context(), xstreamq.Head); err != nil {
		s.t.Fatal(err)
	}
	return g
}

// die adds a dead letter as docs/wire-format.md has it.
func (s *site) die(stream, group, reason, text, body string) string {
	s.t.Helper()
	v, err := s.srv.Do("XADD", "{"+stream+"}."+group+".dlq", "*", "body", body, "rc", "6", "oid", "1700000000000-0", "err", text, "reason", reason)
	if err != nil {
		s.t.Fatal(err)
	}
	id, _ := v.(string)
	return id
}

func (s *site) depth(g *xstreamq.GroupAdmin) xstreamq.Depth {
	s.t.Helper()
	d, err := g.Depth(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *site) eventually(f func() bool, what string) {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func at(page, stream, group string, more ...string) string {
	q := url.Values{"page": {page}, "stream": {stream}, "group": {group}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "?" + q.Encode()
}

// Every page opens under every prefix, with names and texts that would be markup elsewhere, and shows them as text.
func TestEveryPageUnderEveryPrefixShowsText(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{Environment: "<b>prod</b>"})
	const name, evil = `"><svg/onload=alert(1)>`, `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
	s.group(name, name)
	id := s.die(name, name, "retries", evil, evil)
	q := xstreamq.NewQueue[string](s.client, name)
	pub, err := q.Publish(t.Context(), evil, xstreamq.Header(evil, evil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Publish(t.Context(), evil, xstreamq.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.srv.Do("XREADGROUP", "GROUP", name, evil, "COUNT", "1", "STREAMS", "{"+name+"}", ">"); err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{
		"overview": "", "group": at("group", name, name), "messages": at("messages", name, name), "message": at("message", name, name, "id", pub.ID),
		"delayed": at("delayed", name, name), "dead": at("dead", name, name), "letter": at("letter", name, name, "id", id), "tasks": "?page=tasks", "server": "?page=server",
	}
	p := s.page()
	for _, prefix := range prefixes {
		for page, query := range pages {
			s.steps(p.Go(s.web.URL + prefix + query))
			shown, err := browser.Eval[string](p, `document.getElementById('main').dataset.page + (document.querySelector('.errorbox')?.textContent || '')`)
			if err != nil || shown != page {
				t.Errorf("%s%s shows %q, %v", prefix, query, shown, err)
			}
			bad, err := browser.Eval[int](p, `document.querySelectorAll('main img, main script, svg[onload], main b b').length + (/owned/.test(document.title) ? 1 : 0)`)
			if err != nil || bad != 0 {
				t.Errorf("%s%s made markup of a text: %d, %v", prefix, query, bad, err)
			}
			if page == "letter" || page == "message" {
				s.steps(p.Wait(`document.querySelector('pre.body').textContent.includes('onerror=')`))
			}
		}
	}
}

// From the first page to a dead letter that is redriven: three clicks at most.
func TestThreeClicks(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	g := s.group("orders", "billing")
	id := s.die("orders", "billing", "retries", "timeout", `{"id":1}`)
	p := s.page()
	s.steps(
		p.Go(s.web.URL+"/"),
		p.Click(`a[data-dead="billing"]`),
		p.Click(fmt.Sprintf(`button[data-redrive="%s"]`, id)),
	)
	s.eventually(func() bool { d := s.depth(g); return d.Dead == 0 && d.Retrying == 1 }, "redriven")
	s.steps(p.Wait(`document.querySelector('main .empty') !== null`))
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	g := s.group("orders", "billing")
	p := s.page()
	const button = `.head .actions button`
	s.steps(p.Go(s.web.URL+"/ops/queues/"+at("group", "orders", "billing")), p.Click(button), p.Type(`input[name="reason"]`, "deploy"), p.Click(`[data-confirm]`))
	s.eventually(func() bool { return s.depth(g).Paused }, "paused")
	flag, err := s.srv.Do("GET", "{orders}.billing.paused")
	if text, _ := flag.(string); err != nil || !strings.Contains(text, `"reason":"deploy"`) {
		t.Errorf("the flag is %v, %v", flag, err)
	}
	s.steps(p.See(`.head .pill.warn`), p.Wait(`document.querySelector('`+button+`').textContent === 'Resume'`), p.Click(button))
	s.eventually(func() bool { return !s.depth(g).Paused }, "resumed")
}

func TestCancelDelayed(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	g := s.group("orders", "billing")
	pub, err := xstreamq.NewQueue[int](s.client, "orders").Publish(t.Context(), 1, xstreamq.Delay(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	p := s.page()
	s.steps(p.Go(s.web.URL+"/stripped/"+at("delayed", "orders", "billing")), p.Click(fmt.Sprintf(`[data-cancel="%s"]`, pub.ID)), p.Click(`[data-confirm]`))
	s.eventually(func() bool { return s.depth(g).Delayed == 0 }, "cancelled")
}

func TestEditAndRedrive(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	g := s.group("orders", "billing")
	id := s.die("orders", "billing", "retries", "bad json", `{"id":`)
	p := s.page()
	s.steps(p.Go(s.web.URL+"/"+at("dead", "orders", "billing")), p.Click(`tr[data-id="`+id+`"] a.btn`), p.Type(`textarea[name="body"]`, `{"id":9007199254740993}`), p.Click(`[data-confirm]`))
	s.eventually(func() bool { return s.depth(g).Dead == 0 }, "redriven")
	recs, err := g.Retrying(t.Context(), xstreamq.Page{})
	if err != nil || len(recs.Items) != 1 || string(recs.Items[0].Body) != `{"id":9007199254740993}` {
		t.Errorf("%v, %v", recs, err)
	}
}

// Rows that are selected hold the live updates; some, or all that match, are redriven and purged.
func TestSelect(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	g := s.group("orders", "billing")
	for n := range 120 {
		text := "timeout"
		if n%2 == 1 {
			text = "declined"
		}
		s.die("orders", "billing", "retries", text, fmt.Sprintf(`{"id":%d}`, n))
	}
	p := s.page()
	s.steps(
		p.Go(s.web.URL+"/"+at("dead", "orders", "billing", "error", "timeout")),
		p.Click(`tbody tr:nth-child(1) input`), p.Click(`tbody tr:nth-child(2) input`),
		p.Wait(`document.querySelector('#live').textContent.includes('selected')`),
		p.Click(`[data-redrive-selected]`),
	)
	s.eventually(func() bool { return s.depth(g).Dead == 118 }, "two are redriven")
	s.steps(
		p.Wait(`document.querySelector('[data-total]').textContent.startsWith('118 ') && document.querySelector('.bar').hidden`),
		p.Click(`th input[type="checkbox"]`), p.Click(`[data-all]`), p.Click(`[data-redrive-selected]`), p.Click(`[data-confirm]`),
		p.See(`[data-task]`),
	)
	s.eventually(func() bool { return s.depth(g).Dead == 60 }, "all that match are redriven")
	s.steps(
		p.Go(s.web.URL+"/"+at("dead", "orders", "billing")),
		p.Click(`th input[type="checkbox"]`), p.Click(`[data-all]`), p.Click(`[data-purge-selected]`), p.Type(`input[name="name"]`, "billing"), p.Click(`[data-confirm]`),
	)
	s.eventually(func() bool { return s.depth(g).Dead == 0 }, "all are purged")
	if n := s.depth(g).Retrying; n != 60 {
		t.Errorf("%d are to be tried again, want 60", n)
	}
}

func TestLiveFiltersAndKeys(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	s.group("orders", "billing")
	s.group("mails", "sender")
	p := s.page()
	s.steps(
		p.Go(s.web.URL+"/?q=bill"),
		p.Wait(`document.querySelectorAll('#main tbody tr').length === 1`),
		p.Wait(`document.querySelector('#live').textContent === 'live'`),
	)
	s.die("orders", "billing", "retries", "x", "1")
	s.steps(
		p.Wait(`document.querySelector('a[data-dead="billing"]').textContent === '1'`),
		p.Keys("j"), p.See(`tr.at`), p.Keys("\r"),
		p.Wait(`document.querySelector('#main').dataset.page === 'group'`),
		p.Keys("g"), p.Keys("o"),
		p.Wait(`document.querySelector('#main').dataset.page === 'overview' && document.querySelector('#main').dataset.ready === '1'`),
		p.Keys("?"), p.See(`dialog kbd`),
	)
}

// What is read-only has no buttons, and says so.
func TestReadOnlyShowsNoButtons(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{ReadOnly: true})
	s.group("orders", "billing")
	s.die("orders", "billing", "retries", "x", "1")
	p := s.page()
	s.steps(p.Go(s.web.URL+"/"+at("dead", "orders", "billing")), p.See(`#readonly`), p.Wait(`document.querySelectorAll('[data-redrive], [data-purge], input[type=checkbox]').length === 0`))
}

// Redis goes and comes back: the page says so, and heals.
func TestRedisGoesAndComesBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	s.group("orders", "billing")
	p := s.page()
	s.steps(p.Go(s.web.URL+"/"), p.Wait(`document.querySelector('#live').textContent === 'live'`))
	s.steps(s.srv.Kill(), p.See(`#down`), s.srv.Launch(), p.Wait(`document.querySelector('#down').hidden`))
}
