package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// groupLook is a group as Redis and the stream's record have it.
type groupLook struct {
	name     string
	there    bool   // on the stream
	recorded bool   // as alive
	last     string // last delivered; the recorded position when it is not there
	pending  int64
	lag      int64     // the server's word, -1 = none
	created  time.Time // as recorded, else zero

	consumers int64
	read      *int64 // nil: the server has none
}

// newGroupLook reads a row of XINFO GROUPS.
func newGroupLook(r infoRow) *groupLook {
	g := &groupLook{name: r.text("name"), there: true, last: r.text("last-delivered-id"), pending: r.number("pending", 0), lag: r.number("lag", -1)}
	if g.last == "0" { // the embedded server's way to say that nothing was delivered
		g.last = "0-0"
	}
	g.consumers = r.number("consumers", 0)
	if n := r.number("entries-read", -1); n >= 0 {
		g.read = &n
	} else if g.last == "0-0" {
		g.read = new(int64)
	}
	return g
}

// streamLook is a stream at one moment.
type streamLook struct {
	exists  bool // the key of the stream itself
	length  int64
	delayed int64
	groups  map[string]*groupLook
	head    string          // the oldest entry, once a lag was counted
	mark    lagMark         // the lag that was counted last
	gone    map[string]bool // groups that were removed
}

// empty says that nothing of the stream is there, but for dead letters that it cannot know of.
func (s *streamLook) empty() bool {
	if s.exists || s.delayed > 0 {
		return false
	}
	return len(s.groups) == 0
}

// lookCommands is what a look at a stream asks, in one pipeline. Bodies are never among the answers, so no XINFO STREAM.
type lookCommands struct {
	exists, length, delayed *redis.IntCmd
	groups                  *redis.Cmd
	recorded                *redis.MapStringStringCmd
	format                  *redis.StringCmd
}

func askLook(ctx context.Context, p redis.Pipeliner, k keys.Stream) lookCommands {
	a := lookCommands{
		exists: p.Exists(ctx, k.Main), length: p.XLen(ctx, k.Main), delayed: p.HLen(ctx, k.Parked),
		recorded: p.HGetAll(ctx, k.Groups), format: p.HGet(ctx, k.Meta, "format"),
	}
	a.groups = askXInfo(ctx, p, "groups", k.Main)
	return a
}

// askXInfo adds an XINFO whose key, in a cluster, is its second argument.
func askXInfo(ctx context.Context, p redis.Pipeliner, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, append([]any{"xinfo"}, args...)...)
	cmd.SetFirstKeyPos(2)
	_ = p.Process(ctx, cmd) // queued; the error comes with the answer
	return cmd
}

func (a lookCommands) read(k keys.Stream) (*streamLook, error) {
	for name, cmd := range map[string]redis.Cmder{k.Main: a.length, k.Parked: a.delayed, k.Groups: a.recorded} {
		if err := cmd.Err(); err != nil {
			return nil, keyError(name, err)
		}
	}
	if err := a.format.Err(); err != nil && !errors.Is(err, redis.Nil) {
		return nil, keyError(k.Meta, err)
	}
	if err := checkFormat(k, a.format.Val()); err != nil {
		return nil, err
	}
	s := &streamLook{
		exists: a.exists.Val() > 0, length: a.length.Val(), delayed: a.delayed.Val(),
		groups: map[string]*groupLook{}, gone: map[string]bool{},
	}
	rows, err := infoRows(a.groups)
	if err != nil {
		return nil, keyError(k.Main, err)
	}
	for _, r := range rows {
		g := newGroupLook(r)
		s.groups[g.name] = g
	}
	for name, mark := range a.recorded.Val() {
		position, created, _ := strings.Cut(mark, "|")
		g := s.groups[name]
		switch {
		case position == "x":
			s.gone[name] = g == nil
		case g != nil:
			g.recorded = true
		default:
			g = &groupLook{name: name, recorded: true, last: position, lag: -1}
			s.groups[name] = g
		}
		if ms, err := strconv.ParseInt(created, 10, 64); err == nil && g != nil {
			g.created = time.UnixMilli(ms)
		}
	}
	return s, nil
}

// look reads a stream. Errors: ErrFormat.
func (c *Client) look(ctx context.Context, k keys.Stream) (*streamLook, error) {
	p := c.rdb.Pipeline()
	a := askLook(ctx, p, k)
	if err := execPipeline(ctx, p); err != nil {
		return nil, err
	}
	return a.read(k)
}

// execPipeline returns only what concerns all commands: a server's answer to one is that command's own.
func execPipeline(ctx context.Context, p redis.Pipeliner) error {
	_, err := p.Exec(ctx)
	if err != nil && (errors.Is(err, redis.Nil) || conn.Refused(err) && !conn.NotRun(err) && !conn.Auth(err)) {
		return nil
	}
	return err
}

func keyError(key string, err error) error { return fmt.Errorf("key %s: %w", printable(key), err) }

// printable quotes a name that a terminal would not show as it is: groups of others may be named by any bytes.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) || !utf8.ValidString(name) {
		return strconv.Quote(name)
	}
	return name
}

func checkFormat(k keys.Stream, format string) error {
	major, _, _ := strings.Cut(format, ".")
	if n, err := strconv.Atoi(major); err == nil && n > lua.Format {
		return fmt.Errorf("stream %s: %w: format %s, this version knows %d", k.Name, ErrFormat, format, lua.Format)
	}
	return nil
}

// infoRow is one row of an XINFO reply.
type infoRow map[string]any

func (r infoRow) text(name string) string {
	s, _ := r[name].(string)
	return s
}

func (r infoRow) number(name string, none int64) int64 {
	n, ok := r[name].(int64)
	if !ok {
		return none
	}
	return n
}

// infoRows reads a list of maps (RESP3) or of flat arrays (RESP2); none when the stream or the group is not there.
func infoRows(cmd *redis.Cmd) ([]infoRow, error) {
	if err := cmd.Err(); err != nil {
		if missingGroup(err) {
			err = nil
		}
		return nil, err
	}
	list, _ := cmd.Val().([]any)
	rows := make([]infoRow, 0, len(list))
	for _, v := range list {
		row := infoRow{}
		switch m := v.(type) {
		case map[any]any:
			for name, value := range m {
				if s, ok := name.(string); ok {
					row[s] = value
				}
			}
		case []any:
			for i := 0; i+1 < len(m); i += 2 {
				if s, ok := m[i].(string); ok {
					row[s] = m[i+1]
				}
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// missingGroup says that there is no such group, or no such stream.
func missingGroup(err error) bool {
	return conn.Code(err) == "NOGROUP" || err != nil && strings.Contains(err.Error(), "no such key")
}

// serverTime is the time of the server that has the key. Where the user may not ask for it, it is ours.
func (c *Client) serverTime(ctx context.Context, key string) (time.Time, error) {
	master, err := conn.Master(ctx, c.rdb, key)
	if err != nil {
		return time.Time{}, err
	}
	cmd := master.Time(ctx)
	if conn.Code(cmd.Err()) == "NOPERM" {
		return time.Now(), nil
	}
	return cmd.Result()
}

// mustExist looks at the stream and refuses one of which nothing is there.
func (s *StreamAdmin) mustExist(ctx context.Context, op string) (keys.Stream, *streamLook, error) {
	k, err := s.c.streamKeys(s.name)
	if err != nil {
		return k, nil, err
	}
	op += " of " + s.name
	look, err := s.c.look(ctx, k)
	if err != nil {
		return k, nil, serverError(op, err)
	}
	if look.empty() {
		registered, err := s.c.registeredGroups(ctx, k.Name)
		if err != nil {
			return k, nil, err
		}
		dead, err := s.c.deadOnly(ctx, k, look, registered)
		if err != nil {
			return k, nil, serverError(op, err)
		}
		if len(dead) == 0 {
			return k, nil, fmt.Errorf("%s: stream %w", op, ErrNotFound)
		}
	}
	return k, look, nil
}

// deadOnly are the registered groups that neither Redis nor the record has and of which dead letters are left.
func (c *Client) deadOnly(ctx context.Context, k keys.Stream, look *streamLook, registered []string) ([]string, error) {
	p := c.rdb.Pipeline()
	asked := map[string]*redis.IntCmd{}
	for _, n := range registered {
		if look.groups[n] == nil {
			asked[n] = p.Exists(ctx, k.Group(n).DLQ)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	if err := execPipeline(ctx, p); err != nil {
		return nil, err
	}
	var dead []string
	for _, n := range registered {
		if cmd := asked[n]; cmd != nil && cmd.Val() > 0 {
			dead = append(dead, n)
		}
	}
	return dead, nil
}

// mustExist refuses a group that Redis does not have, that is not recorded, and of which no dead letters are left.
func (g *GroupAdmin) mustExist(ctx context.Context, op string) (keys.Group, error) {
	k, err := g.c.groupKeys(g.stream, g.group)
	if err != nil {
		return k, err
	}
	op = g.op(op)
	p := g.c.rdb.Pipeline()
	a, dead := askLook(ctx, p, k.Stream), p.Exists(ctx, k.DLQ)
	if err := execPipeline(ctx, p); err != nil {
		return k, serverError(op, err)
	}
	look, err := a.read(k.Stream)
	if err == nil && dead.Err() != nil {
		err = keyError(k.DLQ, dead.Err())
	}
	if err != nil {
		return k, serverError(op, err)
	}
	if look.groups[g.group] != nil || dead.Val() > 0 {
		return k, nil
	}
	return k, fmt.Errorf("%s: group %w", op, ErrNotFound)
}

func (g *GroupAdmin) op(what string) string {
	return "admin: " + what + " of " + printable(g.stream+"/"+g.group)
}
