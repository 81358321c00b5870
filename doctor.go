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

// node is what one master tells about itself; nil maps are not told.
type node struct {
	addr         string
	info, config map[string]string
}

// servers looks at every master.
func (e *examination) servers(ctx context.Context) error {
	var nodes []node
	if cluster, ok := e.c.rdb.(*redis.ClusterClient); ok {
		var mu sync.Mutex
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			n, err := askNode(ctx, c)
			n.addr = "node " + c.Options().Addr + ": "
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, n)
			return err
		})
		if err != nil {
			return err
		}
		slices.SortFunc(nodes, func(a, b node) int { return strings.Compare(a.addr, b.addr) })
	} else {
		n, err := askNode(ctx, e.c.rdb)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		if e.where = n.addr; len(nodes) == 1 {
			e.where = ""
		}
		e.server(n)
	}
	e.where = ""
	return nil
}

// askNode returns what the server tells; an error only when it does not answer.
func askNode(ctx context.Context, c redis.Cmdable) (node, error) {
	n := node{config: map[string]string{}}
	info, err := c.Info(ctx).Result()
	if err != nil && !conn.Refused(err) {
		return n, err
	}
	n.info = map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			n.info[name] = value
		}
	}
	for _, name := range []string{"appendfsync", "save", "min-replicas-to-write"} {
		got, err := c.ConfigGet(ctx, name).Result()
		if err != nil && !conn.Refused(err) && !errors.Is(err, redis.Nil) {
			return n, err
		}
		if v, ok := got[name]; ok {
			n.config[name] = v
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
