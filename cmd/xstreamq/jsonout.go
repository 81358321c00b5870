package main

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// encode is json.Marshal that leaves <, > and & alone.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// printJSON writes v as one JSON document and a newline.
func (a *app) printJSON(v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return a.writeJSON(append(b, '\n'))
}

func (a *app) writeJSON(b []byte) error {
	if a.outTTY {
		b = escapeJSON(b)
	}
	_, err := a.out.Write(b)
	return err
}

// jsonArray writes an array item by item, so that a long list needs no memory, and closes it also when the walk fails
// half way: what stands on stdout is valid JSON.
type jsonArray struct {
	a   *app
	buf []byte
	n   int
}

func (j *jsonArray) add(item []byte) error {
	sep := byte(',')
	if j.n == 0 {
		sep = '['
	}
	j.n++
	j.buf = append(append(j.buf, sep), item...)
	if len(j.buf) < 32<<10 {
		return nil
	}
	return j.flush()
}

func (j *jsonArray) close() error {
	if j.n == 0 {
		j.buf = append(j.buf, '[')
	}
	j.buf = append(j.buf, ']', '\n')
	return j.flush()
}

func (j *jsonArray) flush() error {
	err := j.a.writeJSON(j.buf)
	j.buf = j.buf[:0]
	return err
}
