// Package wire turns stream entries into messages and back. docs/wire-format.md is the public description.
package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Names of the fields that mean something; all others are unknown to us and travel on, in order and byte-exact.
const (
	Body     = "body"     // the message
	Headers  = "headers"  // JSON object of strings
	RC       = "rc"       // failures
	Lost     = "lost"     // leases lost in a row
	Losses   = "losses"   // leases lost in all
	Cut      = "cut"      // shutdowns that cut its handler
	OID      = "oid"      // the stable id, on every copy
	DID      = "did"      // the dedupe id it was published with
	From     = "from"     // the stable id of the dead letter it was published anew from
	Redriven = "redriven" // how often it came back from the dead letters
	Due      = "due"      // when its delay ended, or it was redriven last, in ms
	Err      = "err"      // the last error
	Reason   = "reason"   // why it is dead
	Packed   = "packed"   // all fields of an entry too wide to be moved
	Raw      = "raw"      // a parked value that could not be read
	Member   = "member"   // and the name it was parked under
)

// MaxError is how much of an error's text is kept, in bytes.
const MaxError = 1024

// MaxCount is the largest counter that counts.
const MaxCount = 999_999_999

// Message is an entry as it is read. The first field of a name counts; counters that are no counters are 0.
type Message struct {
	EntryID string
	ID      string // stable for life
	Body    string
	HasBody bool
	Headers string // as stored; see ParseHeaders
	DID     string
	From    string
	Err     string
	Reason  string

	RC, Lost, Losses, Cut, Redriven int
	Due                             int64 // ms, 0 = none

	Fields []string // all of them as stored: name, value, name, value …
}

// Parse reads an entry.
func Parse(entryID string, fields []string) Message {
	m := Message{EntryID: entryID, ID: entryID, Fields: fields}
	var seen uint16
	first := func(bit uint16) bool {
		had := seen&bit != 0
		seen |= bit
		return !had
	}
	for i := 0; i+1 < len(fields); i += 2 {
		v := fields[i+1]
		switch fields[i] {
		case Body:
			if first(1) {
				m.Body, m.HasBody = v, true
			}
		case Headers:
			if first(1 << 1) {
				m.Headers = v
			}
		case RC:
			if first(1 << 2) {
				m.RC = Counter(v)
			}
		case Lost:
			if first(1 << 3) {
				m.Lost = Counter(v)
			}
		case Losses:
			if first(1 << 4) {
				m.Losses = Counter(v)
			}
		case Cut:
			if first(1 << 5) {
				m.Cut = Counter(v)
			}
		case OID:
			if first(1<<6) && v != "" {
				m.ID = v
			}
		case DID:
			if first(1 << 7) {
				m.DID = v
			}
		case From:
			if first(1 << 8) {
				m.From = v
			}
		case Redriven:
			if first(1 << 9) {
				m.Redriven = Counter(v)
			}
		case Due:
			if first(1 << 12) {
				if ms, err := strconv.ParseUint(v, 10, 63); err == nil {
					m.Due = int64(ms)
				}
			}
		case Err:
			if first(1 << 10) {
				m.Err = v
			}
		case Reason:
			if first(1 << 11) {
				m.Reason = v
			}
		}
	}
	return m
}

// Published is the server's time of the first publish; where a producer chose the stable id, that of the entry.
func (m *Message) Published() time.Time {
	if t := Time(m.ID); !t.IsZero() {
		return t
	}
	return Time(m.EntryID)
}

// Born is when a message's age began: with the end of its delay or its last redrive, else when it was published.
func (m *Message) Born() time.Time {
	if m.Due > 0 {
		return time.UnixMilli(m.Due)
	}
	return m.Published()
}

// Counter reads a counter: 1 to 9 digits, all else is 0.
func Counter(s string) int {
	if s == "" || len(s) > 9 {
		return 0
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// Unknown lists the fields that are not ours, in order.
func Unknown(fields []string) [][2]string {
	var out [][2]string
	for i := 0; i+1 < len(fields); i += 2 {
		if !reserved[fields[i]] {
			out = append(out, [2]string{fields[i], fields[i+1]})
		}
	}
	return out
}

var reserved = map[string]bool{
	Body: true, Headers: true, RC: true, Lost: true, Losses: true, Cut: true, OID: true, DID: true,
	From: true, Redriven: true, Due: true, Err: true, Reason: true,
}

// ParseHeaders reads a headers field; what is no JSON object of strings is no headers.
func ParseHeaders(s string) map[string]string {
	if s == "" {
		return nil
	}
	var h map[string]string
	if json.Unmarshal([]byte(s), &h) != nil {
		return nil
	}
	return h
}

// New appends to fields those of a message to publish.
func New(fields []string, body []byte, headers map[string]string, dedupeID string) ([]string, error) {
	fields = append(fields, Body, string(body))
	if len(headers) > 0 {
		for k, v := range headers {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, fmt.Errorf("header %q: %q is not valid UTF-8", k, v)
			}
		}
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(headers); err != nil {
			return nil, err
		}
		fields = append(fields, Headers, strings.TrimSuffix(b.String(), "\n"))
	}
	if dedupeID != "" {
		fields = append(fields, DID, dedupeID)
	}
	return fields, nil
}

// ErrorText cuts an error's text to what is kept, at a rune's edge.
func ErrorText(s string) string {
	if len(s) <= MaxError {
		return s
	}
	cut := MaxError
	for cut > MaxError-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}
