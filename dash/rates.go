package dash

import (
	"time"

	"github.com/xstreamq/xstreamq"
)

// counted is what rates are made of.
type counted struct {
	at         time.Time
	held, done int64
	complete   bool // held is known
}

// rateOver is how many samples back a rate looks: workers write their totals once a second, which a shorter look would show
// as leaps.
const rateOver = 5

// rates are what a group was given and what it finished a second, lately; nil where that is not known.
// What came in is what it holds more than before and what it finished: nothing counts publishes. A purge or a seek makes
// that less than nothing: it counts as nothing.
func (s *sampler) rates(r xstreamq.Depth, at time.Time) (in, out *float64) {
	now := counted{at: at, held: r.Pending + r.Retry + r.Retrying + r.Dead, done: r.Totals.Processed, complete: r.Lag != nil}
	if r.Lag != nil {
		now.held += *r.Lag
	}
	past := s.last[r.GroupRef]
	if len(past) > 0 && now.done < past[len(past)-1].done { // made anew
		past = nil
	}
	if len(past) >= s.rateOver {
		past = append(past[:0], past[len(past)-s.rateOver:]...)
	}
	s.last[r.GroupRef] = append(past, now)
	if len(past) == 0 {
		return nil, nil
	}
	before := past[0]
	took := at.Sub(before.at).Seconds()
	if took <= 0 {
		return nil, nil
	}
	done := float64(now.done - before.done)
	rate := done / took
	out = &rate
	if now.complete && before.complete {
		given := max(0, float64(now.held-before.held)+done) / took
		in = &given
	}
	return in, out
}
