//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/cmd/xstreamq/internal/redisproc"
)

// use is one way to call a command on stream and group; the tests below run all of them.
type use struct {
	args   string // STREAM, GROUP and ID are put in
	reads  bool   // changes nothing, whatever it is given
	makes  bool   // makes what it is given a name of, where that is missing
	lists  bool   // of everything: needs no stream
	judges bool   // exit code 1 is an answer
}

var uses = map[string]use{
	"xstreamq ls":             {args: "", reads: true, lists: true},
	"xstreamq depth":          {args: "STREAM GROUP", reads: true},
	"xstreamq pending":        {args: "STREAM GROUP", reads: true},
	"xstreamq consumers ls":   {args: "STREAM GROUP", reads: true},
	"xstreamq peek":           {args: "STREAM", reads: true},
	"xstreamq get":            {args: "STREAM ID", reads: true},
	"xstreamq why":            {args: "STREAM GROUP ID", reads: true},
	"xstreamq doctor":         {args: "", reads: true, lists: true, judges: true},
	"xstreamq health":         {args: "", reads: true, lists: true, judges: true},
	"xstreamq delayed ls":     {args: "STREAM", reads: true},
	"xstreamq retrying ls":    {args: "STREAM GROUP", reads: true},
	"xstreamq dlq ls":         {args: "STREAM GROUP", reads: true},
	"xstreamq dlq show":       {args: "STREAM GROUP", reads: true},
	"xstreamq publish":        {args: "STREAM {}", makes: true},
	"xstreamq work":           {args: "STREAM GROUP --until-empty -- true", makes: true},
	"xstreamq consumers rm":   {args: "STREAM GROUP nobody"},
	"xstreamq delayed cancel": {args: "STREAM ID"},
	"xstreamq dlq redrive":    {args: "STREAM GROUP --all"},
	"xstreamq dlq purge":      {args: "STREAM GROUP --all"},
	"xstreamq compact":        {args: "STREAM"},
	"xstreamq retain":         {args: "STREAM 24h"},
	"xstreamq group create":   {args: "STREAM GROUP", makes: true},
	"xstreamq group rm":       {args: "STREAM GROUP"},
	"xstreamq group seek":     {args: "STREAM GROUP --to head"},
	"xstreamq pause":          {args: "STREAM GROUP"},
	"xstreamq resume":         {args: "STREAM GROUP"},
}

// alone have no server, or one of their own, or run until they are ended; their own tests are for them.
var alone = regexp.MustCompile(`^xstreamq (version|completion .*|demo|dev|bench|top|dash)$`)

// TestEveryCommandIsUsed keeps the table above whole.
func TestEveryCommandIsUsed(t *testing.T) {
	t.Parallel()
	all := leaves(testRoot())
	for path := range all {
		if _, ok := uses[path]; !ok && !alone.MatchString(path) {
			t.Errorf("%s is not among the uses that the tests of errors and of hostile text run", path)
		}
	}
	for path := range uses {
		if all[path] == nil {
			t.Errorf("%s does not exist", path)
		}
	}
}

func testServer(t *testing.T, args ...string) (*redisproc.Server, *redis.Client) {
	t.Helper()
	s, err := redisproc.Start(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { _ = c.Close() })
	return s, c
}

// run runs one command line in this process, as on a terminal or as in a pipe.
func run(t *testing.T, url string, tty bool, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	a, out, err := testApp(map[string]string{"XSTREAMQ_URL": url})
	a.outTTY, a.errTTY = tty, tty
	code = a.execute(context.Background(), args)
	return code, out.String(), err.String()
}

func (u use) line(path, stream, group, id string) []string {
	words := strings.Fields(strings.TrimPrefix(path, "xstreamq ") + " --yes " + u.args)
	for i, w := range words {
		words[i] = strings.NewReplacer("STREAM", stream, "GROUP", group, "ID", id).Replace(w)
	}
	return words
}

// oneLine wants one line "Error: …", and at most one "Try: …".
func oneLine(stderr string) bool {
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	return len(lines) <= 2 && strings.HasPrefix(lines[0], "Error: ") && (len(lines) == 1 || strings.HasPrefix(lines[1], "Try: "))
}

// TestTroubles: whatever is wrong with the server or the name, every command ends with one clear line, the right code, and
// nothing made.
func TestTroubles(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down := "redis://" + l.Addr().String()
	l.Close()
	locked, _ := testServer(t, "--requirepass", "right-password")
	_, port, _ := net.SplitHostPort(locked.Addr)
	up, rdb := testServer(t)
	ctx := context.Background()
	if err := rdb.Set(ctx, "{wrong}", "a string", 0).Err(); err != nil {
		t.Fatal(err)
	}
	register := func() {
		if err := rdb.SAdd(ctx, "xstreamq:registry", `["wrong",""]`, `["wrong","g"]`).Err(); err != nil {
			t.Fatal(err)
		}
	}
	register()
	before := dump(t, rdb)
	check := func(path, what string, want int, url string, args []string) {
		code, out, stderr := run(t, url, false, args...)
		if code != want || out != "" || !oneLine(stderr) {
			t.Errorf("%s, %s: code %d, want %d\nstdout %q\nstderr %s", path, what, code, want, out, stderr)
		}
		code, out, stderr = run(t, url, false, append([]string{"--json"}, args...)...)
		var doc map[string]any
		if err := json.Unmarshal([]byte(stderr), &doc); err != nil || code != want || out != "" && !uses[path].judges ||
			!slices.Equal(slices.Sorted(maps.Keys(doc)), []string{"code", "error", "hint"}) || doc["code"] != float64(want) {
			t.Errorf("%s --json, %s: code %d, want %d (%v)\nstdout %q\nstderr %s", path, what, code, want, err, out, stderr)
		}
	}
	var wait sync.WaitGroup // a refused connection is tried again for a while: all at once
	for path, u := range uses {
		wait.Go(func() {
			check(path, "server down", exitUnreachable, down, append([]string{"--timeout", "2s"}, u.line(path, "nosuch", "g", "1-1")...))
		})
	}
	wait.Wait()
	for path, u := range uses {
		missing := u.line(path, "nosuch", "g", "1-1")
		check(path, "wrong password", exitUnreachable, "redis://:wrong@127.0.0.1:"+port, missing)
		check(path, "no password", exitUnreachable, "redis://127.0.0.1:"+port, missing)
		if !u.makes && !u.lists {
			check(path, "unknown stream", exitFailed, up.URL(), missing)
		}
		if !u.lists {
			check(path, "wrong type", exitFailed, up.URL(), u.line(path, "wrong", "g", "1-1"))
			check(path, "bad name", exitUsage, up.URL(), u.line(path, "no{such}", "g", "1-1"))
		}
		register() // group rm takes what it does not find out of it
		if after := dump(t, rdb); !maps.Equal(before, after) {
			t.Fatalf("%s changed the server: %s", path, differs(before, after))
		}
	}
}

// dump is every key with its value.
func dump(t *testing.T, rdb *redis.Client) map[string]string {
	t.Helper()
	ctx := context.Background()
	keys, err := rdb.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, k := range keys {
		if all[k], err = rdb.Dump(ctx, k).Result(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func differs(a, b map[string]string) string {
	var names []string
	for k := range b {
		if a[k] != b[k] {
			names = append(names, k)
		}
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			names = append(names, "-"+k)
		}
	}
	return strings.Join(names, ", ")
}

const hostile = "a\x1b[2J\x1b]0;owned\x07\u009b31m\u202e\x00\xff\tb"

// furnish makes a stream with something in every place, hostile text wherever text may stand.
func furnish(t *testing.T, url string, rdb *redis.Client) (id string) {
	t.Helper()
	ctx := context.Background()
	must := func(args ...string) string {
		code, out, stderr := run(t, url, false, args...)
		if code != 0 {
			t.Fatalf("%s: code %d: %s", args, code, stderr)
		}
		return out
	}
	redo := func(args ...any) {
		if err := rdb.Do(ctx, args...).Err(); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
	}
	text := strings.ReplaceAll(hostile, "\xff", "") // a header is UTF-8
	must("publish", "orders", hostile, "--header", "k"+text+"=v"+text)
	must("retain", "orders", "forever")
	must("work", "orders", "g", "--until-empty", "--max-retries", "0", "--concurrency", "1", "--", "sh", "-c",
		`printf 'err \033[2J\033]0;owned\007\302\233 \377\n' >&2; exit 1`)
	must("publish", "orders", hostile, "--delay", "1h")
	redo("xadd", "{orders}", "*", "body", hostile, "field"+hostile, "value"+hostile, "oid", "id"+hostile)
	redo("xadd", "{orders}", "*", "body", `"json `+"\u009b31m\u202e"+`"`)
	redo("xgroup", "create", "{orders}", "foreign"+hostile, "0")
	redo("xreadgroup", "group", "g", "consumer"+hostile, "count", "1", "streams", "{orders}", ">")
	redo("hset", "{orders}.g.parked", "m/5-0"+hostile, "4:body,1:x,")
	redo("zadd", "{orders}.g.due", "9999999999999", "m/5-0"+hostile)
	redo("sadd", "xstreamq:registry", `["ev\u001b[2Jil","g\u009b31m"]`)
	return strings.TrimSpace(strings.SplitN(must("peek", "orders"), "\t", 2)[0])
}

var ours = regexp.MustCompile(`\x1b\[[01]m|\x1b\[K|\r`) // what we send to a terminal ourselves

// TestReadingIsHarmless: no reading command changes a byte on the server, and nothing that stands there reaches a terminal
// as it is.
func TestReadingIsHarmless(t *testing.T) {
	t.Parallel()
	s, rdb := testServer(t)
	id := furnish(t, s.URL(), rdb)
	before := dump(t, rdb)
	for path, u := range uses {
		if !u.reads {
			continue
		}
		seen := ""
		for _, tty := range []bool{true, false} {
			for _, asJSON := range []bool{false, true} {
				args := u.line(path, "orders", "g", id)
				if asJSON {
					args = append(args, "--json")
				}
				code, out, stderr := run(t, s.URL(), tty, args...)
				if code != 0 && !u.judges || out == "" {
					t.Errorf("%s: code %d, stdout %q, stderr %s", path, code, out, stderr)
				}
				seen += out
				if asJSON && !tty { // a program reads it, and wants the exact text
					if !json.Valid([]byte(out)) {
						t.Errorf("%s --json is no JSON: %s", path, out)
					}
					continue
				}
				for line := range strings.Lines(ours.ReplaceAllString(out+stderr, "")) {
					line = strings.TrimSuffix(line, "\n")
					if !tty {
						line = strings.ReplaceAll(line, "\t", " ")
					}
					if !clean(line, "") {
						t.Errorf("%s, terminal %v, JSON %v: %q", path, tty, asJSON, line)
					}
				}
			}
		}
		if !strings.Contains(seen, `\u001b[2J`) && !strings.Contains(seen, `\x1b[2J`) && path != "xstreamq depth" {
			t.Errorf("%s met nothing hostile:\n%s", path, seen)
		}
		if after := dump(t, rdb); !maps.Equal(before, after) {
			t.Fatalf("%s changed the server: %s", path, differs(before, after))
		}
	}
	code, _, stderr := run(t, s.URL(), true, "depth", "no"+hostile)
	if code != exitUsage || !clean(strings.ReplaceAll(stderr, "\n", ""), "") {
		t.Errorf("code %d, %q", code, stderr)
	}
}

// TestNothingIsMadeByLooking: the same on a server that has nothing at all.
func TestNothingIsMadeByLooking(t *testing.T) {
	t.Parallel()
	s, rdb := testServer(t)
	for path, u := range uses {
		if u.makes {
			continue
		}
		code, _, stderr := run(t, s.URL(), false, u.line(path, "nosuch", "g", "1-1")...)
		if want := map[bool]int{true: exitOK, false: exitFailed}[u.lists]; code != want && !u.judges {
			t.Errorf("%s: code %d, want %d: %s", path, code, want, stderr)
		}
		if n := rdb.DBSize(context.Background()).Val(); n != 0 {
			t.Fatalf("%s made %d keys", path, n)
		}
	}
}

// TestFlagsStandAnywhere: before the command, between its words, after its arguments.
func TestFlagsStandAnywhere(t *testing.T) {
	t.Parallel()
	s, _ := testServer(t)
	if code, _, stderr := run(t, s.URL(), false, "--prefix", "p:", "publish", "s", "1", "2"); code != 0 {
		t.Fatal(stderr)
	}
	global := []string{"--json", "--prefix=p:", "--url", s.URL()}
	var want string
	for i, args := range [][]string{
		append(slices.Clone(global), "group", "create", "s", "g"),
		append(slices.Clone(global), "peek", "s"),
		{"--prefix", "p:", "peek", "-j", "s", "--count", "10", "-u", s.URL()},
		{"peek", "s", "--json", "--prefix", "p:"},
		{"--count", "10", "peek", "s", "--json", "--prefix", "p:"},
		{"peek", "--json", "--prefix", "p:", "--", "s"},
	} {
		code, out, stderr := run(t, s.URL(), false, args...)
		if i == 1 {
			want = out
		}
		if code != 0 || i > 1 && out != want {
			t.Errorf("%q: code %d, %s%s", args, code, out, stderr)
		}
	}
	if !bytes.Contains([]byte(want), []byte(`"stream":"s"`)) {
		t.Error(want)
	}
	code, out, stderr := run(t, s.URL(), false, "dlq", "--json", "--prefix", "p:", "ls", "s", "g")
	if code != 0 || out != "[]\n" {
		t.Error(fmt.Sprint(code), out, stderr)
	}
}
