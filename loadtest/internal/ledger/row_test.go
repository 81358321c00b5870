package ledger

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is written is what is read, also when a row was cut off.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := time.Now().UnixNano()
	p, err := Create(filepath.Join(dir, "p-0.log"))
	if err != nil {
		t.Fatal(err)
	}
	p.Intent([]int64{1, 2, 3})
	p.Published(1, "7-1")
	p.Published(3, "7-3")
	w, err := Create(filepath.Join(dir, "w-0.1.log"))
	if err != nil {
		t.Fatal(err)
	}
	w.Started(1, 1, 1, 0, "7-1")
	w.Ended(1, OK)
	w.Settled(1, "acked")
	w.Started(2, 3, 2, 1, "7-3")
	w.Sampled(17, 1<<20)
	for _, c := range []*Writer{p, w} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, "w-0.1.log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("E 2 123"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other.txt"), []byte("not ours\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Messages) != 3 {
		t.Fatalf("%d messages", len(b.Messages))
	}
	one, two, three := b.Messages[1], b.Messages[2], b.Messages[3]
	if one.ID != "7-1" || one.Sent < begin || one.Confirmed < one.Sent || two.Confirmed != 0 || two.Sent < begin || three.ID != "7-3" {
		t.Errorf("%+v %+v %+v", one, two, three)
	}
	r := one.Runs[0]
	if len(one.Runs) != 1 || r.Outcome != OK || r.Settled != "acked" || r.Worker != "0.1" || r.Start < one.Confirmed || r.End < r.Start || r.SettledAt < r.End {
		t.Errorf("%+v", r)
	}
	r = three.Runs[0]
	if r.Attempt != 2 || r.Lost != 1 || r.Outcome != "" || r.Until() != 0 {
		t.Errorf("%+v", r)
	}
	if b.Gone("0.1", 99); r.Until() != 99 || one.Runs[0].Until() == 99 {
		t.Errorf("until %d and %d", r.Until(), one.Runs[0].Until())
	}
	if s := b.Samples["0.1"]; len(s) != 1 || s[0].Goroutines != 17 || s[0].Heap != 1<<20 {
		t.Errorf("samples %+v", s)
	}
}

func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ producer, rows string }{
		{"p", "I 1\n"},
		{"p", "I x 5\n"},
		{"p", "Q 1 2\n"},
		{"p", "\n"},
		{"p", "P 1 5 7-1\nP 1 6 7-2\n"},
		{"w", "E 1 5 ok\n"},
		{"w", "O 1 5 acked\n"},
		{"w", "S 1 5 1 1 0 7-1\nS 1 6 2 1 0 7-2\n"},
		{"w", "S 1 5 1 1 0\n"},
		{"w", "P 1 5 7-1\n"},
	} {
		read := NewBook().Producer
		if c.producer == "w" {
			read = func(in io.Reader) error { return NewBook().Worker("a", in) }
		}
		if read(strings.NewReader(c.rows)) == nil {
			t.Errorf("%q was taken", c.rows)
		}
	}
}

// A process does not go on in another's file.
func TestCreateTwice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w-1.log")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path); err == nil {
		t.Error("two processes share a file")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Ended(1, OK)
	if err := w.Close(); err == nil {
		t.Error("a lost row is not told")
	}
}
