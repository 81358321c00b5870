package engine

import "time"

// buffer holds what was read and not started: two queues, retries first.
type buffer struct{ retries, mains queue }

type queue struct {
	list []*Run
	head int
}

func (q *queue) len() int { return len(q.list) - q.head }

func (q *queue) push(r *Run) {
	if q.head > 64 && q.head > len(q.list)/2 || q.head == len(q.list) { // a backlog never lets it run empty
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, r)
}

func (q *queue) front() *Run {
	if q.len() == 0 {
		return nil
	}
	return q.list[q.head]
}

func (q *queue) pop() {
	q.list[q.head] = nil
	q.head++
}

// take removes and returns what f picks.
func (q *queue) take(f func(*Run) bool) (out []*Run) {
	kept := make([]*Run, 0, q.len())
	for _, r := range q.list[q.head:] {
		if f(r) {
			out = append(out, r)
		} else {
			kept = append(kept, r)
		}
	}
	q.list, q.head = kept, 0
	return out
}

func (b *buffer) len() int { return b.retries.len() + b.mains.len() }

func (b *buffer) push(r *Run) {
	if r.Source == sourceRetry {
		b.retries.push(r)
	} else {
		b.mains.push(r)
	}
}

func (b *buffer) front() (*Run, *queue) {
	if r := b.retries.front(); r != nil {
		return r, &b.retries
	}
	return b.mains.front(), &b.mains
}

// oldest is when the first of what it holds was read.
func (b *buffer) oldest() (t time.Time) {
	for _, q := range []*queue{&b.retries, &b.mains} {
		if r := q.front(); r != nil && (t.IsZero() || r.arrived.Before(t)) {
			t = r.arrived
		}
	}
	return t
}

func (b *buffer) take(f func(*Run) bool) []*Run {
	if b.len() == 0 {
		return nil
	}
	return append(b.retries.take(f), b.mains.take(f)...)
}

func (b *buffer) takeAll() []*Run { return b.take(func(*Run) bool { return true }) }

// takeOld removes what has waited since before t, but for kept.
func (b *buffer) takeOld(t time.Time, kept *Run) []*Run {
	old := func(r *Run) bool { return r != nil && r != kept && r.arrived.Before(t) }
	if kept != nil || old(b.retries.front()) || old(b.mains.front()) {
		return b.take(old)
	}
	return nil
}
