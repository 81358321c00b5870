package main

import (
	"bufio"
	"strings"
	"unicode/utf8"
)

const tableChunk = 500 // rows whose widths are measured together; what follows is printed as it comes

// table prints aligned columns under a head on a terminal and bare tab-separated lines into a pipe.
type table struct {
	a      *app
	w      *bufio.Writer
	head   []string
	rows   [][]string
	widths []int
	begun  bool
}

func (a *app) table(head ...string) *table {
	return &table{a: a, w: bufio.NewWriter(a.out), head: head, widths: make([]int, len(head))}
}

// row adds one line. Cells are escaped here, so that no caller can forget it.
func (t *table) row(cells ...string) error {
	for i, c := range cells {
		cells[i] = escape(c)
	}
	if !t.a.outTTY {
		_, err := t.w.WriteString(strings.Join(cells, "\t") + "\n")
		return err
	}
	t.rows = append(t.rows, cells)
	if len(t.rows) == tableChunk {
		return t.print()
	}
	return nil
}

// flush prints what is left. A table without rows prints nothing.
func (t *table) flush() error {
	if err := t.print(); err != nil {
		return err
	}
	return t.w.Flush()
}

func (t *table) print() error {
	if len(t.rows) == 0 {
		return nil
	}
	right := make([]bool, len(t.head))
	for i := range t.head {
		right[i] = true
		t.widths[i] = max(t.widths[i], len(t.head[i]))
		for _, r := range t.rows {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(r[i]))
			right[i] = right[i] && (r[i] == unknown || strings.Trim(r[i], "0123456789") == "")
		}
	}
	if !t.begun {
		t.begun = true
		if t.a.color() {
			t.w.WriteString("\x1b[1m")
		}
		t.line(t.head, right)
		if t.a.color() {
			t.w.WriteString("\x1b[0m")
		}
	}
	for _, r := range t.rows {
		t.line(r, right)
	}
	t.rows = t.rows[:0]
	return t.w.Flush()
}

func (t *table) line(cells []string, right []bool) {
	var b strings.Builder
	for i, c := range cells {
		if i == len(cells)-1 {
			c = t.fit(c, utf8.RuneCountInString(b.String()))
		}
		pad := strings.Repeat(" ", max(0, t.widths[i]-utf8.RuneCountInString(c)))
		switch {
		case right[i]:
			b.WriteString(pad + c)
		case i == len(cells)-1:
			b.WriteString(c)
		default:
			b.WriteString(c + pad)
		}
		if i < len(cells)-1 {
			b.WriteString("  ")
		}
	}
	t.w.WriteString(b.String() + "\n") // bufio keeps the first error for Flush
}

// fit cuts the last column, where bodies stand, to what is left of the line.
func (t *table) fit(c string, used int) string {
	room := max(20, t.a.width-used)
	if t.a.width == 0 || utf8.RuneCountInString(c) <= room {
		return c
	}
	return string([]rune(c)[:room-1]) + "…"
}

func (a *app) color() bool { return a.outTTY && !a.noColor && a.getenv("NO_COLOR") == "" }
