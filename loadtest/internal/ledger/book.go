package ledger

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Message is one message's history.
type Message struct {
	Seq       int64
	ID        string // "" when the server's confirmation never came
	Sent      int64
	Confirmed int64 // 0 = never
	Runs      []*Run
}

// Run is one run of a handler.
type Run struct {
	Worker        string
	Seq           int64
	Attempt, Lost int
	ID            string
	Start, End    int64  // End is 0 when it never came to its end
	Outcome       string // "" likewise
	SettledAt     int64
	Settled       string // "" when the library never told
	gone          int64  // when its worker had ended; 0 = not known
}

// Until is when the run was over: by itself, or with its worker. 0 = it is not known to be.
func (r *Run) Until() int64 {
	if r.End > 0 {
		return r.End
	}
	return r.gone
}

// Sample is a worker's goroutines and heap at a time.
type Sample struct {
	At, Goroutines, Heap int64
}

// Book is the whole ledger.
type Book struct {
	Messages map[int64]*Message
	Workers  map[string][]*Run
	Samples  map[string][]Sample
}

// Read reads all files of a directory: producers' are named p-…, workers' w-….
func Read(dir string) (*Book, error) {
	b := NewBook()
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	for _, f := range list {
		name, isLog := strings.CutSuffix(f.Name(), ".log")
		worker, isWorker := strings.CutPrefix(name, "w-")
		if !isLog || !isWorker && !strings.HasPrefix(name, "p-") {
			continue
		}
		in, err := os.Open(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
		if isWorker {
			err = b.Worker(worker, in)
		} else {
			err = b.Producer(in)
		}
		_ = in.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("ledger: %s: %w", f.Name(), err)
		}
	}
	return b, nil
}

// NewBook is an empty one.
func NewBook() *Book {
	return &Book{Messages: map[int64]*Message{}, Workers: map[string][]*Run{}, Samples: map[string][]Sample{}}
}

func (b *Book) message(seq int64) *Message {
	m := b.Messages[seq]
	if m == nil {
		m = &Message{Seq: seq}
		b.Messages[seq] = m
	}
	return m
}

// Producer reads a producer's file.
func (b *Book) Producer(in io.Reader) error {
	return lines(in, func(kind string, r *row) error {
		m := b.message(r.num(0))
		switch kind {
		case intent:
			m.Sent = r.num(1) // the last one, where a refused publish was repeated
		case published:
			if m.ID != "" {
				return fmt.Errorf("message %d was confirmed twice", m.Seq)
			}
			m.Confirmed, m.ID = r.num(1), r.word(2)
		default:
			return fmt.Errorf("kind %q in a producer's file", kind)
		}
		return nil
	})
}

// Worker reads the file of the worker of that name.
func (b *Book) Worker(name string, in io.Reader) error {
	runs := map[int64]*Run{}
	find := func(r *row) (*Run, error) {
		run := runs[r.num(0)]
		if run == nil {
			return nil, fmt.Errorf("run %s did not start", r.word(0))
		}
		return run, nil
	}
	b.Workers[name] = nil
	return lines(in, func(kind string, r *row) error {
		switch kind {
		case started:
			n := r.num(0)
			run := &Run{Worker: name, Start: r.num(1), Seq: r.num(2), Attempt: int(r.num(3)), Lost: int(r.num(4)), ID: r.word(5)}
			if runs[n] != nil {
				return fmt.Errorf("run %d started twice", n)
			}
			runs[n] = run
			b.Workers[name] = append(b.Workers[name], run)
			m := b.message(run.Seq)
			m.Runs = append(m.Runs, run)
		case ended:
			run, err := find(r)
			if err != nil {
				return err
			}
			run.End, run.Outcome = r.num(1), r.word(2)
		case settled:
			run, err := find(r)
			if err != nil {
				return err
			}
			run.SettledAt, run.Settled = r.num(1), r.word(2)
		case sampled:
			b.Samples[name] = append(b.Samples[name], Sample{At: r.num(0), Goroutines: r.num(1), Heap: r.num(2)})
		default:
			return fmt.Errorf("kind %q in a worker's file", kind)
		}
		return nil
	})
}

// Gone tells that a worker was dead at that time: none of its runs goes on after it.
func (b *Book) Gone(worker string, at int64) {
	for _, r := range b.Workers[worker] {
		r.gone = at
	}
}
