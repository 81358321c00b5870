//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/cmd/xstreamq/internal/redisproc"
)

const operationsPage = "../../docs/operations.md"

// TestOperationsPage runs the consoles of docs/operations.md and compares what they print with what the page has. Each
// heading begins with an empty server. In a comment that begins with "setup" stands what the reader need not see: xstreamq
// commands, and
//
//	redis ARG…         one command to the server; @14m30s in it is that moment in ms
//	start xstreamq …   in the background; stop ends it
//	wait pending STREAM GROUP    until something is in flight
func TestOperationsPage(t *testing.T) {
	t.Parallel()
	old, err := os.ReadFile(operationsPage)
	if err != nil {
		t.Fatal(err)
	}
	comparePage(t, operationsPage, string(old), (&stage{t: t}).page(string(old)))
}

// stage is where one incident is played.
type stage struct {
	t      *testing.T
	server *redisproc.Server
	rdb    *redis.Client
	stop   func()
	ids    map[string]string // as they are, to as the page has them
}

func (s *stage) page(text string) string {
	var out []string
	block := "" // setup, console, or another
	s.begin()
	defer s.end()
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case block == "" && strings.HasPrefix(line, "## "):
			s.end()
			s.begin()
		case block == "" && line == "<!-- setup":
			block = "setup"
		case block == "" && line == "```console":
			block = "console"
		case line == "-->" || line == "```":
			block = ""
		case block == "setup":
			s.set(line)
		case block == "console" && strings.HasPrefix(line, "$ "):
			out = append(out, line)
			out = append(out, s.show(line[2:])...)
			continue
		case block == "console":
			continue // what it printed last time
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n") + "\n"
}

func (s *stage) begin() {
	var err error
	if s.server, err = redisproc.Start("--appendonly", "yes"); err != nil {
		s.t.Fatal(err)
	}
	s.rdb = redis.NewClient(&redis.Options{Addr: s.server.Addr})
	s.ids, s.stop = map[string]string{}, func() {}
}

func (s *stage) end() {
	s.stop()
	_ = s.rdb.Close()
	s.server.Stop()
}

func (s *stage) set(line string) {
	s.t.Helper()
	words := shellFields(line)
	switch words[0] {
	case "redis":
		args := make([]any, len(words)-1)
		for i, w := range words[1:] {
			args[i] = moment.ReplaceAllStringFunc(w, func(m string) string {
				d, err := time.ParseDuration(m[1:])
				if err != nil {
					s.t.Fatal(err)
				}
				return strconv.FormatInt(time.Now().Add(-d).UnixMilli(), 10)
			})
		}
		if err := s.rdb.Do(s.t.Context(), args...).Err(); err != nil {
			s.t.Fatalf("%s: %v", line, err)
		}
	case "start":
		ctx, cancel := context.WithCancel(s.t.Context())
		var done sync.WaitGroup
		done.Go(func() { s.app().execute(ctx, words[2:]) })
		s.stop = func() { cancel(); done.Wait() }
	case "stop":
		s.stop()
	case "wait":
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if _, out, _ := run(s.t, s.server.URL(), false, words[1:]...); out != "" {
				return
			}
			if time.Now().After(deadline) {
				s.t.Fatalf("%s: nothing came", line)
			}
		}
	default:
		if code, _, stderr := run(s.t, s.server.URL(), false, words[1:]...); code != 0 {
			s.t.Fatalf("%s: code %d: %s", line, code, stderr)
		}
	}
}

// app writes to a terminal of 100 columns.
func (s *stage) app() *app {
	a, _, _ := testApp(map[string]string{"XSTREAMQ_URL": s.server.URL()})
	a.outTTY, a.width, a.noColor = true, 100, true
	return a
}

// show runs a command and returns what a terminal has of it, times and ids made round.
func (s *stage) show(line string) []string {
	s.t.Helper()
	a, out, _ := testApp(map[string]string{"XSTREAMQ_URL": s.server.URL()})
	a.outTTY, a.width, a.err = true, 100, out
	words := shellFields(line)
	for i, w := range words {
		for was, is := range s.ids {
			if w == is {
				words[i] = was
			}
		}
		if w == "./bill.sh" { // the reader's
			words[i] = "true"
		}
	}
	code := a.execute(s.t.Context(), slices.Insert(words[1:], 0, "--no-color"))
	text := s.round(out.String())
	if code != 0 {
		text += fmt.Sprintf("[exit code %d]\n", code)
	}
	return align(strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
}

var (
	moment   = regexp.MustCompile(`@[0-9hms]+`)
	entry    = regexp.MustCompile(`\b[0-9]{13}-[0-9]+\b`)
	clock    = regexp.MustCompile(`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)
	minutes  = regexp.MustCompile(`\b([0-9]+)m[0-9]+s\b`)
	seconds  = regexp.MustCompile(`\b(?:1?[0-9](?:\.[0-9]+)?s|[0-9.]+ms)\b`)
	lease    = regexp.MustCompile(`\bin [123][0-9]s\b`)
	just     = regexp.MustCompile(`\((?:just now|now|1s ago)\)`)
	consumer = regexp.MustCompile(`\b[a-zA-Z0-9.-]+~[0-9a-f]{12}\b`)
	address  = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
	memory   = regexp.MustCompile(`\b[0-9]+ MiB used`)
	version7 = regexp.MustCompile(`\b(Redis|Valkey) [0-9.]+`)
)

func (s *stage) round(text string) string {
	text = entry.ReplaceAllStringFunc(text, func(id string) string {
		if s.ids[id] == "" {
			s.ids[id] = fmt.Sprintf("%d-0", 1_760_000_000_000+len(s.ids))
		}
		return s.ids[id]
	})
	text = clock.ReplaceAllString(text, "2026-01-31T03:00:00.000Z")
	text = minutes.ReplaceAllString(text, "${1}m30s")
	text = lease.ReplaceAllString(text, "in 30s")
	text = seconds.ReplaceAllString(text, "1s")
	text = just.ReplaceAllString(text, "(just now)")
	text = consumer.ReplaceAllString(text, "web-1~2c3676b3e56c")
	text = address.ReplaceAllString(text, "localhost:6379")
	text = memory.ReplaceAllString(text, "2 MiB used")
	return version7.ReplaceAllString(text, "$1 7.2")
}

// align lays tables out again, whose cells may be longer or shorter now. A table begins with its head.
func align(lines []string) []string {
	head := regexp.MustCompile(`^[A-Z]+( [A-Z]+)*(  +[A-Z]+( [A-Z]+)*)+$`)
	cell := regexp.MustCompile(` {2,}`)
	for i := 0; i < len(lines); i++ {
		if !head.MatchString(lines[i]) {
			continue
		}
		var rows [][]string
		for _, l := range lines[i:] {
			if strings.HasPrefix(l, "(") || strings.HasPrefix(l, "[") {
				break
			}
			rows = append(rows, cell.Split(strings.TrimSpace(l), -1))
		}
		a, out, _ := testApp(nil)
		a.outTTY, a.noColor = true, true
		t := a.table(rows[0]...)
		for _, r := range rows[1:] {
			for len(r) < len(rows[0]) {
				r = append(r, "")
			}
			_ = t.row(r...)
		}
		_ = t.flush()
		copy(lines[i:], strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"))
		i += len(rows)
	}
	return lines
}

// shellFields splits a line as a shell does, as far as the page needs it.
func shellFields(line string) (words []string) {
	var word strings.Builder
	quote, in := rune(0), false
	for _, r := range line {
		switch {
		case quote == 0 && r == '"' && !in, quote == 0 && r == '\'' && !in:
			quote, in = r, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && r == ' ':
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			in = true
			word.WriteRune(r)
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}
