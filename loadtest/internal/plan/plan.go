// Package plan says beforehand what becomes of every message of a run: which attempts fail is a pure function of seed,
// message number and attempt, so the dead letters are known before the first publish.
package plan

import (
	"fmt"
	"strings"
	"time"
)

// Plan is shared by producer, workers and the judge. The zero value never fails.
type Plan struct {
	Seed       uint64
	Fail       int // percent of the attempts that fail
	MaxRetries int
	MaxWork    time.Duration // of one handler run; even over 0 to this
}

// Task is a message's body.
type Task struct {
	Seq int64  `json:"seq"`
	Pad string `json:"pad"`
}

// Kinds of draws: each has its own stream of numbers.
const (
	drawFail = iota + 1
	drawWork
	drawPanic
	drawPad
)

// draw is a number that depends on nothing but its arguments (the finish of splitmix64, twice).
func (p Plan) draw(kind, seq, attempt uint64) uint64 {
	mix := func(x uint64) uint64 {
		x ^= x >> 30
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 27
		x *= 0x94d049bb133111eb
		return x ^ x>>31
	}
	return mix(mix(p.Seed+seq*0x9e3779b97f4a7c15) + attempt*0xd1b54a32d192ed03 + kind*0x8cb92ba72f3d8dd7)
}

// Fails says whether this attempt (1 = the first) fails.
func (p Plan) Fails(seq int64, attempt int) bool {
	return int(p.draw(drawFail, uint64(seq), uint64(attempt))%100) < p.Fail
}

// Panics says whether a failing attempt does so by a panic: one in eight.
func (p Plan) Panics(seq int64, attempt int) bool {
	return p.draw(drawPanic, uint64(seq), uint64(attempt))%8 == 0
}

// Attempts is how many attempts the message takes: up to the first that succeeds, or all that it has.
func (p Plan) Attempts(seq int64) int {
	for attempt := 1; attempt <= p.MaxRetries; attempt++ {
		if !p.Fails(seq, attempt) {
			return attempt
		}
	}
	return p.MaxRetries + 1
}

// Dead says whether the message ends as a dead letter.
func (p Plan) Dead(seq int64) bool {
	return p.Fails(seq, p.Attempts(seq))
}

// Work is how long this attempt's handler takes.
func (p Plan) Work(seq int64, attempt int) time.Duration {
	if p.MaxWork <= 0 {
		return 0
	}
	return time.Duration(p.draw(drawWork, uint64(seq), uint64(attempt)) % uint64(p.MaxWork))
}

// Body is the message's body, 60 to 190 bytes of JSON.
func (p Plan) Body(seq int64) string {
	n := p.draw(drawPad, uint64(seq), 0)
	return fmt.Sprintf(`{"seq":%d,"pad":"%016x%s"}`, seq, n, strings.Repeat("0123456789abcdef", int(n%9)+1))
}

// Fields are the entry's fields in their order: what a producer of any language may send, with headers and an own field of
// arbitrary bytes that the library knows nothing of.
func (p Plan) Fields(seq int64) []string {
	n := p.draw(drawPad, uint64(seq), 1)
	own := make([]byte, 8, 12)
	for i := range own {
		own[i] = byte(n >> (8 * i))
	}
	return []string{"body", p.Body(seq), "headers", fmt.Sprintf(`{"n":"%d"}`, seq), "own", string(append(own, 0, 0xff, '\r', '\n'))}
}
