package lua

import (
	"context"
	"strconv"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
)

var (
	publishScript = load("publish")
	groupScript   = load("group")
)

// Publication is a publish that needs a script.
type Publication struct {
	DedupeID string
	Window   time.Duration // of DedupeID
	Delay    time.Duration
	At       time.Time // instead of Delay
	Random   string    // 16 hex digits, part of a delayed message's id
	Wait     bool      // a WAIT follows on the same connection
	Fields   []string
}

// Publish stores a delayed or deduplicated message and returns its stable id.
func Publish(ctx context.Context, r Runner, k keys.Stream, p Publication) (id string, duplicate bool, err error) {
	sent, window, at := k.Main, "", ""
	if p.DedupeID != "" {
		sent, window = k.Sent(p.DedupeID), strconv.FormatInt(p.Window.Milliseconds(), 10)
	}
	if !p.At.IsZero() {
		at = strconv.FormatInt(p.At.UnixMilli(), 10)
	}
	wait := ""
	if p.Wait {
		wait = "1"
	}
	args := make([]any, 0, 5+len(p.Fields))
	args = append(args, window, p.Delay.Milliseconds(), at, p.Random, wait)
	for _, f := range p.Fields {
		args = append(args, f)
	}
	v, err := publishScript.run(ctx, r, []string{k.Main, k.Due, k.Parked, sent}, args...)
	l, err := publishScript.list(v, err, 2)
	if err != nil {
		return "", false, err
	}
	return text(l[0]), number(l[1]) == 1, nil
}

// Reasons to make a group.
const (
	GroupStart  = "start"  // a subscription begins
	GroupAgain  = "again"  // a running subscription misses it
	GroupCreate = "create" // an operator reserves a backlog
)

// What making a group came to.
const (
	GroupExists       = "exists"
	GroupCreated      = "created"
	GroupRemade       = "remade"
	GroupAfterRemoval = "after-removal"
	GroupRemoved      = "removed"
)

// Format is the major version of what is stored.
const Format = 1

// EnsureGroup makes sure that the group exists and is recorded. retain is in ms, "forever", or "" to leave it as it is.
func EnsureGroup(ctx context.Context, r Runner, k keys.Group, from, why, retain string) (what, position string, err error) {
	v, err := groupScript.run(ctx, r, []string{k.Main, k.Retry, k.Groups, k.Stream.Meta}, k.Group, from, why, Format, retain)
	l, err := groupScript.list(v, err, 2)
	if err != nil {
		return "", "", err
	}
	return text(l[0]), text(l[1]), nil
}
