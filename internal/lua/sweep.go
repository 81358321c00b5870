package lua

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
)

var (
	reclaimScript = load("reclaim")
	promoteScript = load("promote")
	janitorScript = load("janitor")
	compactScript = load("compact")
)

// Bounds of one script's work: entries and bytes, at least one entry.
const (
	stepEntries = 100
	stepBytes   = 256 << 10
)

// Burial is a dead letter that a sweep made.
type Burial struct{ Reason, DeadID, Source string }

// Reclaimed is what one step of emptying a dead consumer did.
type Reclaimed struct {
	Next    string // where the next step goes on; "" = that was all
	Moved   int64
	Deleted []string // pending entries that others had deleted
	Dead    []Burial
	Errors  []string // what could not be moved and stays
}

// Reclaim takes over, in one bounded step, what a consumer marked dead holds. from is "" or the Next of the step before.
// Suspects wait a random part of a delay that doubles from first up to most.
func Reclaim(ctx context.Context, r Runner, k keys.Group, owner, from string, maxLost int, first, most time.Duration) (Reclaimed, error) {
	args := append(make([]any, 0, 8+stepEntries), k.Group, owner, maxLost, stepEntries, stepBytes, first.Milliseconds(), most.Milliseconds(), from)
	for range stepEntries {
		args = append(args, rand.IntN(1_000_000)) //nolint:gosec // jitter
	}
	v, err := reclaimScript.run(ctx, r, []string{k.Main, k.Retry, k.Due, k.Parked, k.DLQ, k.Workers}, args...)
	l, err := reclaimScript.list(v, err, 3)
	if err != nil {
		return Reclaimed{}, err
	}
	out := Reclaimed{Next: text(l[0]), Moved: number(l[1])}
	for _, line := range texts(l[3:]) {
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "deleted":
			out.Deleted = append(out.Deleted, rest)
		case "dead":
			out.Dead = append(out.Dead, burial(rest))
		default:
			out.Errors = append(out.Errors, rest)
		}
	}
	return out, nil
}

func burial(s string) Burial {
	reason, rest, _ := strings.Cut(s, " ")
	id, source, _ := strings.Cut(rest, " ")
	return Burial{Reason: reason, DeadID: id, Source: source}
}

// Promoted is what one step of promotion did.
type Promoted struct {
	Moved, Missing int64 // Missing: members whose value is gone
	More           bool
	Mismatch       bool // members and values disagree in number: the janitor's work
	Dead           []Burial
	Errors         []string
}

// PromoteRetries moves the group's due retries to its retry stream.
func PromoteRetries(ctx context.Context, r Runner, k keys.Group) (Promoted, error) {
	return promote(ctx, r, []string{k.Due, k.Parked, k.Retry, k.DLQ, k.Meta}, k.Group)
}

// PromoteDelayed moves the stream's due delayed messages to the stream.
func PromoteDelayed(ctx context.Context, r Runner, k keys.Group) (Promoted, error) {
	return promote(ctx, r, []string{k.Stream.Due, k.Stream.Parked, k.Main, k.DLQ, k.Meta}, "")
}

func promote(ctx context.Context, r Runner, names []string, group string) (Promoted, error) {
	v, err := promoteScript.run(ctx, r, names, group, stepEntries, stepBytes)
	l, err := promoteScript.list(v, err, 4)
	if err != nil {
		return Promoted{}, err
	}
	out := Promoted{Moved: number(l[0]), Missing: number(l[1]), More: number(l[2]) == 1, Mismatch: number(l[3]) == 1}
	for _, line := range texts(l[4:]) {
		verb, rest, _ := strings.Cut(line, " ")
		if verb == "dead" {
			out.Dead = append(out.Dead, burial(rest))
		} else {
			out.Errors = append(out.Errors, rest)
		}
	}
	if out.Moved+out.Missing+int64(len(out.Dead)) == 0 {
		out.More = false
	}
	return out, nil
}

// Orphans walks one step of a parked hash and makes due what no due time names. cursor "" or "0" begins; "0" comes back at
// the end.
func Orphans(ctx context.Context, r Runner, due, parked, cursor string) (next string, found int64, err error) {
	if cursor == "" {
		cursor = "0"
	}
	v, err := janitorScript.run(ctx, r, []string{due, parked}, cursor, stepEntries, stepBytes)
	l, err := janitorScript.list(v, err, 2)
	if err != nil {
		return "", 0, err
	}
	return text(l[0]), number(l[1]), nil
}

// States of a compaction.
const (
	CompactOK      = "ok"
	CompactNone    = "none"    // no stream or no group
	CompactYoung   = "young"   // a group was made less than 5 minutes ago
	CompactForever = "forever" // retention keeps everything
	CompactMissing = "missing" // a recorded group is missing: HeldBy
)

// Compacted is what one step of compaction did.
type Compacted struct {
	State   string
	Removed int64
	Floor   string // entries below it are needed by nobody
	More    bool
	HeldBy  []string // groups that need the entry at the floor
}

// Compact trims, in one bounded step, what every group is done with. dry only looks; now ignores how young the groups are.
func Compact(ctx context.Context, r Runner, k keys.Stream, dry, now bool) (Compacted, error) {
	mode, when := "", ""
	if dry {
		mode = "dry"
	}
	if now {
		when = "now"
	}
	v, err := compactScript.run(ctx, r, []string{k.Main, k.Groups, k.Meta}, 2000, mode, when)
	l, err := compactScript.list(v, err, 4)
	if err != nil {
		return Compacted{}, err
	}
	return Compacted{State: text(l[0]), Removed: number(l[1]), Floor: text(l[2]), More: number(l[3]) == 1, HeldBy: texts(l[4:])}, nil
}
