package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/lua"
)

// Compaction is what a compaction did, or would do.
type Compaction struct {
	Removed int64      // entries
	Floor   string     // entries below this id are needed by nobody; "" = nothing may be removed
	HeldBy  []GroupRef // the groups that still need the entry there; a recorded group that Redis lost forbids all
}

// dryRunMost bounds what a dry run counts.
const dryRunMost = 100_000

// Compact trims what every group, foreign ones too, is done with, as far as the stream's retention allows. Workers do it by
// themselves; this is for streams that have none, and does not wait until new groups have settled. A dry run counts what
// lies below the floor, up to 100,000 entries; a compaction may also remove some above it.
func (s *StreamAdmin) Compact(ctx context.Context, dryRun bool) (Compaction, error) {
	op := "admin: compact of " + s.name
	k, _, err := s.mustExist(ctx, "admin: compact")
	if err != nil {
		return Compaction{}, err
	}
	var out Compaction
	for {
		step, err := lua.Compact(ctx, s.c.rdb, k, dryRun, true)
		if err != nil {
			return out, serverError(op, err)
		}
		out.Removed += step.Removed
		out.Floor, out.HeldBy = step.Floor, nil
		for _, name := range step.HeldBy {
			out.HeldBy = append(out.HeldBy, GroupRef{s.name, name})
		}
		if dryRun || step.State != lua.CompactOK || !step.More {
			break
		}
	}
	if out.Floor == "" {
		return out, nil
	}
	if dryRun {
		below, err := s.c.countRange(ctx, k.Main, "0-0", "("+out.Floor, dryRunMost)
		if err != nil {
			return out, serverError(op, err)
		}
		out.Removed = below.N
	}
	// A floor behind the last entry is needed by nobody yet.
	at, err := s.c.rdb.Do(ctx, "xrange", k.Main, out.Floor, "+", "count", 1).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return out, serverError(op, err)
	}
	if len(storedEntries(at)) == 0 {
		out.HeldBy = nil
	}
	return out, nil
}

// Retention is how long entries stay after every group is done with them: 0 = not at all, -1 = for ever.
func (s *StreamAdmin) Retention(ctx context.Context) (time.Duration, error) {
	k, _, err := s.mustExist(ctx, "admin: retention")
	if err != nil {
		return 0, err
	}
	retain, err := s.c.rdb.HGet(ctx, k.Meta, "retain").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, serverError("admin: retention of "+s.name, keyError(k.Meta, err))
	}
	switch retain {
	case "":
		return 0, nil
	case "forever":
		return -1, nil
	}
	ms, err := strconv.ParseInt(retain, 10, 64)
	if err != nil || ms < 0 {
		return 0, fmt.Errorf("admin: retention of %s: %q is stored, neither a number of milliseconds nor forever", s.name, retain)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// SetRetention stores it with the stream: at least 1 ms, 0 = none, negative = for ever. Workers with a Retain of their own
// write theirs when they start. Errors: ErrInvalidOption.
func (s *StreamAdmin) SetRetention(ctx context.Context, d time.Duration) error {
	if d > 0 && d < time.Millisecond {
		return invalid("SetRetention", d, "0 (none), at least 1ms, or a negative one (for ever)")
	}
	k, _, err := s.mustExist(ctx, "admin: set retention")
	if err != nil {
		return err
	}
	retain := "forever"
	if d >= 0 {
		retain = strconv.FormatInt(d.Milliseconds(), 10)
	}
	err = s.c.rdb.HSet(ctx, k.Meta, "retain", retain, "by", "admin").Err()
	return serverError("admin: set retention of "+s.name, err)
}
