package lua

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// header is the comment that each script begins with.
type header struct{ what, keys, argv, returns string }

var headerForm = regexp.MustCompile(`(?s)\A-- (\w+): (.+?)\n-- KEYS: (.+?)\n-- ARGV: (.+?)\n-- returns: (.+?)\n[^-]`)

func headerOf(t *testing.T, name string) header {
	t.Helper()
	m := headerForm.FindStringSubmatch(source(name))
	if m == nil {
		t.Fatalf("%s.lua does not begin with -- %s: …, -- KEYS: …, -- ARGV: …, -- returns: …", name, name)
	}
	if m[1] != name {
		t.Errorf("%s.lua calls itself %s", name, m[1])
	}
	return header{m[2], m[3], m[4], m[5]}
}

// described are the numbers that a header names, and the first of an open end ("6…"), 0 when there is none.
func described(list string) (numbers map[int]bool, open int) {
	numbers = map[int]bool{}
	for _, m := range regexp.MustCompile(`(?:^|, |\n--\s+|then )(\d+)(…?)`).FindAllStringSubmatch(list, -1) {
		n, _ := strconv.Atoi(m[1])
		numbers[n] = true
		if m[2] != "" {
			open = n
		}
	}
	return numbers, open
}

var (
	keyUse  = regexp.MustCompile(`KEYS\[([^\]]*)\]`)
	argUse  = regexp.MustCompile(`ARGV\[(\d+)\]`)
	command = regexp.MustCompile(`\b(?:redis\.)?p?call\(\s*(?:call, )?'(\w+)'((?:, '(?:CREATE|SETID|DESTROY|DELCONSUMER|GROUPS|STREAM)')?)(?:, ([^,)]*(?:\[[^\]]*\])?))?`)
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, name := range names() {
		h := headerOf(t, name)
		numbers, open := described(h.keys)
		if len(numbers) == 0 || !numbers[1] {
			t.Errorf("%s.lua: no numbers in KEYS: %s", name, h.keys)
		}
		for _, m := range keyUse.FindAllStringSubmatch(source(name), -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil && open == 0 {
				t.Errorf("%s.lua computes %s, but its header describes no open end of KEYS", name, m[0])
			}
			if err == nil && !numbers[n] {
				t.Errorf("%s.lua uses %s, which its header does not describe: %s", name, m[0], h.keys)
			}
		}
		args, _ := described(h.argv)
		for _, m := range argUse.FindAllStringSubmatch(source(name), -1) {
			if n, _ := strconv.Atoi(m[1]); !args[n] && name != "purge" {
				t.Errorf("%s.lua uses %s, which its header does not describe: %s", name, m[0], h.argv)
			}
		}
	}
	if use := argUse.FindString(source("lib")) + keyUse.FindString(source("lib")); use != "" {
		t.Errorf("lib.lua uses %s: what it works on is passed to it", use)
	}
}

// allowed are the commands that scripts may send, beside reading. None walks the key space, none hands an entry on under
// its id, none blocks.
var allowed = strings.Fields(`TIME GET SET PTTL PEXPIRE DEL UNLINK EXISTS HGET HSET HSETNX HDEL HMGET HGETALL HVALS HLEN HEXISTS HSCAN
	ZADD ZREM ZCARD ZCOUNT ZSCORE ZRANGEBYSCORE XADD XDEL XLEN XRANGE XTRIM XACK XPENDING XINFO XGROUP`)

// keyNames are what a key may be called where it is used: a script's KEYS, or a parameter or table made of them.
var keyNames = regexp.MustCompile(`^(KEYS\[.+|k\.(m|r|dlq)|k\[src\]?|stream|parked|due|set|hash|key|sent|seen)$`)

func TestCommandsAndKeys(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, name := range append(names(), "lib") {
		text := strip(source(name))
		for _, word := range []string{"cjson", "cmsgpack", "struct.", "loadstring", "math.random", "os.", "bit."} {
			if strings.Contains(text, word) {
				t.Errorf("%s.lua uses %s: scripts neither parse bodies nor draw from anything but their arguments", name, word)
			}
		}
		if m := regexp.MustCompile(`KEYS\[[^\]]*\]\s*\.\.[^.]|\.\.\s*KEYS\[`).FindString(text); m != "" {
			t.Errorf("%s.lua makes text of a key: %s", name, m)
		}
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			cmd, key := m[1], strings.TrimSpace(m[3])
			used[cmd] = true
			if !slices.Contains(allowed, cmd) {
				t.Errorf("%s.lua sends %s", name, cmd)
			}
			if cmd != "TIME" && !keyNames.MatchString(key) {
				t.Errorf("%s.lua: the key of %s is %q, not one of its KEYS", name, m[0], key)
			}
		}
	}
	for _, cmd := range []string{"XADD", "XPENDING", "ZADD", "HSETNX", "XGROUP", "XINFO"} {
		if !used[cmd] {
			t.Errorf("found no use of %s: this test no longer reads the scripts", cmd)
		}
	}
	all := ""
	for _, name := range append(names(), "lib") {
		all += source(name)
	}
	if n := strings.Count(all, "'TIME'"); n != 1 {
		t.Errorf("%d places take the time, want the one of lib.lua", n)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	c := redistest.Shared(t).Client(t)
	for _, name := range names() {
		s := load(name)
		sha, err := c.ScriptLoad(t.Context(), s.text).Result()
		if err != nil || sha != s.sha {
			t.Errorf("%s.lua: loaded as %s, %v, want %s", name, sha, err, s.sha)
		}
		if strings.Contains(s.text, "\n--") {
			t.Errorf("%s.lua is sent with its comments", name)
		}
	}
}

// recorder notes the keys that a script is sent with, and fails.
type recorder map[string]int

var errRecorded = errors.New("recorded")

func (r recorder) Process(_ context.Context, cmd redis.Cmder) error {
	args := cmd.Args()
	for _, name := range names() {
		if load(name).sha == args[1] {
			r[name] = args[2].(int)
		}
	}
	return errRecorded
}

// TestKeysPassed: the wrappers pass as many keys as the headers say, none of them empty or of another stream.
func TestKeysPassed(t *testing.T) {
	t.Parallel()
	k := keys.NewStream("p:", "s").Group("g")
	ctx, r := t.Context(), recorder{}
	letters := []Letter{{"1-0", "1-0", "k"}, {"2-0", "2-0", ""}}
	_, err := Register(ctx, r, k, "c", time.Second, "v")
	errs := []error{err}
	add := func(err error) { errs = append(errs, err) }
	_, err = Heartbeat(ctx, r, k, "c")
	add(err)
	_, err = Arm(ctx, r, k, "c", "1-0")
	add(err)
	_, err = Tick(ctx, r, k, "c", time.Second, Totals{})
	add(err)
	_, err = Remove(ctx, r, k, "c")
	add(err)
	_, err = Settle(ctx, r, k, "c", 0, []Settlement{{Verb: Ack, Source: Main, EntryID: "1-0", Seen: k.Seen("1-0")}, {Verb: Release, Source: Main, EntryID: "2-0"}})
	add(err)
	_, err = Reclaim(ctx, r, k, "c", "", 3, time.Second, time.Second)
	add(err)
	_, err = PromoteRetries(ctx, r, k)
	add(err)
	_, err = PromoteDelayed(ctx, r, k)
	add(err)
	_, _, err = Orphans(ctx, r, k.Due, k.Parked, "")
	add(err)
	_, err = Compact(ctx, r, k.Stream, false, false)
	add(err)
	_, _, err = EnsureGroup(ctx, r, k, "0", GroupStart, "")
	add(err)
	_, _, err = Publish(ctx, r, k.Stream, Publication{})
	add(err)
	_, err = Redrive(ctx, r, k, letters, false, nil)
	add(err)
	_, err = Purge(ctx, r, k, letters)
	add(err)
	_, err = Drop(ctx, r, k, false)
	add(err)
	_, _, err = Seek(ctx, r, k, "0")
	add(err)
	_, err = Count(ctx, r, k.Main, "0-0", "+", 10)
	add(err)
	_, err = Cancel(ctx, r, k.Stream, "d-1-0a", "k")
	add(err)
	_, _, err = FindParked(ctx, r, k.Parked, "1-0", "", "*", 10)
	add(err)
	for _, err := range errs {
		if !errors.Is(err, errRecorded) {
			t.Errorf("a wrapper answers %v when its command fails", err)
		}
	}
	open := map[string]int{"settle": 1, "redrive": len(letters), "purge": len(letters)}
	for _, name := range names() {
		numbers, from := described(headerOf(t, name).keys)
		want := slices.Max(slices.Collect(maps.Keys(numbers)))
		if from > 0 {
			want = from - 1 + open[name]
		}
		if got, ok := r[name]; !ok || got != want {
			t.Errorf("%s: %d keys passed (%v), the header describes %d", name, got, ok, want)
		}
	}
}

// TestUnknownReplies: what a script cannot have answered is an error, not a zero value.
func TestUnknownReplies(t *testing.T) {
	t.Parallel()
	k := keys.NewStream("p:", "s").Group("g")
	for _, reply := range []any{nil, "what", int64(7), []any{}, []any{"a"}} {
		r := answer{reply}
		calls := map[string]func() error{
			"tick":    func() error { _, err := Tick(t.Context(), r, k, "", time.Second, Totals{}); return err },
			"settle":  func() error { _, err := Settle(t.Context(), r, k, "c", 0, make([]Settlement, 2)); return err },
			"reclaim": func() error { _, err := Reclaim(t.Context(), r, k, "c", "", 0, 0, 0); return err },
			"promote": func() error { _, err := PromoteRetries(t.Context(), r, k); return err },
			"janitor": func() error { _, _, err := Orphans(t.Context(), r, "a", "b", ""); return err },
			"compact": func() error { _, err := Compact(t.Context(), r, k.Stream, false, false); return err },
			"group":   func() error { _, _, err := EnsureGroup(t.Context(), r, k, "0", GroupStart, ""); return err },
			"publish": func() error { _, _, err := Publish(t.Context(), r, k.Stream, Publication{}); return err },
			"redrive": func() error { _, err := Redrive(t.Context(), r, k, make([]Letter, 2), false, nil); return err },
			"drop":    func() error { _, err := Drop(t.Context(), r, k, false); return err },
			"seek":    func() error { _, _, err := Seek(t.Context(), r, k, "0"); return err },
			"find":    func() error { _, _, err := FindParked(t.Context(), r, "a", "1-0", "", "*", 1); return err },
			"lag":     func() error { _, err := Count(t.Context(), r, "a", "0-0", "+", 1); return err },
		}
		for name, call := range calls {
			if err := call(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s accepts the reply %v: %v", name, reply, err)
			}
		}
	}
	if _, err := Remove(t.Context(), answer{"what"}, k, "c"); err == nil {
		t.Error("remove accepts a text for a number")
	}
}

// answer is a runner that answers everything alike.
type answer struct{ reply any }

func (a answer) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.(Once).SetVal(a.reply)
	return nil
}
