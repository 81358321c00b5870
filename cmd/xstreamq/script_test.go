//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/xstreamq/xstreamq/cmd/xstreamq/internal/redisproc"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // as newApp does, for commands that run in this process
	testscript.Main(m, map[string]func(){"xstreamq": main})
}

// TestScripts runs testdata/script/*.txt, each against a redis-server of its own. Beside testscript's commands:
//
//	code N PROG ARG…     run it; it must exit with N
//	redis ARG…           one command to the server; \xNN in arguments is a byte; the answer goes to stdout
//	keys K…              stdout has JSON objects, one or an array or one a line, with exactly these keys
//	fits N               no line of ttyout is wider than N
//	gone FILE            the process whose id is in FILE ends soon
//	web STATUS METHOD PATH [BODY]  a request to the address in the file url; the answer goes to stdout
//	stop-server          end the server
//	freeze-server        stop it from answering; thaw-server takes that back
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			args := []string{}
			if strings.HasSuffix(env.WorkDir, "password") {
				args = []string{"--requirepass", "p@s+%/#:=secret"}
			}
			s, err := redisproc.Start(args...)
			if err != nil {
				return err
			}
			env.Defer(s.Stop)
			env.Values["server"] = s
			env.Setenv("XSTREAMQ_URL", s.URL())
			env.Setenv("ADDR", s.Addr)
			env.Setenv("GORACE", "atexit_sleep_ms=20") // under the race detector each of hundreds of commands would end a second late
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": scriptCode, "redis": scriptRedis, "keys": scriptKeys, "gone": scriptGone, "web": scriptWeb, "fits": scriptFits,
			"stop-server": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Value("server").(*redisproc.Server).Stop()
			},
			"freeze-server": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(ts.Value("server").(*redisproc.Server).Signal(syscall.SIGSTOP))
			},
			"thaw-server": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(ts.Value("server").(*redisproc.Server).Signal(syscall.SIGCONT))
			},
		},
	})
}

func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N PROG ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func scriptRedis(ts *testscript.TestScript, neg bool, args []string) {
	c := redis.NewClient(&redis.Options{Addr: ts.Getenv("ADDR"), Password: ts.Getenv("REDIS_PASSWORD")})
	defer func() { _ = c.Close() }()
	words := make([]any, len(args))
	for i, s := range args {
		if raw, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`); err == nil {
			s = raw
		}
		words[i] = s
	}
	res, err := c.Do(context.Background(), words...).Result()
	if (err != nil) != neg {
		ts.Fatalf("redis: %v", err)
	}
	fmt.Fprintln(ts.Stdout(), res)
}

func scriptKeys(ts *testscript.TestScript, neg bool, want []string) {
	objects, err := jsonObjects(ts.ReadFile("stdout"))
	ts.Check(err)
	if len(objects) == 0 {
		ts.Fatalf("no object to look at: %s", ts.ReadFile("stdout"))
	}
	slices.Sort(want)
	for _, o := range objects {
		got := make([]string, 0, len(o))
		for k := range o {
			got = append(got, k)
		}
		slices.Sort(got)
		if slices.Equal(got, want) == neg {
			ts.Fatalf("keys %q, want %q", got, want)
		}
	}
}

func scriptWeb(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: web STATUS METHOD PATH [BODY]")
	}
	body := strings.NewReader(strings.Join(args[3:], " "))
	req, err := http.NewRequest(args[1], strings.TrimSpace(ts.ReadFile("url"))+args[2], body)
	ts.Check(err)
	if body.Len() > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", out)
	if strconv.Itoa(res.StatusCode) != args[0] {
		ts.Fatalf("status %d, want %s: %s", res.StatusCode, args[0], out)
	}
}

// jsonObjects are those of one document, or of many, one a line.
func jsonObjects(text string) (objects []map[string]any, err error) {
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		if err := d.Decode(&v); err != nil {
			if errors.Is(err, io.EOF) {
				return objects, nil
			}
			return nil, err
		}
		list, isList := v.([]any)
		if !isList {
			list = []any{v}
		}
		for _, item := range list {
			o, ok := item.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%v is no object", item)
			}
			objects = append(objects, o)
		}
	}
}

func scriptGone(ts *testscript.TestScript, neg bool, args []string) {
	pid := strings.TrimSpace(ts.ReadFile(args[0]))
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") { // a zombie waits for its parent only
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("process %s still runs", pid)
		}
	}
}

func scriptFits(ts *testscript.TestScript, neg bool, args []string) {
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	lines := 0
	for line := range strings.Lines(ts.ReadFile("ttyout")) {
		line = strings.TrimRight(line, "\r\n")
		lines++
		if w := runewidth.StringWidth(line); w > most {
			ts.Fatalf("a line of %d columns: %s", w, line)
		}
	}
	if lines < 2 {
		ts.Fatalf("%d lines on the terminal", lines)
	}
}
