package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// Bulk bounds and watches a bulk operation; the zero value is "all, as fast as is polite, now".
type Bulk struct {
	Limit  int     // at most so many are done; 0 = all
	Rate   float64 // at most so many a second, evenly: 0.001 to 1,000,000; 0 = no limit
	DryRun bool    // nothing is done, only counted
	// ToStream publishes anew, for every group of the stream. RedriveAll only.
	ToStream bool
	// Progress is called after each batch. matched is how many are known to match: all of them from the start where the
	// filter takes everything, else those found so far.
	Progress func(done, matched int)
}

func (b Bulk) check() error {
	if b.Limit < 0 {
		return invalid("Bulk.Limit", b.Limit, "0 (all) or more")
	}
	if b.Rate != 0 && !(b.Rate >= 0.001 && b.Rate <= 1e6) { // written so that NaN is refused too
		return invalid("Bulk.Rate", b.Rate, "0 (no limit), or 0.001 to 1,000,000 a second")
	}
	return nil
}

// BulkResult is what came of a bulk operation, also beside an error: then it stands for what was done before that.
type BulkResult struct {
	Done         int      // redriven or purged; with DryRun, that would be
	Remaining    int      // dead letters of the group that are left, matching or not
	Unredrivable []string // entry ids of those that match and have no body; they stay
}

// One batch is one script: as many dead letters and bytes as it may handle, but no more than a tenth of a second's share.
const (
	bulkEntries = 100
	bulkBytes   = 256 << 10
)

// mover moves a batch of letters.
type mover func(ctx context.Context, k keys.Group, batch []letter) (done int, unredrivable []string, err error)

// bulkRun is one bulk operation under way.
type bulkRun struct {
	b       Bulk
	move    mover
	redrive bool
	k       keys.Group
	known   int // match in all, when that is known
	most    int // letters in a batch
	batch   []letter
	bytes   int
	matched int
	next    time.Time
	res     BulkResult
}

// errEnough ends a walk whose limit is reached.
var errEnough = errors.New("limit reached")

// RedriveAll puts back what matches now, oldest first, not what dies meanwhile. Killed and run again it goes on where it
// was. One that has no body stays and is named. Errors: ErrInvalidOption, and ErrNotFound when the group was removed.
func (g *GroupAdmin) RedriveAll(ctx context.Context, f Filter, b Bulk) (BulkResult, error) {
	return g.bulk(ctx, "redrive", f, &bulkRun{b: b, redrive: true, move: func(ctx context.Context, k keys.Group, batch []letter) (int, []string, error) {
		letters := make([]lua.Letter, len(batch))
		for i, l := range batch {
			letters[i] = lua.Letter{EntryID: l.EntryID, ID: l.ID}
		}
		res, err := lua.Redrive(ctx, g.c.rdb, k, letters, b.ToStream, nil)
		if err != nil {
			return 0, nil, g.redriveError(err)
		}
		done := 0
		var left []string
		for i, r := range res {
			switch r.Status {
			case lua.Moved:
				done++
			case lua.Unredrivable:
				left = append(left, batch[i].EntryID)
			case lua.Gone:
			default:
				if err == nil {
					err = serverError(g.op("redrive")+": dead letter "+batch[i].EntryID, conn.Said(r.Detail))
				}
			}
		}
		return done, left, err
	}})
}

// PurgeAll deletes what matches now, for good, oldest first, not what dies meanwhile. Killed and run again it goes on where
// it was. Errors: ErrNoFilter when nothing is given, not even Filter.All; ErrInvalidOption.
func (g *GroupAdmin) PurgeAll(ctx context.Context, f Filter, b Bulk) (BulkResult, error) {
	if f.empty() && !f.All {
		return BulkResult{}, fmt.Errorf("%s: %w: Filter.All deletes every dead letter", g.op("purge"), ErrNoFilter)
	}
	if b.ToStream {
		return BulkResult{}, invalid("Bulk.ToStream", true, "RedriveAll")
	}
	return g.bulk(ctx, "purge", f, &bulkRun{b: b, move: func(ctx context.Context, k keys.Group, batch []letter) (int, []string, error) {
		letters := make([]lua.Letter, len(batch))
		for i, l := range batch {
			letters[i] = lua.Letter{EntryID: l.EntryID, ID: l.ID, DedupeID: l.did}
		}
		n, err := lua.Purge(ctx, g.c.rdb, k, letters)
		return int(n), nil, serverError(g.op("purge"), err)
	}})
}

func (g *GroupAdmin) bulk(ctx context.Context, op string, f Filter, r *bulkRun) (BulkResult, error) {
	if err := r.b.check(); err != nil {
		return BulkResult{}, err
	}
	r.most = bulkEntries
	if r.b.Rate > 0 {
		r.most = int(min(bulkEntries, max(1, math.Ceil(r.b.Rate/10))))
	}
	k, err := g.c.groupKeys(g.stream, g.group)
	if err != nil {
		return BulkResult{}, err
	}
	r.k = k
	if f.empty() && r.b.Progress != nil {
		n, err := g.c.rdb.XLen(ctx, k.DLQ).Result()
		if err != nil {
			return BulkResult{}, serverError(g.op(op), keyError(k.DLQ, err))
		}
		r.known = int(n)
		if r.b.Limit > 0 {
			r.known = min(r.known, r.b.Limit)
		}
	}
	err = g.eachLetter(ctx, op, f, func(l letter) error { return r.take(ctx, l) })
	if err == nil {
		err = r.flush(ctx)
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil && ctx.Err() != nil {
		return r.res, err // no answer would come
	}
	left, lenErr := g.c.rdb.XLen(ctx, k.DLQ).Result()
	r.res.Remaining = int(left)
	if err == nil && lenErr != nil {
		err = serverError(g.op(op), keyError(k.DLQ, lenErr))
	}
	return r.res, err
}

// take adds a letter that matches to the batch, and moves the batch when it is full.
func (r *bulkRun) take(ctx context.Context, l letter) error {
	r.matched++
	if r.redrive && !l.redrivable {
		r.res.Unredrivable = append(r.res.Unredrivable, l.EntryID)
		return nil
	}
	r.batch = append(r.batch, l)
	r.bytes += l.size
	most := r.most
	if r.b.Limit > 0 {
		most = min(most, r.b.Limit-r.res.Done)
	}
	if len(r.batch) < most && r.bytes < bulkBytes {
		return nil
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	if r.b.Limit > 0 && r.res.Done >= r.b.Limit {
		return errEnough
	}
	return nil
}

func (r *bulkRun) flush(ctx context.Context) error {
	n := len(r.batch)
	if n == 0 {
		return nil
	}
	done, err := n, error(nil)
	if !r.b.DryRun {
		if err := r.pace(ctx, n); err != nil {
			return err
		}
		var left []string
		done, left, err = r.move(ctx, r.k, r.batch)
		r.res.Unredrivable = append(r.res.Unredrivable, left...)
	}
	r.res.Done += done
	r.batch, r.bytes = r.batch[:0], 0
	if r.b.Progress != nil && err == nil {
		r.b.Progress(r.res.Done, max(r.known, r.matched))
	}
	return err
}

// pace waits until the share of the batches before is over. A stall is not caught up on, only what timers are late.
func (r *bulkRun) pace(ctx context.Context, n int) error {
	if r.b.Rate == 0 {
		return ctx.Err()
	}
	if wait := time.Until(r.next); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("admin: bulk operation: %w", ctx.Err())
		}
	}
	if now := time.Now(); now.Sub(r.next) > 100*time.Millisecond {
		r.next = now
	}
	r.next = r.next.Add(time.Duration(float64(n) / r.b.Rate * float64(time.Second)))
	return nil
}
