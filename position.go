package xstreamq

import (
	"strconv"
	"time"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// Position is a place in a stream's history: Head, Tail, AtTime, AfterID.
type Position string

const (
	// Head is the oldest entry that is still there.
	Head Position = "0"
	// Tail is behind the newest entry: only what is published later.
	Tail Position = "$"
)

// AtTime is before the first message published at t or later, by the server's clock.
func AtTime(t time.Time) Position {
	ms := t.UnixMilli()
	if ms <= 0 {
		return Head
	}
	return Position(strconv.FormatInt(ms-1, 10) + "-18446744073709551615")
}

// AfterID is behind the entry with this id.
func AfterID(id string) Position { return Position(id) }

func (p Position) check() error {
	if p != Head && p != Tail && !wire.IsEntryID(string(p)) {
		return invalid("Position", string(p), "Head, Tail, AtTime, or AfterID with an entry id")
	}
	return nil
}
