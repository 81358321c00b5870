package xstreamq

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// Totals counts what became of a group's deliveries since the group was made; Delete ends it. A rate is the difference of
// two reads over the time between them. Workers add to the totals once a second and when they stop, so that they are a
// second old, and a worker that dies takes along what it had counted since.
type Totals struct {
	Processed int64 `json:"processed"` // handled with success
	Failed    int64 `json:"failed"`    // attempts that failed, those that ended in a dead letter too
	Dead      int64 `json:"dead"`      // dead letters made, redriven and purged ones too
}

// Totals reads the group's totals. Errors: ErrNotFound.
func (g *GroupAdmin) Totals(ctx context.Context) (Totals, error) {
	k, err := g.mustExist(ctx, "totals")
	if err != nil {
		return Totals{}, err
	}
	cmd := askTotals(ctx, g.c.rdb, k)
	if err := cmd.Err(); err != nil {
		return Totals{}, serverError(g.op("totals"), keyError(k.Meta, err))
	}
	return readTotals(cmd.Val()), nil
}

func askTotals(ctx context.Context, on redis.Cmdable, k keys.Group) *redis.SliceCmd {
	return on.HMGet(ctx, k.Meta, "processed", "failed", "dead")
}

func readTotals(v []any) Totals {
	var n [3]int64
	for i, x := range v {
		text, _ := x.(string)                    // absent: nothing counted yet
		n[i], _ = strconv.ParseInt(text, 10, 64) // made no number by hand: it counts no further
	}
	return Totals{n[0], n[1], n[2]}
}
