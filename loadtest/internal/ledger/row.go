// Package ledger keeps what publishers and workers saw with their own eyes, outside of the server that is under test, and
// judges it at the end.
//
// Each process appends rows to a file of its own, each by one write: what was written stays when the process is killed.
// Nobody cuts the machine's power, so nothing is synced.
package ledger

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Kinds of rows. Times are Unix nanoseconds of the machine's clock, one for all processes.
const (
	intent    = "I" // I seq t: about to be sent; without a P it may be stored or not
	published = "P" // P seq t id: the server confirmed it
	started   = "S" // S run t seq attempt lost id: a handler begins
	ended     = "E" // E run t outcome: it is through, about to return; what it does for its user is done
	settled   = "O" // O run t outcome: the library reports what became of the delivery
	sampled   = "M" // M t goroutines heap: of a worker, after a collection
)

// Outcomes of a handler's run.
const (
	OK   = "ok"
	Fail = "fail" // as planned
	Cut  = "cut"  // its context ended
	Bad  = "bad"  // the message is not what was published
)

// Writer appends rows to a file. Safe for concurrent use; an error is kept and told by Close.
type Writer struct {
	mu  sync.Mutex
	f   *os.File
	buf []byte
	err error
}

// Create makes the file, which must not exist.
func Create(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return &Writer{f: f}, nil
}

// Close tells the first error of any write.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.f.Close(); w.err == nil {
		w.err = err
	}
	return w.err
}

func (w *Writer) row(f func(b []byte) []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = f(w.buf[:0])
	if _, err := w.f.Write(w.buf); err != nil && w.err == nil {
		w.err = err
	}
}

// Intent records messages that are about to be sent.
func (w *Writer) Intent(seqs []int64) {
	now := time.Now().UnixNano()
	w.row(func(b []byte) []byte {
		for _, seq := range seqs {
			b = fmt.Appendf(b, "%s %d %d\n", intent, seq, now)
		}
		return b
	})
}

// Published records that the server confirmed a message.
func (w *Writer) Published(seq int64, id string) {
	w.row(func(b []byte) []byte {
		return fmt.Appendf(b, "%s %d %d %s\n", published, seq, time.Now().UnixNano(), id)
	})
}

// Started records that a handler begins. run is the process's own number for it.
func (w *Writer) Started(run, seq int64, attempt, lost int, id string) {
	w.row(func(b []byte) []byte {
		return fmt.Appendf(b, "%s %d %d %d %d %d %s\n", started, run, time.Now().UnixNano(), seq, attempt, lost, id)
	})
}

// Ended records a handler's outcome.
func (w *Writer) Ended(run int64, outcome string) {
	w.row(func(b []byte) []byte {
		return fmt.Appendf(b, "%s %d %d %s\n", ended, run, time.Now().UnixNano(), outcome)
	})
}

// Settled records what the library says became of the delivery.
func (w *Writer) Settled(run int64, outcome string) {
	w.row(func(b []byte) []byte {
		return fmt.Appendf(b, "%s %d %d %s\n", settled, run, time.Now().UnixNano(), outcome)
	})
}

// Sampled records a worker's goroutines and heap.
func (w *Writer) Sampled(goroutines int, heap uint64) {
	w.row(func(b []byte) []byte {
		return fmt.Appendf(b, "%s %d %d %d\n", sampled, time.Now().UnixNano(), goroutines, heap)
	})
}

// row is a line's words behind its kind.
type row struct {
	words []string
	err   error
}

func (r *row) word(i int) string {
	if i >= len(r.words) {
		r.err = fmt.Errorf("word %d is missing", i+1)
		return ""
	}
	return r.words[i]
}

func (r *row) num(i int) int64 {
	n, err := strconv.ParseInt(r.word(i), 10, 64)
	if err != nil && r.err == nil {
		r.err = err
	}
	return n
}

// lines calls f with each whole line; one that has no end was being written when its process died, and did not count yet.
func lines(in io.Reader, f func(kind string, r *row) error) error {
	b := bufio.NewReaderSize(in, 1<<16)
	for n := 1; ; n++ {
		line, err := b.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			return fmt.Errorf("line %d is empty", n)
		}
		r := &row{words: words[1:]}
		if err = f(words[0], r); err == nil {
			err = r.err
		}
		if err != nil {
			return fmt.Errorf("line %d, %q: %w", n, strings.TrimSpace(line), err)
		}
	}
}
