package producer

import (
	"bufio"
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
	"github.com/xstreamq/xstreamq/loadtest/internal/plan"
)

// It imports nothing of the library: the standard library, and this module's packages that import as little.
func TestIndependent(t *testing.T) {
	t.Parallel()
	const own = "github.com/xstreamq/xstreamq/loadtest/internal/"
	for _, dir := range []string{".", "../ledger", "../plan", "../resp"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, path := range files {
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				name, _ := strconv.Unquote(i.Path.Value)
				rest, mine := strings.CutPrefix(name, own)
				if strings.Contains(name, ".") && (!mine || !slices.Contains([]string{"ledger", "plan", "resp"}, rest)) {
					t.Errorf("%s imports %s", path, name)
				}
			}
		}
	}
}

// fake is a server that takes commands and answers each as act says; "" hangs up.
type fake struct {
	addr string
	mu   sync.Mutex
	got  [][]string
}

func newFake(t *testing.T, act func(n int, args []string) string) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{addr: l.Addr().String()}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(c, act)
		}
	}()
	return f
}

func (f *fake) serve(c net.Conn, act func(int, []string) string) {
	defer c.Close()
	r := bufio.NewReader(c)
	number := func(kind byte) int {
		line, err := r.ReadString('\n')
		if err != nil || line[0] != kind {
			return -1
		}
		n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
		if err != nil {
			return -1
		}
		return n
	}
	for {
		var args []string
		for range max(0, number('*')) {
			b := make([]byte, max(0, number('$'))+2)
			if _, err := io.ReadFull(r, b); err != nil {
				return
			}
			args = append(args, string(b[:len(b)-2]))
		}
		if len(args) == 0 {
			return
		}
		f.mu.Lock()
		f.got = append(f.got, args)
		reply := act(len(f.got), args)
		f.mu.Unlock()
		if reply == "" {
			return
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

func run(t *testing.T, f *fake, change func(*Producer)) (*ledger.Book, error) {
	t.Helper()
	dir := t.TempDir()
	w, err := ledger.Create(filepath.Join(dir, "p-0.log"))
	if err != nil {
		t.Fatal(err)
	}
	p := &Producer{
		Addr: func() (string, error) { return f.addr, nil }, Stream: "s", Confirm: 20, Conns: 1, Batch: 4, Timeout: time.Second,
		Plan: plan.Plan{Seed: 5}, Ledger: w,
	}
	change(p)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	runErr := p.Run(ctx)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := ledger.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b, runErr
}

func id(n int) string {
	s := strconv.Itoa(n) + "-0"
	return "$" + strconv.Itoa(len(s)) + "\r\n" + s + "\r\n"
}

// count is how many are confirmed and how many uncertain.
func count(b *ledger.Book) (confirmed, uncertain int) {
	for _, m := range b.Messages {
		if m.ID != "" {
			confirmed++
		} else {
			uncertain++
		}
	}
	return confirmed, uncertain
}

func TestPublishes(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(n int, _ []string) string { return id(n) })
	b, err := run(t, f, func(*Producer) {})
	if err != nil {
		t.Fatal(err)
	}
	if c, u := count(b); c != 20 || u != 0 || len(f.got) != 20 {
		t.Fatalf("%d confirmed, %d uncertain, %d sent", c, u, len(f.got))
	}
	p := plan.Plan{Seed: 5}
	for i, args := range f.got {
		seq := int64(i + 1)
		if want := append([]string{"XADD", "{s}", "*"}, p.Fields(seq)...); !slices.Equal(args, want) {
			t.Errorf("sent %q, want %q", args, want)
		}
		if got := b.Messages[seq].ID; got != fmt.Sprintf("%d-0", i+1) {
			t.Errorf("message %d has id %s", seq, got)
		}
	}
}

// What is refused is sent again under its number until it is taken.
func TestRefused(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(n int, _ []string) string {
		if n%3 == 0 {
			return "-OOM no room\r\n"
		}
		return id(n)
	})
	b, err := run(t, f, func(*Producer) {})
	if err != nil {
		t.Fatal(err)
	}
	if c, u := count(b); c != 20 || u != 0 || len(b.Messages) != 20 || len(f.got) < 29 {
		t.Errorf("%d confirmed, %d uncertain, %d sent", c, u, len(f.got))
	}
}

// What got no answer is never sent again; others take its place.
func TestUncertain(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(n int, _ []string) string {
		if n == 6 || n == 11 {
			return ""
		}
		return id(n)
	})
	b, err := run(t, f, func(*Producer) {})
	if err != nil {
		t.Fatal(err)
	}
	c, u := count(b)
	if c != 20 || u < 2 || u > 8 {
		t.Errorf("%d confirmed, %d uncertain", c, u)
	}
	sent := map[string]bool{}
	for _, args := range f.got {
		if sent[args[4]] {
			t.Errorf("%s was sent twice", args[4])
		}
		sent[args[4]] = true
	}
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	waits := 0
	f := newFake(t, func(n int, args []string) string {
		if args[0] == "XADD" {
			return id(n)
		}
		if !slices.Equal(args, []string{"WAIT", "1", "500"}) {
			return "-ERR what\r\n"
		}
		if waits++; waits == 2 {
			return ":0\r\n" // the second batch has no replica
		}
		return ":1\r\n"
	})
	b, err := run(t, f, func(p *Producer) { p.Replicas = 1 })
	if err != nil {
		t.Fatal(err)
	}
	if c, u := count(b); c != 20 || u != 4 || waits != 6 {
		t.Errorf("%d confirmed, %d uncertain, %d waits", c, u, waits)
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(n int, _ []string) string { return id(n) })
	began := time.Now()
	if _, err := run(t, f, func(p *Producer) { p.Rate, p.Conns = 100, 3 }); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 195*time.Millisecond {
		t.Errorf("20 messages at 100 a second took %v", took)
	}
}

func TestGivesUp(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(int, []string) string { return "-READONLY\r\n" })
	dir := t.TempDir()
	w, err := ledger.Create(filepath.Join(dir, "p-0.log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	p := &Producer{Addr: func() (string, error) { return f.addr, os.ErrNotExist }, Stream: "s", Confirm: 1, Timeout: time.Second, Ledger: w}
	if err := p.Run(ctx); err == nil || p.Confirmed() != 0 {
		t.Errorf("%v, %d confirmed", err, p.Confirmed())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
