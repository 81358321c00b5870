package xstreamq

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/internal/wire"
)

func (q *inquiry) retrying(s sighting) Whereabouts {
	w := Whereabouts{State: "retrying", Due: s.due}
	what := "Put off by its handler"
	switch {
	case strings.HasPrefix(s.m.EntryID, "x/"):
		what = "Redriven from the dead letters"
	case s.m.RC > 0 || s.m.Lost > 0:
		what = "Parked" + history(s.m)
	}
	if s.due.After(q.now) {
		w.Detail = what + "; it is tried again at " + q.when(s.due) + "."
	} else {
		w.Detail = what + "; it is due"
		if !s.due.IsZero() {
			w.Detail += " since " + q.when(s.due)
		}
		w.Detail += " and goes to the retry stream with the next sweep of a worker."
		if q.held {
			w.Detail = strings.TrimSuffix(w.Detail, "with the next sweep of a worker.") + "when fewer than 1,000 retries wait there."
		}
	}
	if o := q.obstacle(); o != "" {
		w.Detail += " " + o
	}
	return w
}

func (q *inquiry) delayed(s sighting) Whereabouts {
	w := Whereabouts{State: "delayed", Due: s.due}
	if s.due.After(q.now) {
		w.Detail = "Published for later: it goes into the stream at " + q.when(s.due) + "."
	} else {
		w.Detail = "Published for later, and due: it goes into the stream with the next sweep of any worker on it."
	}
	switch o := q.obstacle(); {
	case q.group == nil:
		w.Detail += " " + q.missing().Detail
	case o != "":
		w.Detail += " " + o
	}
	return w
}

func (q *inquiry) dead(s sighting) Whereabouts {
	last := ""
	if s.m.Err != "" {
		last = ": " + quoted(s.m.Err)
	}
	var why string
	switch Reason(s.m.Reason) {
	case ReasonRetries:
		why = "its retries are spent, " + strings.TrimPrefix(history(s.m), " after ")
	case ReasonLost:
		why = "its workers died or hung with it, " + counted(int64(s.m.Lost), "time", "times") + " in a row"
	case ReasonRejected:
		why = "its handler rejected it" + last
	case ReasonNoBody:
		why = "its entry had no body"
	case ReasonOverflow:
		why = "it failed while as many were parked as MaxParked allows" + last
	case ReasonExpired:
		why = "it was older than ExpireAfter allows when it would have started" + last
	case ReasonCut:
		why = "shutdowns cut its handler again and again"
	case ReasonMalformed:
		why = "it was parked, and its value could not be read"
	case ReasonTooWide:
		why = "it has too many fields to be retried or handed on"
	default:
		why = "for the reason " + quoted(s.m.Reason) + last
	}
	next := "Redrive it to have it tried again"
	if !s.m.HasBody {
		next = "It has no body: redrive it with one, or purge it"
	}
	return Whereabouts{State: "dead", Detail: fmt.Sprintf("Dead since %s: %s. %s; its entry is %s.",
		q.when(wire.Time(s.m.EntryID)), why, next, s.m.EntryID)}
}

func (q *inquiry) missing() Whereabouts {
	was := "does not exist"
	if q.removed {
		was = "was removed"
	}
	return Whereabouts{State: "unknown", Detail: fmt.Sprintf(
		"The group %s, so nothing is kept for it and nobody reads it. Create it at the head of the stream, or start a worker of it.", was)}
}

// live counts the consumers whose lease has not ended.
func (q *inquiry) live() (n int64) {
	for _, c := range q.consumers {
		if c.alive() {
			n++
		}
	}
	return n
}

// reading says who reads the group, or what keeps it from being read.
func (q *inquiry) reading() string {
	if o := q.obstacle(); o != "" {
		return o
	}
	return counted(q.live(), "worker reads", "workers read") + " the group."
}

// obstacle says what keeps the group from being read; "" = nothing.
func (q *inquiry) obstacle() string {
	if q.group == nil {
		return ""
	}
	if q.pause != "" {
		return q.paused()
	}
	if q.live() > 0 {
		return ""
	}
	seen := q.swept
	for _, c := range q.consumers {
		if t := c.lastSeen(q.now); t.After(seen) {
			seen = t
		}
	}
	last := "none was ever seen"
	if !seen.IsZero() {
		last = "the last was seen at " + q.when(seen)
	}
	switch {
	case !q.group.there:
		return "Redis has lost the group, and no worker lives that would make it again where it stood: start one (" + last + ")."
	case !q.group.recorded && !seen.IsZero():
		return "The group is read by other consumers than this library's; " + last + "."
	}
	return "Nobody reads the group: " + last + ". Start a worker."
}

func (q *inquiry) paused() string {
	f := readPause(q.pause)
	text := "The group is paused"
	if !f.Since.IsZero() {
		text = "The group has been paused since " + q.when(f.Since)
	}
	text += ", until "
	if !f.Until.IsZero() {
		text += q.when(f.Until) + " or until "
	}
	text += "somebody resumes it"
	if f.Reason != "" {
		text += ": " + quoted(f.Reason)
	}
	return text + "."
}

// history says what a message has behind it: ` after 2 failed attempts (the last: "boom")`.
func history(m wire.Message) string {
	var parts []string
	if m.RC > 0 {
		failed := counted(int64(m.RC), "failed attempt", "failed attempts")
		if m.Err != "" {
			failed += " (the last: " + quoted(m.Err) + ")"
		}
		parts = append(parts, failed)
	}
	if m.Lost > 0 {
		parts = append(parts, counted(int64(m.Lost), "lost worker", "lost workers")+" in a row")
	}
	if len(parts) == 0 {
		return ""
	}
	return " after " + strings.Join(parts, " and ")
}

// quoted makes text from elsewhere harmless, and short.
func quoted(s string) string {
	const most = 200
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "…"
	}
	return strconv.Quote(s)
}

func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}

// when is a moment, and how far it is from the server's now.
func (q *inquiry) when(t time.Time) string {
	text := t.UTC().Format(time.RFC3339)
	switch d := t.Sub(q.now).Round(time.Second); {
	case d > 0:
		return text + " (in " + d.String() + ")"
	case d < 0:
		return text + " (" + (-d).String() + " ago)"
	}
	return text + " (now)"
}
