package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
	"github.com/xstreamq/xstreamq/loadtest/internal/browser"
)

// named is the site's address under another host name, which the browser resolves to this machine.
func (s *site) named(host string) string {
	u, err := url.Parse(s.web.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	return "http://" + host + ":" + u.Port()
}

// Copying works without TLS, where a browser gives a page no clipboard.
func TestCopyingWithoutTLS(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{Hosts: []string{"queues.example"}})
	s.group("orders", "billing")
	pub, err := xstreamq.NewQueue[int](s.client, "orders").Publish(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	p := s.page()
	s.steps(p.Go(s.named("queues.example") + "/" + at("messages", "orders", "billing")))
	secure, err := browser.Eval[bool](p, `window.isSecureContext || Boolean(navigator.clipboard)`)
	if err != nil || secure {
		t.Fatalf("the page has a clipboard: %v, %v", secure, err)
	}
	s.steps(p.Click(`button.copy`), p.Wait(`document.querySelector('.toast').textContent === 'Copied the id'`))
	got, err := chromium.Clipboard(s.web.URL)
	if err != nil || got != pub.ID {
		t.Errorf("copied %q, want %q; %v", got, pub.ID, err)
	}
}

// What a page of another site sends in this browser changes nothing: no form, no simple request, no asked one.
func TestAnotherSitesPageChangesNothing(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	s := newSiteBehind(t, dash.Config{}, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				posts.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	})
	g := s.group("orders", "billing")
	s.die("orders", "billing", "retries", "x", "1")
	tried := make(chan string, 10)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/tried" {
			tried <- r.URL.RawQuery
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><link rel=icon href=data:,><main data-ready>x</main><iframe name=f></iframe>
<form method=post target=f enctype=text/plain action="%[1]s/api/pause"><input name='{"stream":"orders","group":"billing","reason":"' value='"}'></form><script>
const to = '%[1]s/api/';
const post = (path, body, type, mode) => fetch(to + path, { method: 'POST', mode, credentials: 'include', headers: { 'Content-Type': type }, body }).then((r) => r.type + r.status, (e) => e.name);
(async () => {
  document.forms[0].submit();
  const said = [];
  for (const type of ['text/plain', 'application/json']) for (const mode of ['no-cors', 'cors']) {
    said.push(await post('pause', '{"stream":"orders","group":"billing"}', type, mode));
    said.push(await post('dlq/purge', '{"stream":"orders","group":"billing","filter":{"all":true}}', type, mode));
  }
  said.push(await fetch(to + 'ls').then(() => 'read', (e) => e.name));
  await fetch('/tried?' + encodeURIComponent(said.join(' ')));
})();</script>`, s.web.URL)
	}))
	defer evil.Close()
	u, err := url.Parse(evil.URL)
	if err != nil {
		t.Fatal(err)
	}
	p, err := chromium.Page(1280, 800, "light") // what the browser refuses it complains about
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s.steps(p.Go("http://evil.example:" + u.Port() + "/"))
	select {
	case said := <-tried:
		text, err := url.QueryUnescape(said)
		if err != nil || len(text) == 0 {
			t.Errorf("%q, %v", said, err)
		}
		if want := "TypeError"; text[len(text)-len(want):] != want {
			t.Errorf("another site may read: %s", text)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the page did not run")
	}
	if posts.Load() == 0 {
		t.Error("nothing was sent: what is tested?")
	}
	if d := s.depth(g); d.Paused || d.Dead != 1 {
		t.Errorf("another site changed something: %+v", d)
	}
}
