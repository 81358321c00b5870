package lua

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
)

var (
	registerScript  = load("register")
	heartbeatScript = load("heartbeat")
	armScript       = load("arm")
	tickScript      = load("tick")
	removeScript    = load("remove")
)

// Register writes a consumer's lease record; false when the name is known already.
func Register(ctx context.Context, r Runner, k keys.Group, consumer string, visibility time.Duration, version string) (bool, error) {
	v, err := registerScript.run(ctx, r, []string{k.Workers, k.Meta}, consumer, visibility.Milliseconds(), version)
	return text(v) == "ok", err
}

// Heartbeat renews a consumer's lease on one key alone; false = gone.
func Heartbeat(ctx context.Context, r Runner, k keys.Group, consumer string) (bool, error) {
	v, err := heartbeatScript.run(ctx, r, []string{k.Workers}, consumer)
	return text(v) == "ok", err
}

// Arm names the suspect that consumer is about to run alone; false = gone.
func Arm(ctx context.Context, r Runner, k keys.Group, consumer, entryID string) (bool, error) {
	v, err := armScript.run(ctx, r, []string{k.Workers}, consumer, entryID)
	return text(v) == "ok", err
}

// States of a group that a tick sees.
const (
	StateOK       = "ok"
	StateNoStream = "no-stream"
	StateNoGroup  = "no-group"
	StateNoRetry  = "no-retry"
	StateRemoved  = "removed"
)

// Look is what a tick saw.
type Look struct {
	Beat            string // ok, gone, or none without a consumer
	Now             time.Time
	LeastVisibility time.Duration // over the live consumers of the group; 0 = none
	Paused          string        // the pause flag's text, "" = not paused
	State           string
	Due, Delayed    int64     // parked entries due now: the group's, the stream's
	Compacted       time.Time // zero = never
	Dead            []string  // consumers marked dead and not yet emptied
}

// Totals are counts since the group was made, or what is to be added to them.
type Totals struct{ Processed, Failed, Dead int64 }

// Tick renews the lease of consumer ("" = none), looks at the group, sweeps when that is due, and adds to its totals.
func Tick(ctx context.Context, r Runner, k keys.Group, consumer string, interval time.Duration, add Totals) (Look, error) {
	v, err := tickScript.run(ctx, r, []string{
		k.Main, k.Retry, k.Workers, k.Paused, k.Groups, k.Meta, k.Due, k.Stream.Due, k.Stream.Meta, k.Parked, k.Stream.Parked,
	}, k.Group, consumer, interval.Milliseconds(), add.Processed, add.Failed, add.Dead)
	l, err := tickScript.list(v, err, 8)
	if err != nil {
		return Look{}, err
	}
	look := Look{
		Beat: text(l[0]), Now: millis(text(l[1])), LeastVisibility: time.Duration(atoi(text(l[2]))) * time.Millisecond,
		Paused: text(l[3]), State: text(l[4]), Due: number(l[5]), Delayed: number(l[6]), Dead: texts(l[8:]),
	}
	if ms := atoi(text(l[7])); ms > 0 {
		look.Compacted = time.UnixMilli(ms)
	}
	return look, nil
}

// Remove takes a consumer out of the group when it holds nothing; else it returns how many entries it holds.
func Remove(ctx context.Context, r Runner, k keys.Group, consumer string) (held int64, err error) {
	v, err := removeScript.run(ctx, r, []string{k.Main, k.Retry, k.Workers}, k.Group, consumer)
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, fmt.Errorf("script remove: unknown reply %v", v)
	}
	return n, nil
}

func atoi(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

func millis(s string) time.Time { return time.UnixMilli(atoi(s)) }
