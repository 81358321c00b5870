package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

// TestEveryHelpHasAnExample walks all commands.
func TestEveryHelpHasAnExample(t *testing.T) {
	t.Parallel()
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	seen := 0
	walkCommands(newRoot(a), func(path, example string) {
		seen++
		if !strings.Contains(example, "xstreamq") {
			t.Errorf("%s --help has no example", path)
		}
	})
	if seen < 15 {
		t.Errorf("only %d commands seen", seen)
	}
}

func walkCommands(cmd *cobra.Command, visit func(path, example string)) {
	visit(cmd.CommandPath(), cmd.Example)
	for _, c := range cmd.Commands() {
		walkCommands(c, visit)
	}
}

// testApp is an app of buffers; env are its only variables.
func testApp(env map[string]string) (*app, *bytes.Buffer, *bytes.Buffer) {
	out, err := &bytes.Buffer{}, &bytes.Buffer{}
	return &app{in: strings.NewReader(""), out: out, err: err, getenv: func(k string) string { return env[k] }}, out, err
}

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ünïcode 漢字 🙂": "plain ünïcode 漢字 🙂",
		"\x1b[31mred\x07":    `\u001b[31mred\u0007`,
		"a\nb\tc\rd":         `a\nb\tc\rd`,
		"\x9b31m":            `\x9b31m`,
		"\u009b31m":          `\u009b31m`,
		"\xff\xfe":           `\xff\xfe`,
		"x\u202egpj.exe":     `x\u202egpj.exe`,
		"\U000e0041":         `\U000e0041`,
		"\ufffd":             "\ufffd",
		"a\u2028b\u00a0c":    `a\u2028b\u00a0c`,
		"":                   "",
	} {
		if got := escape(in); got != want {
			t.Errorf("escape(%q) = %q, want %q", in, got, want)
		}
	}
	if got := escapeLines("a\n\x1bb"); got != "a\n\\u001bb" {
		t.Errorf("escapeLines keeps lines: %q", got)
	}
}

func TestEscapeJSONKeepsTheValue(t *testing.T) {
	t.Parallel()
	in, err := json.Marshal("del \x7f csi \u009b rtl \u202e tag \U000e0041 漢 🙂")
	if err != nil {
		t.Fatal(err)
	}
	out := escapeJSON(in)
	var was, is string
	if err := errors.Join(json.Unmarshal(in, &was), json.Unmarshal(out, &is)); err != nil || was != is {
		t.Errorf("%q became %q (%v)", was, is, err)
	}
	if escape(string(out)) != string(out) {
		t.Errorf("still not harmless: %q", out)
	}
}

func TestMessageJSONKeepsTheBodyExactly(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"id": 15947634569000323, "tags":[], "h":"<b>&"}`: `"body":{"id": 15947634569000323, "tags":[], "h":"<b>&"}}`,
		"1e400":      `"body":1e400}`,
		"a\x00\xff":  `"body_base64":"YQD/"}`,
		"\"\xff\"":   `"body_base64":"Iv8i"}`,
		"":           `"body_base64":""}`,
		"not json":   `"body_base64":"bm90IGpzb24="}`,
		" [1,\n 2] ": "\"body\": [1,\n 2] }",
	} {
		b, err := recordJSON(xstreamq.Record{ID: "1-0", EntryID: "1-0", Stream: "s", Body: []byte(body)})
		if err != nil || !strings.HasSuffix(string(b), ","+want) || !json.Valid(b) {
			t.Errorf("body %q: %s (%v), want …,%s", body, b, err, want)
		}
	}
	b, err := recordJSON(xstreamq.Record{ID: "1-0", EntryID: "2-0", Stream: "s", Attempts: 2, PublishedAt: time.UnixMilli(1_700_000_000_123)})
	want := `{"id":"1-0","entry_id":"2-0","stream":"s","published_at":"2023-11-14T22:13:20.123Z","attempt":3,"lost":0,"headers":{}}`
	if err != nil || string(b) != want {
		t.Errorf("without a body: %s (%v), want %s", b, err, want)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{fmt.Errorf("x: %w", errPipe), 0},
		{errors.New("x"), 1},
		{fmt.Errorf("x: %w", xstreamq.ErrNotFound), 1},
		{errors.Join(xstreamq.ErrUncertain, context.DeadlineExceeded), 1},
		{usagef("x"), 2},
		{fmt.Errorf("x: %w", xstreamq.ErrInvalidName), 2},
		{fmt.Errorf("x: %w", xstreamq.ErrInvalidOption), 2},
		{errRefused, 3},
		{fmt.Errorf("x: %w", xstreamq.ErrUnavailable), 4},
		{fmt.Errorf("x: %w", xstreamq.ErrAuth), 4},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), 4},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("exitCode(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

func TestErrorsNeverShowSecrets(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://:p@ss%zz@host:6379", "redis://user:hunter22/x@host:6379", "redis://:hunter22@host:notaport",
		"redis://host:6379?password=hunter22&x=%zz", "redis://u:hunter22@[::1", "hunter22@host",
	} {
		a, _, stderr := testApp(nil)
		a.url = url
		err := a.openError(fmt.Errorf("%w: parse %q", xstreamq.ErrInvalidOption, url))
		if code := a.report(err, nil); code != exitUsage {
			t.Errorf("%s: exit code %d", url, code)
		}
		if s := stderr.String(); strings.Contains(s, "hunter22") || strings.Contains(s, "p@ss") || strings.Contains(s, "%zz") {
			t.Errorf("%s: printed %s", url, s)
		}
	}
	a, _, stderr := testApp(nil)
	a.url = "redis://u:h%40nter22@host:1/0"
	a.secrets = append(urlSecrets(a.url), "filesecret")
	a.report(fmt.Errorf("%w: h%%40nter22 h@nter22 filesecret", xstreamq.ErrUnavailable), nil)
	if s := stderr.String(); strings.Contains(s, "nter22") || strings.Contains(s, "filesecret") || !strings.Contains(s, "redis://host:1: ") {
		t.Errorf("printed %s", s)
	}
}

func TestReportAsJSON(t *testing.T) {
	t.Parallel()
	a, _, stderr := testApp(nil)
	if code := a.report(&hinted{errors.New("a \x1b<b>"), "try c"}, []string{"ls", "-j", "--bad"}); code != 1 {
		t.Errorf("exit code %d", code)
	}
	var got map[string]any
	if err := json.Unmarshal(stderr.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if len(got) != 3 || got["error"] != "a \x1b<b>" || got["code"] != 1.0 || got["hint"] != "try c" {
		t.Errorf("got %v", got)
	}
	if wantsJSON([]string{"work", "s", "g", "--", "cmd", "--json"}) {
		t.Error("a flag of CMD is not ours")
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"":                     {},
		"2026-01-01T00:00:00Z": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		"90m":                  now.Add(-90 * time.Minute),
	} {
		if got, err := parseTime("--before", in, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"yesterday", "-5m", "5"} {
		if _, err := parseTime("--before", in, now); exitCode(err) != exitUsage {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestParseBackoff(t *testing.T) {
	t.Parallel()
	got, err := parseBackoff("200ms,1.5,1m")
	if want := (xstreamq.Exponential{Initial: 200 * time.Millisecond, Multiplier: 1.5, Max: time.Minute}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, in := range []string{"x", "0s", "-1s", "1s,0.5", "1s,NaN", "1s,2,0s", "1s,2,1m,3", "1s,"} {
		if _, err := parseBackoff(in); exitCode(err) != exitUsage {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	l := newLineReader("f", strings.NewReader("{\"a\": 1}\r\n[1]\n \"last\""), nil, true)
	for _, want := range []string{"{\"a\": 1}\r", "[1]", " \"last\""} {
		if got, err := l.next(); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := l.next(); !errors.Is(err, errNoMoreLines) {
		t.Errorf("at the end: %v", err)
	}
	for in, want := range map[string]string{
		"1\n\n2\n":        "f line 2 is not JSON",
		"1\n2\nx y":       "f line 3 is not JSON",
		"\"\xff\"\n":      "f line 1 is not JSON: it is not valid UTF-8",
		"1\n{\"a\":1}x\n": "f line 2 is not JSON",
	} {
		l := newLineReader("f", strings.NewReader(in), nil, true)
		var err error
		for err == nil {
			_, err = l.next()
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
	long := io.MultiReader(strings.NewReader("1\n\""), io.LimitReader(zeros{}, maxBody+1), strings.NewReader("\"\n"))
	l = newLineReader("f", long, nil, true)
	_, _ = l.next()
	if _, err := l.next(); err == nil || !strings.Contains(err.Error(), "f line 2 is over") {
		t.Errorf("a line too long: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                              "",
		"one\ntwo\n":                    "two",
		"one\n  two \r\n\n \n":          "two",
		"no newline":                    "no newline",
		"progress 1\rprogress 2\r":      "progress 2",
		"bad \xff byte":                 "bad \uFFFD byte",
		strings.Repeat("ä", 1000):       strings.Repeat("ä", 512),
		"x" + strings.Repeat("ä", 1000): "x" + strings.Repeat("ä", 511),
	} {
		if got := lastLine([]byte(in)); got != want {
			t.Errorf("lastLine(%.40q) = %q (%d bytes), want %q", in, got, len(got), want)
		}
	}
	tail := &tailBuffer{}
	for i := range 100_000 {
		fmt.Fprintf(tail, "line %d\n", i)
	}
	if got := lastLine(tail.b); got != "line 99999" || cap(tail.b) > 16*tailSize {
		t.Errorf("tail ends with %q, holds %d bytes", got, cap(tail.b))
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	a, out, _ := testApp(nil)
	tab := a.table("NAME", "N")
	if err := errors.Join(tab.row("a\tb\x1b", "1"), tab.row("c", unknown), tab.flush()); err != nil {
		t.Fatal(err)
	}
	if want := "a\\tb\\u001b\t1\nc\t?\n"; out.String() != want {
		t.Errorf("piped: %q, want %q", out, want)
	}
	a, out, _ = testApp(map[string]string{"NO_COLOR": "1"})
	a.outTTY, a.width = true, 28
	tab = a.table("NAME", "N", "BODY").cut(8, "BODY")
	if err := errors.Join(tab.row("long name", "7", strings.Repeat("b", 50)), tab.row("c", "123", "x"), tab.flush()); err != nil {
		t.Fatal(err)
	}
	want := "NAME         N  BODY\nlong name    7  " + strings.Repeat("b", 11) + "…\nc          123  x\n"
	if out.String() != want {
		t.Errorf("terminal:\n%s\nwant\n%s", out, want)
	}
	a.getenv = func(string) string { return "" }
	out.Reset()
	tab = a.table("NAME")
	if err := errors.Join(tab.row("x"), tab.flush()); err != nil || out.String() != "\x1b[1mNAME\n\x1b[0mx\n" {
		t.Errorf("colour: %q (%v)", out, err)
	}
}

// TestTableFitsTheTerminal: what may be left out goes first where it says nothing, then in its order; cells are cut no
// further than is needed; nothing is cut or left out in a pipe or where the width is not known.
func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	const text = "ünïcode text"
	for width, want := range map[int]string{
		0:  "ID    ZERO  SOME  BODY\n1-0      0     7  漢字 ünïcode text\n",
		40: "ID    ZERO  SOME  BODY\n1-0      0     7  漢字 ünïcode text\n",
		33: "ID    ZERO  SOME  BODY\n1-0      0     7  漢字 ünïcode t…\n",
		26: "ID    ZERO  SOME  BODY\n1-0      0     7  漢字 ün…\n",
		25: "ID    SOME  BODY\n1-0      7  漢字 ünïcode…\n(not shown at this width: ZERO)\n",
		19: "ID    BODY\n1-0   漢字 ünïcode…\n(not shown at this width: ZERO, SOME)\n",
		3:  "ID    BODY\n1-0   漢字 ün…\n(not shown at this width: ZERO, SOME)\n",
	} {
		a, out, _ := testApp(map[string]string{"NO_COLOR": "1"})
		a.outTTY, a.width, a.err = true, width, out
		tab := a.table("ID", "ZERO", "SOME", "BODY").cut(8, "BODY").drop("SOME", "ZERO")
		if err := errors.Join(tab.row("1-0 ", "0", "7", "漢字 "+text), tab.flush()); err != nil || out.String() != want {
			t.Errorf("width %d:\n%swant\n%s(%v)", width, out, want, err)
		}
		for line := range strings.Lines(out.String()) {
			if w := runewidth.StringWidth(strings.TrimSpace(line)); width >= 19 && w > width && !strings.HasPrefix(line, "(") {
				t.Errorf("width %d: a line of %d: %s", width, w, line)
			}
		}
	}
	a, out, stderr := testApp(nil)
	tab := a.table("ID", "ZERO").drop("ZERO").empty("nothing there")
	a.width = 1
	if err := errors.Join(tab.row("1-0", "0"), tab.flush()); err != nil || out.String() != "1-0\t0\n" || stderr.Len() > 0 {
		t.Errorf("in a pipe: %q, %q (%v)", out, stderr, err)
	}
	a.outTTY = true
	if err := a.table("ID").empty("nothing there").flush(); err != nil || stderr.String() != "nothing there\n" {
		t.Errorf("empty on a terminal: %q (%v)", stderr, err)
	}
}

func TestProgressOnlyOnATerminal(t *testing.T) {
	t.Parallel()
	a, _, stderr := testApp(nil)
	p := a.progress("redriving")
	p.update(1, 2)
	p.clear()
	if stderr.Len() > 0 {
		t.Errorf("without a terminal: %q", stderr)
	}
	a.errTTY = true
	p = a.progress("redriving")
	p.update(5, 10)
	p.update(6, 10) // too soon to draw
	p.clear()
	if want := "\rredriving [" + strings.Repeat("#", 15) + strings.Repeat(".", 15) + "] 5/10\x1b[K\r\x1b[K"; stderr.String() != want {
		t.Errorf("drawn %q, want %q", stderr, want)
	}
}

func TestIDBefore(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "0-0": "", "0-1": "0-0", "5-7": "5-6", "5-0": "4-18446744073709551615", "99999999999999999999-0": "",
	} {
		if got := idBefore(in); got != want {
			t.Errorf("idBefore(%q) = %q, want %q", in, got, want)
		}
	}
}
