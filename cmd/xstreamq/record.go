package main

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/xstreamq/xstreamq"
)

// messageJSON and deadJSON are the public forms of a message without its body, which withBody puts in.
type messageJSON struct {
	ID          string            `json:"id"`
	EntryID     string            `json:"entry_id"`
	Stream      string            `json:"stream"`
	PublishedAt *string           `json:"published_at"`
	Attempt     int               `json:"attempt"`
	Lost        int               `json:"lost"`
	Headers     map[string]string `json:"headers"`
}

type deadJSON struct {
	ID          string            `json:"id"`
	EntryID     string            `json:"entry_id"`
	Stream      string            `json:"stream"`
	PublishedAt *string           `json:"published_at"`
	Attempts    int               `json:"attempts"`
	Lost        int               `json:"lost"`
	Headers     map[string]string `json:"headers"`
	Reason      string            `json:"reason"`
	Error       string            `json:"error"`
	DeadAt      *string           `json:"dead_at"`
}

func recordJSON(r xstreamq.Record) ([]byte, error) {
	b, err := encode(message(r))
	return withBody(b, r.Body), err
}

func message(r xstreamq.Record) messageJSON {
	return messageJSON{
		ID: r.ID, EntryID: r.EntryID, Stream: r.Stream, PublishedAt: stampPtr(r.PublishedAt),
		Attempt: r.Attempts + 1, Lost: r.Lost, Headers: orEmpty(r.Headers),
	}
}

// parkedJSON is the public form of a message that waits for its time.
type parkedJSON struct {
	messageJSON
	DueAt *string `json:"due_at"`
}

func parkedRecordJSON(r xstreamq.Record) ([]byte, error) {
	b, err := encode(parkedJSON{message(r), stampPtr(r.DueAt)})
	return withBody(b, r.Body), err
}

// The keys of these in docs/cli.md and the tests.
var (
	messageKeys = []string{"id", "entry_id", "stream", "published_at", "attempt", "lost", "headers", "body"}
	parkedKeys  = append(slices.Clone(messageKeys), "due_at")
	deadKeys    = []string{
		"id", "entry_id", "stream", "published_at", "attempts", "lost", "headers", "body", "reason", "error", "dead_at",
	}
)

func deadLetterJSON(d xstreamq.DeadLetter) ([]byte, error) {
	b, err := encode(deadJSON{
		ID: d.ID, EntryID: d.EntryID, Stream: d.Stream, PublishedAt: stampPtr(d.PublishedAt), Attempts: d.Attempts,
		Lost: d.Lost, Headers: orEmpty(d.Headers), Reason: string(d.Reason), Error: d.Error, DeadAt: stampPtr(d.DiedAt),
	})
	return withBody(b, d.Body), err
}

// withBody adds the body to a JSON object. It is put in by hand: the encoder would rewrite its white space. An entry
// that has no body at all gets neither key.
func withBody(object, body []byte) []byte {
	if body == nil || len(object) == 0 {
		return object
	}
	object = object[:len(object)-1]
	if isJSON(body) {
		object = append(append(object, `,"body":`...), body...)
	} else {
		object = append(object, `,"body_base64":"`...)
		object = base64.StdEncoding.AppendEncode(object, body)
		object = append(object, '"')
	}
	return append(object, '}')
}

// isJSON: json.Valid lets bytes through that are no UTF-8, and those are no JSON.
func isJSON(b []byte) bool { return json.Valid(b) && utf8.Valid(b) }

func orEmpty(h map[string]string) map[string]string {
	if h == nil {
		return map[string]string{}
	}
	return h
}

// stamp is RFC 3339 in UTC to the millisecond, "" for no time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func stampPtr(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}
