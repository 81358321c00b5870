package lua

import (
	"context"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
)

var settleScript = load("settle")

// Sources of a delivery.
const (
	Main  = "m"
	Retry = "r"
)

// Verbs of a settlement.
const (
	Ack     = "ack"
	Fail    = "fail"
	Snooze  = "snooze"
	Bury    = "bury"
	Release = "release"
	Cut     = "cut"
)

// Settlement ends one delivery.
type Settlement struct {
	Verb, Source, EntryID string

	Delay  time.Duration // fail, snooze
	Limit  int           // fail: max retries, -1 = for ever; cut: most cuts
	Error  string        // fail, bury
	Reason string        // bury
	Counts bool          // bury: it is a failed attempt too
	Seen   string        // ack: the marker's key, "" = none
	TTL    time.Duration // ack: the marker's lifetime
	Packed string        // the fields, for an entry that was deleted meanwhile; "" at first
}

// Statuses of a settled delivery.
const (
	Acked    = "acked"
	Parked   = "parked"
	Released = "released"
	Dead     = "dead"
	Lost     = "lost"
	Gone     = "gone"
	Failed   = "error"
)

// Settled is what became of a delivery. Detail is the parked member or the error's text.
type Settled struct{ Status, Detail, Reason, DeadID string }

// Settle ends deliveries that consumer holds, each by itself. maxParked 0 = no cap.
func Settle(ctx context.Context, r Runner, k keys.Group, consumer string, maxParked int, list []Settlement) ([]Settled, error) {
	names := append(make([]string, 0, 5+len(list)), k.Main, k.Retry, k.Due, k.Parked, k.DLQ)
	args := append(make([]any, 0, 3+8*len(list)), k.Group, consumer, maxParked)
	for _, s := range list {
		marker, limit, extra := 0, s.Limit, s.Packed
		switch s.Verb {
		case Ack:
			if s.Seen != "" {
				names = append(names, s.Seen)
				marker = len(names) - 5
			}
			args = append(args, s.Verb, s.Source, s.EntryID, 0, 0, "", marker, s.TTL.Milliseconds())
			continue
		case Bury:
			limit, extra = 0, s.Reason+" "+s.Packed
			if s.Counts {
				limit = 1
			}
		}
		args = append(args, s.Verb, s.Source, s.EntryID, s.Delay.Milliseconds(), limit, s.Error, 0, extra)
	}
	v, err := settleScript.run(ctx, r, names, args...)
	l, err := settleScript.list(v, err, len(list))
	if err != nil {
		return nil, err
	}
	out := make([]Settled, len(list))
	for i := range out {
		out[i] = parseSettled(text(l[i]))
	}
	return out, nil
}

func parseSettled(line string) Settled {
	status, detail, _ := strings.Cut(line, " ")
	s := Settled{Status: status, Detail: detail}
	if status == Dead {
		s.Reason, s.DeadID, _ = strings.Cut(detail, " ")
	}
	return s
}
