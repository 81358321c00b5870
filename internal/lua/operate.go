package lua

import (
	"context"
	"strings"

	"github.com/xstreamq/xstreamq/internal/keys"
)

var (
	redriveScript = load("redrive")
	purgeScript   = load("purge")
	dropScript    = load("drop")
	seekScript    = load("seek")
	lagScript     = load("lag")
)

// Letter names a dead letter: its entry, its message, and the dedupe id it was published with.
type Letter struct{ EntryID, ID, DedupeID string }

// Statuses of a redriven dead letter.
const (
	Moved        = "moved"
	Unredrivable = "unredrivable"
)

// Redrive puts dead letters back for their own group, or, anew, publishes them to all groups. body replaces the stored one
// when not nil. Each answers Moved (Detail: where it went), Gone, Unredrivable or Failed.
func Redrive(ctx context.Context, r Runner, k keys.Group, letters []Letter, anew bool, body []byte) ([]Settled, error) {
	names := append(make([]string, 0, 5+len(letters)), k.Main, k.Due, k.Parked, k.DLQ, k.Groups)
	args := append(make([]any, 0, 4+len(letters)), k.Group, "", body, 0)
	if anew {
		args[1] = "main"
	}
	if body != nil {
		args[3] = 1
	} else {
		args[2] = ""
	}
	for _, l := range letters {
		names = append(names, k.Seen(l.ID))
		args = append(args, l.EntryID)
	}
	v, err := redriveScript.run(ctx, r, names, args...)
	l, err := redriveScript.list(v, err, len(letters))
	if err != nil {
		return nil, err
	}
	out := make([]Settled, len(letters))
	for i := range out {
		out[i].Status, out[i].Detail, _ = strings.Cut(text(l[i]), " ")
	}
	return out, nil
}

// Purge deletes dead letters and frees their dedupe ids.
func Purge(ctx context.Context, r Runner, k keys.Group, letters []Letter) (int64, error) {
	names := append(make([]string, 0, 1+len(letters)), k.DLQ)
	args := make([]any, 0, 2*len(letters))
	for _, l := range letters {
		sent := k.DLQ
		if l.DedupeID != "" {
			sent = k.Sent(l.DedupeID)
		}
		names = append(names, sent)
		args = append(args, l.EntryID, l.ID)
	}
	v, err := purgeScript.run(ctx, r, names, args...)
	return number(v), err
}

// Dropped is what removing a group came to, and what it holds.
type Dropped struct {
	What                                string // removed, held, missing
	Dead, Pending, Retry, Retrying, Lag int64  // Lag: 1 when at least one entry was not read
}

// Drop removes a group unless it holds something; force leaves only dead letters as a reason not to.
func Drop(ctx context.Context, r Runner, k keys.Group, force bool) (Dropped, error) {
	mode := ""
	if force {
		mode = "force"
	}
	v, err := dropScript.run(ctx, r, []string{k.Main, k.Retry, k.Due, k.Parked, k.DLQ, k.Groups, k.Workers, k.Paused, k.Meta}, k.Group, mode)
	l, err := dropScript.list(v, err, 6)
	if err != nil {
		return Dropped{}, err
	}
	return Dropped{
		What: text(l[0]), Dead: number(l[1]), Pending: number(l[2]), Retry: number(l[3]), Retrying: number(l[4]), Lag: number(l[5]),
	}, nil
}

// Seek moves a group to 0, $ or behind an id. what: moved, pending, missing, trimmed.
func Seek(ctx context.Context, r Runner, k keys.Group, to string) (what, position string, err error) {
	v, err := seekScript.run(ctx, r, []string{k.Main, k.Groups}, k.Group, to)
	l, err := seekScript.list(v, err, 2)
	if err != nil {
		return "", "", err
	}
	return text(l[0]), text(l[1]), nil
}

// Counted is what a count came to.
type Counted struct {
	N           int64
	Through     bool   // the end was reached
	First, Last string // with none: "", and where the count began
}

// Count counts the entries of a stream after an id and up to to ("+", an id, or "(" and an id), in one bounded step.
func Count(ctx context.Context, r Runner, stream, after, to string, most int) (Counted, error) {
	v, err := lagScript.run(ctx, r, []string{stream}, after, most, stepBytes, to)
	l, err := lagScript.list(v, err, 4)
	if err != nil {
		return Counted{}, err
	}
	return Counted{N: number(l[0]), Through: number(l[1]) == 1, First: text(l[2]), Last: text(l[3])}, nil
}
