package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

var errNoMoreLines = errors.New("no more lines")

// lineReader reads one JSON value a line, bytes as they are.
type lineReader struct {
	name   string
	r      *bufio.Reader
	closer io.Closer
	whole  bool // a plain file: the next read does not wait for anybody
	line   int
	bytes  int64
}

func newLineReader(name string, r io.Reader, c io.Closer, whole bool) *lineReader {
	return &lineReader{name: name, r: bufio.NewReaderSize(r, 256<<10), closer: c, whole: whole}
}

func (l *lineReader) close() {
	if l.closer != nil {
		l.closer.Close()
	}
}

// quiet says that the next line may take long: what is at hand should be sent now.
func (l *lineReader) quiet() bool { return !l.whole && l.r.Buffered() == 0 }

// next returns a line that is JSON, or errNoMoreLines, or an error with the line's number.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.raw()
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(line) {
		return nil, fmt.Errorf("%s line %d is not JSON: it is not valid UTF-8", l.name, l.line)
	}
	if !json.Valid(line) {
		var v json.RawMessage
		return nil, fmt.Errorf("%s line %d is not JSON: %w", l.name, l.line, json.Unmarshal(line, &v))
	}
	return line, nil
}

// only returns the line of a source that must have exactly one.
func (l *lineReader) only() ([]byte, error) {
	line, err := l.next()
	if errors.Is(err, errNoMoreLines) {
		return nil, fmt.Errorf("%s is empty: nothing to publish", l.name)
	}
	if err != nil {
		return nil, err
	}
	if _, err := l.r.ReadByte(); err == nil {
		return nil, usagef("--dedupe-id names one message, %s has more than one line", l.name)
	}
	return line, nil
}

func (l *lineReader) raw() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		l.bytes += int64(len(part))
		line = append(line, part...)
		switch {
		case err == nil:
			l.line++
			line = line[:len(line)-1]
			if len(line) > maxBody {
				return nil, l.tooLong()
			}
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
			if len(line) > maxBody {
				l.line++
				return nil, l.tooLong()
			}
		case errors.Is(err, io.EOF):
			if len(line) == 0 {
				return nil, errNoMoreLines
			}
			l.line++
			return line, nil
		default:
			return nil, fmt.Errorf("reading %s after line %d: %w", l.name, l.line, err)
		}
	}
}

func (l *lineReader) tooLong() error {
	return fmt.Errorf("%s line %d is over %d bytes", l.name, l.line, maxBody)
}
