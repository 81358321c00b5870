package dash

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
)

// Bounds of what may be asked for.
const (
	pageDefault = 50
	pageMost    = 500
	mostIDs     = 1000
	mostText    = 1000 // bytes of one search text, and of a reason
	mostPause   = 10 * 365 * 24 * time.Hour
)

// params reads a query; the first wrong value is kept.
type params struct {
	q   url.Values
	err error
}

func (p *params) refuse(name, value, want string) {
	if p.err == nil {
		p.err = badRequest("%s is %q: it must be %s", name, short(value), want)
	}
}

func short(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

func (p *params) text(name string) string {
	v := p.q.Get(name)
	if len(v) > mostText {
		p.refuse(name, v, "at most "+strconv.Itoa(mostText)+" bytes")
		return ""
	}
	return v
}

func (p *params) needed(name string) string {
	v := p.text(name)
	if v == "" && p.err == nil {
		p.err = badRequest("%s is missing", name)
	}
	return v
}

func (p *params) number(name string, none, least, most int) int {
	v := p.q.Get(name)
	if v == "" {
		return none
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		p.refuse(name, v, strconv.Itoa(least)+" to "+strconv.Itoa(most))
		return none
	}
	return n
}

func (p *params) flag(name string) bool {
	switch v := p.q.Get(name); v {
	case "", "0", "false":
		return false
	case "1", "true":
		return true
	default:
		p.refuse(name, v, "1 or 0")
		return false
	}
}

func (p *params) page() xstreamq.Page {
	return xstreamq.Page{After: p.text("after"), Limit: p.number("limit", pageDefault, 1, pageMost), Newest: p.flag("newest")}
}

func (p *params) body(most, none int) bodyForm {
	return bodyForm{most: p.number("bytes", min(none, most), 0, most), raw: p.flag("raw")}
}

// filterJSON are the filters of dead letters, by the names of the command line's flags.
type filterJSON struct {
	Reason string            `json:"reason"`
	Error  string            `json:"error"`
	Body   string            `json:"body"`
	Header map[string]string `json:"header"`
	Before string            `json:"before"`
	After  string            `json:"since"` // of death; "after" is a page's
	All    bool              `json:"all"`   // nothing else is given, and that is meant
}

func (p *params) filter() filterJSON {
	f := filterJSON{Reason: p.text("reason"), Error: p.text("error"), Body: p.text("body"), Before: p.text("before"), After: p.text("since")}
	for _, kv := range p.q["header"] {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || len(kv) > mostText || len(f.Header) > 20 {
			p.refuse("header", kv, "name=value, at most twenty")
			break
		}
		if f.Header == nil {
			f.Header = map[string]string{}
		}
		f.Header[name] = value
	}
	return f
}

// parseTime reads RFC 3339, or a duration: that long ago.
func parseTime(name, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, badRequest("%s is %q: it must be a time such as 2026-01-31T15:04:05Z, or how long ago, such as 90m", name, short(s))
}

// filter is what the library takes. Where messages are redacted, texts are looked for in what is shown: a search must not
// find out what the screen hides.
func (h *Handler) filter(r *http.Request, j filterJSON) (xstreamq.Filter, error) {
	now := time.Now()
	before, err := parseTime("before", j.Before, now)
	if err != nil {
		return xstreamq.Filter{}, err
	}
	after, err := parseTime("since", j.After, now)
	if err != nil {
		return xstreamq.Filter{}, err
	}
	for _, s := range []string{j.Reason, j.Error, j.Body} {
		if len(s) > mostText {
			return xstreamq.Filter{}, badRequest("a filter's text has %d bytes, at most %d are allowed", len(s), mostText)
		}
	}
	f := xstreamq.Filter{
		All: j.All, Reason: xstreamq.Reason(j.Reason), ErrorContains: j.Error, BodyContains: j.Body, Header: j.Header, Before: before, After: after,
	}
	if h.cfg.Redact != nil && (j.Error != "" || j.Body != "" || len(j.Header) > 0) {
		f.ErrorContains, f.BodyContains, f.Header = "", "", nil
		f.Match = func(d xstreamq.DeadLetter) bool {
			m, _ := h.shown(r, d.Record, d.Group, d.Error)
			for name, want := range j.Header {
				if got, ok := m.Headers[name]; !ok || got != want {
					return false
				}
			}
			return strings.Contains(m.Error, j.Error) && strings.Contains(string(m.Body), j.Body)
		}
	}
	return f, nil
}

// readBody reads the JSON of a POST, bounded, without names that nobody knows.
func readBody(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &statusError{http.StatusUnsupportedMediaType, codeUsage, errors.New("the request is no application/json"), ""}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostRequest))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("there is something behind the object")
	}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLarge):
		return &statusError{http.StatusRequestEntityTooLarge, codeUsage, err, ""}
	case errors.Is(err, io.EOF):
		return badRequest("the request has no JSON object")
	}
	return badRequest("%v", err)
}
