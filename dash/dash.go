// Package dash is the dashboard of xstreamq, as one [http.Handler]: what waits, runs, fails and died, group by group, with
// the verbs that an incident needs. It links the standard library and this module, and brings its own pages along.
//
//	http.Handle("/ops/queues/", dash.New(client.Admin(), dash.Config{Authorize: allow}))
//
// It works under any path, with or without [http.StripPrefix], and needs no word about it. Without Authorize everybody who
// reaches it may do everything: put your own login before it, or set ReadOnly. The JSON API beneath is described in
// docs/dashboard.md of the repository.
package dash

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
)

// Config says what the dashboard may do and how it looks; the zero value lets everybody do everything.
type Config struct {
	// ReadOnly refuses every verb that changes something, on the server.
	ReadOnly bool
	// Authorize is asked before every action, reading too; an error refuses it with status 403, and its text is shown.
	// nil allows all. It is called from many goroutines.
	Authorize func(*http.Request, Action) error
	// Audit is told of every action that changes something: err is nil when it was done, else why not. A background task
	// is told of twice: when it is started, and, with its result in Action.Result, when it has ended.
	Audit func(r *http.Request, a Action, err error)
	// Redact may change what is shown of a message. Filters by body and error then look at what it left, and a body that
	// it changed cannot be edited.
	Redact func(*http.Request, *Message)
	// Environment is shown as a badge, such as "production"; "" shows none.
	Environment string
	// Hosts are names by which a browser may reach it on a loopback address, beside localhost and the addresses
	// themselves: another Host there is a sign of DNS rebinding and refused. "*" allows all. Needed behind a proxy on the
	// same machine that passes on the Host of its client.
	Hosts []string
	// MaxBody is how many bytes of a body are shown: 0 = 64 KiB, at most 4 MiB. Longer ones are cut, and say so.
	MaxBody int
	// Interval is the time between two samples: 0 = 2 s, at least 250 ms. A sample that takes long makes it longer: all of
	// them together take a tenth of the time at most.
	Interval time.Duration
	// Logger is told what goes wrong beside a request; nil = slog.Default().
	Logger *slog.Logger
}

// Message is what Redact may change before it is shown.
type Message struct {
	Stream, Group string // Group is "" where the message belongs to none yet
	ID, EntryID   string
	Headers       map[string]string
	Fields        [][2]string // of its entry, those that are not the library's
	Body          []byte      // nil: it has none
	Error         string      // the last one; of why, the answer, which may quote it
}

const (
	defaultMaxBody  = 64 << 10
	mostMaxBody     = 4 << 20
	defaultInterval = 2 * time.Second
	leastInterval   = 250 * time.Millisecond
	callTimeout     = 10 * time.Second // of one question to Redis
	mostRequest     = 8 << 20          // bytes of a request's body
)

var (
	errReadOnly    = errors.New("this dashboard is read-only")
	errNoSuchThing = errors.New("there is no such page")
	errBadRequest  = errors.New("bad request")
	errBusy        = errors.New("busy")
)

// Handler is the dashboard. Close it, or not: a program that ends may leave it.
type Handler struct {
	admin   *xstreamq.Admin
	cfg     Config
	log     *slog.Logger
	origin  *http.CrossOriginProtection
	sampler *sampler
	shared  *shared
	tasks   *tasks
	ctx     context.Context //nolint:containedctx // the life of tasks and streams, which outlast requests
	close   context.CancelFunc
	audit   sync.Mutex
}

// New makes the dashboard. It does no I/O: Redis is asked when somebody looks.
func New(admin *xstreamq.Admin, cfg Config) *Handler {
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = defaultMaxBody
	}
	cfg.MaxBody = min(cfg.MaxBody, mostMaxBody)
	if cfg.Interval <= 0 {
		cfg.Interval = defaultInterval
	}
	cfg.Interval = max(cfg.Interval, leastInterval)
	h := &Handler{admin: admin, cfg: cfg, log: cfg.Logger, origin: http.NewCrossOriginProtection()}
	if h.log == nil {
		h.log = slog.Default()
	}
	h.ctx, h.close = context.WithCancel(context.Background())
	h.sampler = newSampler(h.ctx, admin.Depths, cfg.Interval)
	h.shared = newShared(h.ctx, cfg.Interval)
	h.tasks = newTasks(h.ctx)
	return h
}

// Close ends the live streams and cancels the background tasks, so that a server can shut down:
// server.RegisterOnShutdown(dashboard.Close).
func (h *Handler) Close() {
	h.close()
	h.tasks.wait()
}

// ServeHTTP finds out by the end of the path what is wanted, so that any prefix before it will do: a path that ends in a
// slash is the page, whose address carries the rest as a query; behind /api/ and /assets/ is what these names say.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	if err := h.checkHost(r); err != nil {
		http.Error(w, err.Error(), http.StatusMisdirectedRequest)
		return
	}
	if err := h.origin.Check(r); err != nil {
		h.fail(w, &statusError{http.StatusForbidden, codeRefused, errors.New("a request from another site is refused"), ""})
		return
	}
	path := r.URL.Path
	name := path[strings.LastIndexByte(path, '/')+1:]
	isAsset := assets[name] != nil && strings.HasSuffix(strings.TrimSuffix(path, name), "/assets/")
	if i := strings.LastIndex(path, "/api/"); i >= 0 && name != "" && !isAsset {
		h.serveAPI(w, r, path[i+len("/api/"):])
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	switch {
	case isAsset:
		h.serveAsset(w, r, name)
	case name == "" && strings.HasSuffix(path, "/"):
		if err := h.authorize(r, Action{Verb: VerbOpen}); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		h.serveAsset(w, r, "index.html")
	case strings.Contains(name, "."):
		http.NotFound(w, r)
	default: // mounted without its slash: relative, because the part that was stripped is not known here
		asked, _, _ := strings.Cut(r.RequestURI, "?")
		to := "./" + asked[strings.LastIndexByte(asked, '/')+1:] + "/"
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		head.Set("Location", to)
		w.WriteHeader(http.StatusPermanentRedirect)
	}
}

// checkHost refuses a name that nobody here goes by, where the connection came in over loopback: a page of another site
// whose name was made to point at this machine would otherwise count as this site.
func (h *Handler) checkHost(r *http.Request) error {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !isLoopback(local.String()) {
		return nil
	}
	host := hostOf(r.Host)
	if host == "localhost" || net.ParseIP(host) != nil && net.ParseIP(host).IsLoopback() {
		return nil
	}
	for _, allowed := range h.cfg.Hosts {
		if allowed == "*" || strings.EqualFold(allowed, host) {
			return nil
		}
	}
	return &statusError{
		http.StatusMisdirectedRequest, codeRefused,
		errors.New("the dashboard is not served under this host name on a loopback address; name it in dash.Config.Hosts"), "",
	}
}

func isLoopback(addr string) bool {
	host := hostOf(addr)
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// hostOf is the name or address without its port and brackets, in lower case.
func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		hostport = host
	}
	return strings.ToLower(strings.Trim(hostport, "[]"))
}

// authorize asks whether the request may do it; an error of ReadOnly or of Config.Authorize.
func (h *Handler) authorize(r *http.Request, a Action) error {
	if h.cfg.ReadOnly && a.Verb.Changes() {
		return &statusError{http.StatusForbidden, codeRefused, errReadOnly, ""}
	}
	if h.cfg.Authorize == nil {
		return nil
	}
	a.IDs = slices.Clone(a.IDs)
	if err := h.cfg.Authorize(r, a); err != nil {
		return &statusError{http.StatusForbidden, codeRefused, err, ""}
	}
	return nil
}

// told hands an action to Config.Audit, one at a time.
func (h *Handler) told(r *http.Request, a Action, err error) {
	if h.cfg.Audit == nil {
		return
	}
	h.audit.Lock()
	defer h.audit.Unlock()
	h.cfg.Audit(r, a, err)
}
