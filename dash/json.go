package dash

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/xstreamq/xstreamq"
)

// messageJSON is a message as the command line prints it, and what a screen needs beside it.
type messageJSON struct {
	ID          string            `json:"id"`
	EntryID     string            `json:"entry_id"`
	Stream      string            `json:"stream"`
	PublishedAt *string           `json:"published_at"`
	Attempt     int               `json:"attempt,omitempty"`
	Attempts    *int              `json:"attempts,omitempty"` // of dead letters
	Lost        int               `json:"lost"`
	Headers     map[string]string `json:"headers"`
	DueAt       *string           `json:"due_at,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Error       *string           `json:"error,omitempty"`
	DeadAt      *string           `json:"dead_at,omitempty"`
	Fields      [][2]string       `json:"fields,omitempty"`
	Body        json.RawMessage   `json:"body,omitempty"`
	BodyBase64  *string           `json:"body_base64,omitempty"`
	BodyBytes   int               `json:"body_bytes"` // of the whole body; -1: it has none
	Truncated   bool              `json:"body_truncated,omitempty"`
	Redacted    bool              `json:"redacted,omitempty"`
}

// bodyForm is how bodies are to be written.
type bodyForm struct {
	most int  // bytes
	raw  bool // always as base64, so that a reader sees the very bytes
}

// shown is a message after Redact, and whether that changed its body.
func (h *Handler) shown(r *http.Request, rec xstreamq.Record, group, lastError string) (m Message, redacted bool) {
	m = Message{Stream: rec.Stream, Group: group, ID: rec.ID, EntryID: rec.EntryID, Headers: rec.Headers, Fields: rec.Fields, Body: rec.Body, Error: lastError}
	if h.cfg.Redact == nil {
		return m, false
	}
	m.Headers, m.Fields, m.Body = maps.Clone(m.Headers), slices.Clone(m.Fields), slices.Clone(m.Body)
	h.cfg.Redact(r, &m)
	return m, !bytes.Equal(m.Body, rec.Body)
}

func (h *Handler) record(r *http.Request, rec xstreamq.Record, group string, form bodyForm) messageJSON {
	m, redacted := h.shown(r, rec, group, rec.Error)
	j := messageJSON{Attempt: rec.Attempts + 1, DueAt: stampPtr(rec.DueAt)}
	if m.Error != "" {
		j.Error = &m.Error
	}
	return fill(j, rec, m, redacted, form)
}

func (h *Handler) deadLetter(r *http.Request, d xstreamq.DeadLetter, form bodyForm) messageJSON {
	m, redacted := h.shown(r, d.Record, d.Group, d.Error)
	text := m.Error
	return fill(messageJSON{Attempts: &d.Attempts, Reason: string(d.Reason), Error: &text, DeadAt: stampPtr(d.DiedAt)},
		d.Record, m, redacted, form)
}

func fill(j messageJSON, rec xstreamq.Record, m Message, redacted bool, form bodyForm) messageJSON {
	j.ID, j.EntryID, j.Stream, j.PublishedAt, j.Lost = rec.ID, rec.EntryID, rec.Stream, stampPtr(rec.PublishedAt), rec.Lost
	j.Headers, j.Fields, j.Redacted, j.BodyBytes = m.Headers, m.Fields, redacted, -1
	if j.Headers == nil {
		j.Headers = map[string]string{}
	}
	if m.Body == nil {
		return j
	}
	j.BodyBytes = len(m.Body)
	body := m.Body
	if len(body) > form.most {
		body, j.Truncated = body[:form.most], true
	}
	if !form.raw && !j.Truncated && json.Valid(body) && utf8.Valid(body) {
		j.Body = body
		return j
	}
	text := base64.StdEncoding.EncodeToString(body)
	j.BodyBase64 = &text
	return j
}

// stampPtr is RFC 3339 in UTC to the millisecond; nil for no time.
func stampPtr(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// encode is json.Marshal that leaves <, > and & alone: the answers are read by a script, and as JSON only.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := encode(v)
	if err != nil { // a raw body that the encoder refuses cannot be: it was checked
		status, b = http.StatusInternalServerError, []byte(`{"error":"writing JSON","code":1,"hint":""}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a browser that went away
}
