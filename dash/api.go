package dash

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/xstreamq/xstreamq"
)

// endpoint is one path beneath api/.
type endpoint struct {
	verb  Verb
	serve func(h *Handler, w http.ResponseWriter, r *http.Request, verb Verb) (any, error)
}

// reads answer GET and change nothing; writes answer POST.
var (
	reads = map[string]endpoint{
		"config":     {VerbOpen, (*Handler).getConfig},
		"ls":         {VerbList, (*Handler).getList},
		"live":       {VerbList, (*Handler).getLive},
		"depth":      {VerbDepth, (*Handler).getDepth},
		"pending":    {VerbPending, (*Handler).getPending},
		"consumers":  {VerbConsumers, (*Handler).getConsumers},
		"retrying":   {VerbRetrying, (*Handler).getRetrying},
		"peek":       {VerbPeek, (*Handler).getPeek},
		"get":        {VerbGet, (*Handler).getMessage},
		"why":        {VerbWhy, (*Handler).getWhy},
		"delayed":    {VerbDelayed, (*Handler).getDelayed},
		"dlq":        {VerbDeadList, (*Handler).getDead},
		"dlq/show":   {VerbDeadList, (*Handler).getDeadOne},
		"compaction": {VerbCompaction, (*Handler).getCompaction},
		"server":     {VerbServer, (*Handler).getServer},
		"tasks":      {VerbTasks, (*Handler).getTasks},
	}
	writes = map[string]endpoint{
		"pause":          {VerbPause, (*Handler).postPause},
		"resume":         {VerbResume, (*Handler).postResume},
		"delayed/cancel": {VerbCancel, (*Handler).postCancel},
		"dlq/redrive":    {VerbRedrive, (*Handler).postBulk},
		"dlq/purge":      {VerbPurge, (*Handler).postBulk},
		"dlq/edit":       {VerbEdit, (*Handler).postEdit},
		"compact":        {VerbCompact, (*Handler).postCompact},
		"tasks/cancel":   {VerbCancelTask, (*Handler).postCancelTask},
	}
)

func (h *Handler) serveAPI(w http.ResponseWriter, r *http.Request, name string) {
	table := reads
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		table = writes
	default:
		table = nil
	}
	e, ok := table[name]
	if !ok {
		status, allow := http.StatusNotFound, ""
		if _, get := reads[name]; get {
			allow = http.MethodGet
		} else if _, post := writes[name]; post {
			allow = http.MethodPost
		}
		if allow != "" {
			status = http.StatusMethodNotAllowed
			w.Header().Set("Allow", allow)
		}
		h.fail(w, &statusError{status, codeUsage, errNoSuchThing, ""})
		return
	}
	if name != "live" {
		ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	out, err := e.serve(h, w, r, e.verb)
	switch {
	case err != nil:
		h.fail(w, err)
	case out != nil:
		writeJSON(w, http.StatusOK, out)
	}
}

// allowed reads what a GET is about and asks whether it may.
func (h *Handler) allowed(r *http.Request, verb Verb, p *params, stream, group, id string) (Action, error) {
	a := Action{Verb: verb, Stream: stream, Group: group}
	if id != "" {
		a.IDs = []string{id}
	}
	if p.err != nil {
		return a, p.err
	}
	return a, h.authorize(r, a)
}

func query(r *http.Request) *params { return &params{q: r.URL.Query()} }

type configJSON struct {
	Environment string `json:"environment"`
	ReadOnly    bool   `json:"read_only"`
	IntervalMS  int64  `json:"interval_ms"`
	MaxBody     int    `json:"max_body"`
	Redacts     bool   `json:"redacts"`
}

func (h *Handler) getConfig(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	if _, err := h.allowed(r, verb, query(r), "", "", ""); err != nil {
		return nil, err
	}
	return configJSON{h.cfg.Environment, h.cfg.ReadOnly, h.cfg.Interval.Milliseconds(), h.cfg.MaxBody, h.cfg.Redact != nil}, nil
}

func (h *Handler) getList(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	points := p.number("history", 0, 0, historyMost)
	a, err := h.allowed(r, verb, p, p.text("stream"), p.text("group"), "")
	if err != nil {
		return nil, err
	}
	return h.list(r, a, points)
}

func (h *Handler) getLive(w http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	a, err := h.allowed(r, verb, p, p.text("stream"), p.text("group"), "")
	if err != nil {
		return nil, err
	}
	return nil, h.live(w, r, a)
}

func (h *Handler) getDepth(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	a, err := h.allowed(r, verb, p, p.needed("stream"), p.text("group"), "")
	if err != nil {
		return nil, err
	}
	if a.Group != "" {
		d, err := h.admin.Group(a.Stream, a.Group).Depth(r.Context())
		return depth(d), err
	}
	all, err := h.admin.Stream(a.Stream).Depths(r.Context())
	out := make([]depthJSON, len(all))
	for i, d := range all {
		out[i] = depth(d)
	}
	return out, err
}

// depthJSON is the command line's.
type depthJSON struct {
	xstreamq.Depth
	OldestMS int64 `json:"oldest_ms"`
}

func depth(d xstreamq.Depth) depthJSON { return depthJSON{d, d.Oldest.Milliseconds()} }

type pendingJSON struct {
	EntryID    string `json:"entry_id"`
	Consumer   string `json:"consumer"`
	IdleMS     int64  `json:"idle_ms"`
	Deliveries int64  `json:"deliveries"`
	Retry      bool   `json:"retry"`
}

// pageJSON is one page of a list.
type pageJSON[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"` // after of the next page; "" = the end
}

func (h *Handler) getPending(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	page := p.page()
	a, err := h.allowed(r, verb, p, p.needed("stream"), p.needed("group"), "")
	if err != nil {
		return nil, err
	}
	list, err := once(r.Context(), h.shared, fmt.Sprintf("pending %q %q %v", a.Stream, a.Group, page), func(ctx context.Context) ([]xstreamq.PendingEntry, error) {
		return h.admin.Group(a.Stream, a.Group).Pending(ctx, page)
	})
	if err != nil {
		return nil, err
	}
	out := pageJSON[pendingJSON]{Items: make([]pendingJSON, len(list))}
	for i, e := range list {
		out.Items[i] = pendingJSON{e.EntryID, e.Consumer, e.Idle.Milliseconds(), e.Deliveries, e.Retry}
	}
	if len(list) >= page.Limit {
		out.Next = list[len(list)-1].EntryID
	}
	return out, nil
}

type consumerJSON struct {
	Name         string `json:"name"`
	Pending      int64  `json:"pending"`
	HeartbeatMS  *int64 `json:"heartbeat_ms"` // null: not ours
	VisibilityMS int64  `json:"visibility_ms"`
	IdleMS       *int64 `json:"idle_ms"` // null: the server does not tell
}

// consumersMost bounds a list that Redis gives whole.
const consumersMost = 1000

func (h *Handler) getConsumers(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	a, err := h.allowed(r, verb, p, p.needed("stream"), p.needed("group"), "")
	if err != nil {
		return nil, err
	}
	list, err := once(r.Context(), h.shared, fmt.Sprintf("consumers %q %q", a.Stream, a.Group), h.admin.Group(a.Stream, a.Group).Consumers)
	if err != nil {
		return nil, err
	}
	total := len(list)
	list = list[:min(total, consumersMost)]
	out := make([]consumerJSON, len(list))
	for i, c := range list {
		out[i] = consumerJSON{Name: c.Name, Pending: c.Pending, VisibilityMS: c.Visibility.Milliseconds(), HeartbeatMS: msPtr(c.Heartbeat), IdleMS: msPtr(c.Idle)}
	}
	return struct {
		Items []consumerJSON `json:"items"`
		Total int            `json:"total"`
	}{out, total}, nil
}

// msPtr is nil for what is below 0: not known.
func msPtr(d time.Duration) *int64 {
	if d < 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}
