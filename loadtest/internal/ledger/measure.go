package ledger

import (
	"slices"
	"time"
)

// Times is a distribution.
type Times struct {
	Count         int
	P50, P99, Max time.Duration
}

// Distribution sorts the list.
func Distribution(list []time.Duration) Times {
	if len(list) == 0 {
		return Times{}
	}
	slices.Sort(list)
	at := func(share float64) time.Duration { return list[int(share*float64(len(list)-1))] }
	return Times{Count: len(list), P50: at(0.5), P99: at(0.99), Max: list[len(list)-1]}
}

// Latency is from sending to the first handler's start, of messages sent in that span.
func (b *Book) Latency(s Span) Times {
	var list []time.Duration
	for _, m := range b.Messages {
		if m.Sent == 0 || !s.holds(m.Sent) || len(m.Runs) == 0 {
			continue
		}
		list = append(list, time.Duration(slices.MinFunc(m.Runs, func(x, y *Run) int { return int(x.Start - y.Start) }).Start-m.Sent))
	}
	return Distribution(list)
}

// Orphan is a delivery that its worker's death cut off, and how long it took until a handler had it again.
type Orphan struct {
	Seq  int64
	Lost int // leases lost in a row by then
	Took time.Duration
}

// Orphans are the deliveries that a worker, dead at that time, had not settled, and that came back. A run that was through is
// among them when it came back: its ack was lost.
func (b *Book) Orphans(worker string, at int64) (list []Orphan) {
	for _, r := range b.Workers[worker] {
		if r.Settled != "" {
			continue
		}
		var next *Run
		for _, o := range b.Messages[r.Seq].Runs {
			if o.Start > at && (next == nil || o.Start < next.Start) {
				next = o
			}
		}
		if next != nil {
			list = append(list, Orphan{Seq: r.Seq, Lost: next.Lost, Took: time.Duration(next.Start - at)})
		}
	}
	return list
}

// Again is how many messages a worker had done when it died, without being told that the ack arrived, and that were done once
// more.
func (b *Book) Again(worker string) (n int) {
	for _, r := range b.Workers[worker] {
		if r.Settled == "" && r.Outcome == OK && slices.ContainsFunc(b.Messages[r.Seq].Runs, func(o *Run) bool { return o.Start > r.End && o.Outcome == OK }) {
			n++
		}
	}
	return n
}
