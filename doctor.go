package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/conn"
)

// Finding is what one check of Doctor came to.
type Finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"`  // ok, unknown (the server does not tell), warn, fail
	Detail string `json:"detail"` // what was seen; of many, the first three of the worst
	Fix    string `json:"fix"`    // what to do; "" when ok
}

// What Doctor looks at: the servers, then what is stored.
const (
	checkEviction    = "eviction policy"
	checkAOF         = "aof"
	checkFsync       = "fsync"
	checkReplicas    = "replicas"
	checkVersion     = "version"
	checkMemory      = "memory"
	checkClock       = "ids ahead of the clock"
	checkTTL         = "expiry of keys"
	checkConsumers   = "stale consumers"
	checkPins        = "groups that pin history"
	checkDeadLetters = "dead letters"
	checkCompaction  = "compaction"
)

var (
	serverChecks = []string{checkEviction, checkAOF, checkFsync, checkReplicas, checkVersion, checkMemory}
	storedChecks = []string{checkClock, checkTTL, checkConsumers, checkPins, checkDeadLetters, checkCompaction}
)

// doctorMost is how many groups are looked at.
const doctorMost = 1000

// Doctor asks whether this Redis, every master of it, is fit for a queue, and whether the streams and groups that the registry
// names are in order. Each check is one finding, always all of them and in the same order. Where the server does not tell
// (managed ones hide CONFIG, users may lack rights), it is unknown. It looks at 1,000 groups at most, and changes nothing.
func (a *Admin) Doctor(ctx context.Context) ([]Finding, error) {
	refs, err := a.Registered(ctx)
	if err != nil && conn.Code(err) != "NOPERM" {
		return nil, err
	}
	all := slices.Concat(serverChecks, storedChecks)
	e := &examination{c: a.c, findings: map[string]*examined{}}
	for _, name := range all {
		e.findings[name] = &examined{}
	}
	if err != nil {
		e.unread(err.Error())
	}
	if err := e.servers(ctx); err != nil {
		return nil, serverError("admin: doctor", err)
	}
	if err := e.streams(ctx, refs); err != nil {
		return nil, serverError("admin: doctor", err)
	}
	out := make([]Finding, 0, len(all))
	for _, name := range all {
		out = append(out, e.findings[name].finding(name))
	}
	return out, nil
}

// examination collects what speaks for each check.
type examination struct {
	c        *Client
	findings map[string]*examined
	where    string // what is being looked at; stands before each note
}

// level orders what a check may come to.
type level int

const (
	levelOK level = iota
	levelUnknown
	levelWarn
	levelFail
)

func (l level) String() string { return [...]string{"ok", "unknown", "warn", "fail"}[l] }

type examined struct {
	level level
	notes []string
	more  int
	fix   string
}

// note adds what was seen; the worst level stands, with its own notes and its first fix.
func (e *examination) note(check string, l level, fix, detail string, args ...any) {
	x := e.findings[check]
	if l < x.level {
		return
	}
	if l > x.level || x.notes == nil {
		x.level, x.notes, x.more, x.fix = l, []string{}, 0, fix
	}
	text := e.where + fmt.Sprintf(detail, args...)
	if len(x.notes) == 3 {
		x.more++
	} else if !slices.Contains(x.notes, text) {
		x.notes = append(x.notes, text)
	}
}

func (x *examined) finding(check string) Finding {
	f := Finding{Check: check, Level: x.level.String(), Detail: strings.Join(x.notes, "; "), Fix: x.fix}
	if x.more > 0 {
		f.Detail += fmt.Sprintf("; and %d more", x.more)
	}
	return f
}

// Server is what one master tells about itself: figures for people to read. What it does not tell, or refuses, is missing.
type Server struct {
	Addr   string            // of a cluster's node, else ""
	Info   map[string]string // the fields of INFO
	Config map[string]string // appendfsync, save, min-replicas-to-write
}

// Servers asks every master, those of a cluster in the order of their addresses. Doctor judges what they tell.
func (a *Admin) Servers(ctx context.Context) ([]Server, error) {
	all, err := a.c.servers(ctx)
	return all, serverError("admin: servers", err)
}

func (c *Client) servers(ctx context.Context) ([]Server, error) {
	cluster, ok := c.rdb.(*redis.ClusterClient)
	if !ok {
		s, err := askServer(ctx, c.rdb)
		return []Server{s}, err
	}
	var mu sync.Mutex
	var all []Server
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		s, err := askServer(ctx, c)
		s.Addr = c.Options().Addr
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		return err
	})
	slices.SortFunc(all, func(a, b Server) int { return strings.Compare(a.Addr, b.Addr) })
	return all, err
}

// servers looks at every master.
func (e *examination) servers(ctx context.Context) error {
	all, err := e.c.servers(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if len(all) > 1 {
			e.where = "node " + s.Addr + ": "
		}
		e.server(s)
	}
	e.where = ""
	return nil
}

// askServer returns what the server tells; an error only when it does not answer.
func askServer(ctx context.Context, c redis.Cmdable) (Server, error) {
	n := Server{Info: map[string]string{}, Config: map[string]string{}}
	info, err := c.Info(ctx).Result()
	if err != nil && !conn.Refused(err) {
		return n, err
	}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			n.Info[name] = value
		}
	}
	for _, name := range []string{"appendfsync", "save", "min-replicas-to-write"} {
		got, err := c.ConfigGet(ctx, name).Result()
		if err != nil && !conn.Refused(err) && !errors.Is(err, redis.Nil) {
			return n, err
		}
		if v, ok := got[name]; ok {
			n.Config[name] = v
		}
	}
	return n, nil
}

// ago is a rounded distance in time.
func ago(d time.Duration) string {
	if d > 2*time.Minute {
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}
