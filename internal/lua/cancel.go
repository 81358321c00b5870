package lua

import (
	"context"

	"github.com/xstreamq/xstreamq/internal/keys"
)

var (
	cancelScript = load("cancel")
	findScript   = load("find")
)

// Cancel takes a delayed message back and frees the dedupe id it was published with ("" = none); false when it is not there.
func Cancel(ctx context.Context, r Runner, k keys.Stream, id, dedupeID string) (bool, error) {
	sent := k.Parked
	if dedupeID != "" {
		sent = k.Sent(dedupeID)
	}
	v, err := cancelScript.run(ctx, r, []string{k.Due, k.Parked, sent}, id)
	return number(v) == 1, err
}

// FindEntry looks for a stable id in a stream, in one bounded step. from "" begins; next "" says that all was looked at.
func FindEntry(ctx context.Context, r Runner, stream, id, from string, most int) (entryID, next string, err error) {
	if from == "" {
		from = "0-0"
	}
	return find(ctx, r, stream, id, from, most, "")
}

// FindParked is FindEntry for a hash of parked values: it finds the member, of those that match a pattern.
func FindParked(ctx context.Context, r Runner, parked, id, cursor, match string, most int) (member, next string, err error) {
	if cursor == "" {
		cursor = "0"
	}
	return find(ctx, r, parked, id, cursor, most, match)
}

func find(ctx context.Context, r Runner, key, id, from string, most int, match string) (name, next string, err error) {
	v, err := findScript.run(ctx, r, []string{key}, id, from, most, stepBytes, match)
	l, err := findScript.list(v, err, 2)
	if err != nil {
		return "", "", err
	}
	return text(l[0]), text(l[1]), nil
}
