package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
)

// details is one thing, a line a property: name, tab, value into a pipe, aligned on a terminal.
type details struct {
	a     *app
	lines [][2]string
}

// add leaves out what has no value.
func (d *details) add(name, value string) {
	if value != "" {
		d.lines = append(d.lines, [2]string{name, escape(value)})
	}
}

func (d *details) print() error {
	var b strings.Builder
	width := 0
	for _, l := range d.lines {
		width = max(width, len(l[0]))
	}
	for _, l := range d.lines {
		switch {
		case d.a.outTTY && strings.HasPrefix(l[1], "\n"): // a block of its own
			fmt.Fprintf(&b, "%s%s\n", l[0], l[1])
		case !d.a.outTTY:
			fmt.Fprintf(&b, "%s\t%s\n", l[0], l[1])
		case d.a.color():
			fmt.Fprintf(&b, "\x1b[1m%-*s\x1b[0m  %s\n", width, l[0], l[1])
		default:
			fmt.Fprintf(&b, "%-*s  %s\n", width, l[0], l[1])
		}
	}
	_, err := d.a.out.Write([]byte(b.String()))
	return err
}

func (d *details) record(r xstreamq.Record) {
	d.add("id", r.ID)
	if r.EntryID != r.ID {
		d.add("entry_id", r.EntryID)
	}
	d.add("stream", r.Stream)
	d.add("published", d.when(r.PublishedAt))
	d.add("due", d.when(r.DueAt))
	d.add("failed attempts", count(int64(r.Attempts)))
	if r.Lost > 0 {
		d.add("lost leases", count(int64(r.Lost)))
	}
	for _, k := range slices.Sorted(maps.Keys(r.Headers)) {
		d.add("header", k+"="+r.Headers[k])
	}
	for _, f := range r.Fields {
		d.add("field", f[0]+"="+f[1])
	}
}

// body comes last: on a terminal JSON is spread over lines, with its numbers and its order as they are.
func (d *details) body(b []byte) {
	switch {
	case b == nil:
		d.add("body", "(none)")
	case !isJSON(b) && !clean(string(b), "\n\t"):
		d.add(fmt.Sprintf("body (binary, %d bytes)", len(b)), string(b))
	case len(b) == 0:
		d.add("body", "(empty)")
	case d.a.outTTY && len(b) > 60 && isJSON(b):
		var out bytes.Buffer
		if err := json.Indent(&out, b, "", "  "); err != nil {
			panic(err) // it is JSON
		}
		d.lines = append(d.lines, [2]string{"body", "\n" + escapeLines(out.String())})
	default:
		d.add("body", string(b))
	}
}

// when is a moment in full, with how far it is away on a terminal.
func (d *details) when(t time.Time) string {
	if t.IsZero() || !d.a.outTTY {
		return stamp(t)
	}
	return stamp(t) + " (" + relative(t) + ")"
}
