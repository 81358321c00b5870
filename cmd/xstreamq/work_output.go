package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

const (
	tailSize = 8 << 10  // of CMD's stderr, kept to find its last line in
	lineSize = 64 << 10 // longer lines are passed on in parts
)

// lineSink writes whole lines of many commands to one stderr. It never fails: a closed stderr must not end a handler.
type lineSink struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *lineSink) Write(b []byte) (int, error) {
	s.put(b)
	return len(b), nil
}

func (s *lineSink) put(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w.Write(b)
}

func (s *lineSink) printf(format string, args ...any) {
	s.put([]byte(escape(fmt.Sprintf(format, args...)) + "\n"))
}

// lineBuffer holds the output of one command back until its line is whole.
type lineBuffer struct {
	to  *lineSink
	buf []byte
}

func (l *lineBuffer) Write(b []byte) (int, error) {
	l.buf = append(l.buf, b...)
	if end := bytes.LastIndexByte(l.buf, '\n'); end >= 0 {
		l.to.put(l.buf[:end+1])
		l.buf = append(l.buf[:0], l.buf[end+1:]...)
	}
	if len(l.buf) >= lineSize {
		l.flush()
	}
	return len(b), nil
}

// flush writes what has no line end yet, with one.
func (l *lineBuffer) flush() {
	if len(l.buf) > 0 {
		l.to.put(append(l.buf, '\n'))
		l.buf = l.buf[:0]
	}
}

// tailBuffer keeps the end of what is written to it.
type tailBuffer struct{ b []byte }

func (t *tailBuffer) Write(b []byte) (int, error) {
	n := len(b)
	if n > tailSize {
		b = b[n-tailSize:]
	}
	t.b = append(t.b, b...)
	if len(t.b) > 2*tailSize {
		t.b = append(t.b[:0], t.b[len(t.b)-tailSize:]...)
	}
	return n, nil
}
