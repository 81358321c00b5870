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

// FindParked looks for a stable id in a hash of parked values, among members that match a pattern, in one bounded step. cursor
// "" begins; next "" says that all was looked at.
func FindParked(ctx context.Context, r Runner, parked, id, cursor, match string, most int) (member, next string, err error) {
	if cursor == "" {
		cursor = "0"
	}
	v, err := findScript.run(ctx, r, []string{parked}, id, cursor, most, stepBytes, match)
	l, err := findScript.list(v, err, 2)
	if err != nil {
		return "", "", err
	}
	return text(l[0]), text(l[1]), nil
}
