package dash_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
)

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
	modules, err := filepath.Glob("assets/*.js")
	if err != nil || len(modules) < 10 {
		t.Fatal(modules, err)
	}
	for _, m := range modules { // one that is not named is asked for only when another has come that imports it
		if name := filepath.Base(m); name != "app.js" && name != "theme.js" && !strings.Contains(page, `<link rel="modulepreload" href="assets/`+name+`">`) {
			t.Errorf("the page does not preload %s", name)
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
