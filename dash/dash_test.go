package dash_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const patience = 15 * time.Second

// site is a dashboard over a prefix that a test has to itself.
type site struct {
	t      testing.TB
	prefix string
	rdb    *redis.Client
	client *xstreamq.Client
	dash   *dash.Handler
	web    *httptest.Server
}

func newSite(t testing.TB, cfg dash.Config) *site {
	t.Helper()
	return siteOn(t, redistest.Shared(t), cfg)
}

func siteOn(t testing.TB, srv *redistest.Server, cfg dash.Config) *site {
	t.Helper()
	s := &site{t: t, prefix: redistest.Prefix(t), rdb: srv.Client(t)}
	var err error
	s.client, err = xstreamq.Open(srv.URL(), xstreamq.Prefix(s.prefix), xstreamq.WithLogger(slog.New(slog.DiscardHandler)),
		xstreamq.RedisOptions(func(o *redis.UniversalOptions) {
			o.DialTimeout, o.ReadTimeout, o.MaxRetries = time.Second, time.Second, -1
		}))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Interval == 0 {
		cfg.Interval = 250 * time.Millisecond
	}
	s.dash = dash.New(s.client.Admin(), cfg)
	s.web = httptest.NewServer(s.dash)
	t.Cleanup(func() {
		s.dash.Close()
		s.web.Close()
		if err := s.client.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// group creates a group of a stream.
func (s *site) group(stream, group string) *xstreamq.GroupAdmin {
	s.t.Helper()
	g := s.client.Admin().Group(stream, group)
	if _, err := g.Create(s.t.Context(), xstreamq.Head); err != nil {
		s.t.Fatal(err)
	}
	return g
}

// die adds a dead letter as docs/wire-format.md has it, and returns its entry id.
func (s *site) die(stream, group, reason, text, body string) string {
	s.t.Helper()
	id, err := s.rdb.XAdd(s.t.Context(), &redis.XAddArgs{
		Stream: s.prefix + "{" + stream + "}." + group + ".dlq",
		Values: []string{"body", body, "rc", "6", "oid", "1700000000000-0", "err", text, "reason", reason},
	}).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *site) dead(stream, group string) int {
	s.t.Helper()
	n, err := s.rdb.XLen(s.t.Context(), s.prefix+"{"+stream+"}."+group+".dlq").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return int(n)
}

func (s *site) publish(stream, body string, opts ...xstreamq.PublishOption) string {
	s.t.Helper()
	p, err := xstreamq.NewQueue[json.RawMessage](s.client, stream).Publish(s.t.Context(), json.RawMessage(body), opts...)
	if err != nil {
		s.t.Fatal(err)
	}
	return p.ID
}

// q is a query of names and values.
func q(kv ...string) string {
	v := url.Values{}
	for i := 0; i < len(kv); i += 2 {
		v.Add(kv[i], kv[i+1])
	}
	return "?" + v.Encode()
}

// answer is what came back.
type answer struct {
	status int
	head   http.Header
	body   []byte
}

func (s *site) do(req *http.Request) answer {
	s.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(req) // no redirects
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, b}
}

func (s *site) request(method, path, body string) *http.Request {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.web.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

func (s *site) get(path string) answer {
	s.t.Helper()
	return s.do(s.request(http.MethodGet, path, ""))
}

func (s *site) post(path string, in any) answer {
	s.t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.do(s.request(http.MethodPost, path, string(b)))
}

// object is any JSON object; numbers stay exact.
type object = map[string]any

// ok reads an answer that must be a success.
func (s *site) ok(a answer) (v any) {
	s.t.Helper()
	if a.status != http.StatusOK {
		s.t.Fatalf("status %d: %s", a.status, a.body)
	}
	return s.json(a)
}

func (s *site) json(a answer) (v any) {
	s.t.Helper()
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		s.t.Fatalf("%v: %s", err, a.body)
	}
	return v
}

func (s *site) items(a answer) (out []object) {
	s.t.Helper()
	o, _ := s.ok(a).(object)
	list, _ := o["items"].([]any)
	for _, v := range list {
		out = append(out, v.(object))
	}
	return out
}

// refused checks that an answer is an error with this status.
func (s *site) refused(a answer, status int, what string) {
	s.t.Helper()
	o, _ := s.json(a).(object)
	if a.status != status || o["error"] == "" || o["code"] == nil {
		s.t.Errorf("%s: status %d, want %d: %s", what, a.status, status, a.body)
	}
}

func number(v any) int {
	n, err := strconv.Atoi(v.(json.Number).String())
	if err != nil {
		panic(err)
	}
	return n
}

func (s *site) eventually(f func() bool, what string) {
	s.t.Helper()
	redistest.Eventually(s.t, patience, f, what)
}
