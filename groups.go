package xstreamq

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// position checks where a group is to stand; AfterID may name a message in the stream by its stable id, too.
func (g *GroupAdmin) position(ctx context.Context, op string, p Position) (string, error) {
	if p.check() == nil {
		return string(p), nil
	}
	k, err := g.c.streamKeys(g.stream)
	if err != nil {
		return "", err
	}
	if wire.Time(string(p)).IsZero() { // not even the form of one of our ids
		return "", p.check()
	}
	left := searchMost
	id, err := g.c.findEntry(ctx, k.Main, string(p), &left)
	if err != nil {
		return "", serverError(g.op(op), err)
	}
	if id == "" {
		return "", fmt.Errorf("%s: message %q in the stream: %w", g.op(op), p, ErrNotFound)
	}
	return id, nil
}

// Create reserves a backlog for a consumer that comes later: from then on the stream keeps what the group has not handled.
// It makes the stream where there is none; a group that exists is left where it stands, and answers false. Errors:
// ErrInvalidOption, ErrFormat; ErrNotFound when from is AfterID of a message that is not in the stream.
func (g *GroupAdmin) Create(ctx context.Context, from Position) (created bool, err error) {
	k, err := g.c.groupKeys(g.stream, g.group)
	if err != nil {
		return false, err
	}
	at, err := g.position(ctx, "create", from)
	if err != nil {
		return false, err
	}
	what, _, err := lua.EnsureGroup(ctx, g.c.rdb, k, at, lua.GroupCreate, "")
	if err != nil {
		return false, serverError(g.op("create"), err)
	}
	created = what != lua.GroupExists
	if err := g.c.rdb.SAdd(ctx, k.Registry(), k.Member(""), k.Member(k.Group)).Err(); err != nil {
		return created, serverError(g.op("create")+": registry", err)
	}
	return created, nil
}

// Delete removes a group with its retry stream and its parked messages. Its running subscriptions end with ErrGroupRemoved.
// Errors: ErrNotEmpty while it holds anything, with force only while it has dead letters: those are never deleted by this.
// ErrNotFound also takes the group out of the registry.
func (g *GroupAdmin) Delete(ctx context.Context, force bool) error {
	k, err := g.c.groupKeys(g.stream, g.group)
	if err != nil {
		return err
	}
	res, err := lua.Drop(ctx, g.c.rdb, k, force)
	if err != nil {
		return serverError(g.op("delete"), err)
	}
	switch res.What {
	case "held":
		lag := "none"
		if res.Lag > 0 {
			lag = "some"
		}
		return fmt.Errorf("%s: %w: %d dead, %d pending, %d due for a retry, %d retrying, %s unread", g.op("delete"), ErrNotEmpty,
			res.Dead, res.Pending, res.Retry, res.Retrying, lag)
	case "missing":
		err = fmt.Errorf("%s: group %w", g.op("delete"), ErrNotFound)
	}
	if gone := g.c.rdb.SRem(ctx, k.Registry(), k.Member(k.Group)).Err(); gone != nil && err == nil {
		err = serverError(g.op("delete")+": registry", gone)
	}
	return err
}

// Seek moves the group to another place in the stream's history: back, to handle it again, or forward, to leave it out.
// Retries, parked messages and dead letters stay. Errors: ErrNotEmpty while entries of the stream are in flight (pause,
// let it drain, seek, resume), ErrTrimmed where the history is gone, ErrInvalidOption; ErrNotFound as Create.
func (g *GroupAdmin) Seek(ctx context.Context, to Position) error {
	k, err := g.c.groupKeys(g.stream, g.group)
	if err != nil {
		return err
	}
	at, err := g.position(ctx, "seek", to)
	if err != nil {
		return err
	}
	what, first, err := lua.Seek(ctx, g.c.rdb, k, at)
	if err != nil {
		return serverError(g.op("seek"), err)
	}
	switch what {
	case "pending":
		return fmt.Errorf("%s: %w: entries of the stream are in flight; pause, let it drain, then seek", g.op("seek"), ErrNotEmpty)
	case "missing":
		return fmt.Errorf("%s: group %w", g.op("seek"), ErrNotFound)
	case "trimmed":
		if first == "" {
			first = "none"
		}
		return fmt.Errorf("%s: %w: %s; the oldest entry left is %s", g.op("seek"), ErrTrimmed, at, first)
	}
	return nil
}

// Pause is why a group is paused.
type Pause struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`          // by the server's clock
	Until  time.Time `json:"until,omitzero"` // zero: until Resume
}

// readPause reads what the pause key holds. What is none of ours pauses too: it is the reason, as it stands.
func readPause(flag string) *Pause {
	var p Pause
	if json.Unmarshal([]byte(flag), &p) != nil {
		return &Pause{Reason: flag}
	}
	return &p
}

// Pause stops the group's workers from reading, within about a second; handlers that run go on, and what fails is still
// parked. d is at least 1 ms, or 0: until Resume. A second Pause replaces the first. Errors: ErrInvalidOption.
func (g *GroupAdmin) Pause(ctx context.Context, reason string, d time.Duration) error {
	if d != 0 && d < time.Millisecond {
		return invalid("Pause", d, "0 (until Resume), or at least 1ms")
	}
	k, err := g.mustExist(ctx, "pause")
	if err != nil {
		return err
	}
	now, err := g.c.serverTime(ctx, k.Paused)
	if err != nil {
		return serverError(g.op("pause"), err)
	}
	flag := Pause{Reason: reason, Since: now.UTC()}
	if d > 0 {
		flag.Until = now.Add(d).UTC()
	}
	text, err := json.Marshal(flag)
	if err != nil {
		return err
	}
	args := []any{"set", k.Paused, text}
	if d > 0 {
		args = append(args, "px", d.Milliseconds())
	}
	return serverError(g.op("pause"), g.c.rdb.Do(ctx, args...).Err())
}

// Resume ends a pause; without one it does nothing.
func (g *GroupAdmin) Resume(ctx context.Context) error {
	k, err := g.mustExist(ctx, "resume")
	if err != nil {
		return err
	}
	return serverError(g.op("resume"), g.c.rdb.Del(ctx, k.Paused).Err())
}
