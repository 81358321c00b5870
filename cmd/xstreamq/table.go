package main

import (
	"bufio"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

const (
	tableChunk = 500 // rows whose widths are measured together; what follows is printed as it comes
	gap        = 2   // blanks between columns
)

// table prints aligned columns under a head on a terminal and bare tab-separated lines into a pipe. Only a terminal that
// is too narrow has cells cut and columns left out; a pipe gets everything.
type table struct {
	a      *app
	w      *bufio.Writer
	head   []string
	least  map[string]int // columns that may be cut, and to what width
	spare  []string       // columns that may be left out, the first ones first
	none   string         // what to say on a terminal where there is no row
	rows   [][]string
	widths []int
	hidden []bool
	begun  bool
}

func (a *app) table(head ...string) *table {
	return &table{
		a: a, w: bufio.NewWriterSize(a.out, 64<<10), head: head, least: map[string]int{}, widths: make([]int, len(head)), hidden: make([]bool, len(head)),
	}
}

// cut lets the cells of these columns be shortened, to least at the shortest.
func (t *table) cut(least int, names ...string) *table {
	for _, n := range names {
		t.least[n] = least
	}
	return t
}

// drop lets these columns be left out, those that say nothing (all 0, no, or empty) before the others.
func (t *table) drop(names ...string) *table {
	t.spare = names
	return t
}

// empty is said on stderr when a terminal would else see nothing.
func (t *table) empty(text string) *table {
	t.none = text
	return t
}

// row adds one line. Cells are escaped here, so that no caller can forget it.
func (t *table) row(cells ...string) error {
	for i, c := range cells {
		cells[i] = escape(c)
	}
	if !t.a.outTTY {
		for i, c := range cells {
			if i > 0 {
				t.w.WriteString("\t")
			}
			t.w.WriteString(c)
		}
		return t.w.WriteByte('\n') // bufio keeps the first error
	}
	t.rows = append(t.rows, cells)
	if len(t.rows) == tableChunk {
		return t.print()
	}
	return nil
}

// flush prints what is left.
func (t *table) flush() error {
	if err := t.print(); err != nil {
		return err
	}
	if t.a.outTTY && !t.begun && t.none != "" {
		t.a.note("%s", t.none)
	}
	if names := t.left(); len(names) > 0 {
		t.a.note("(not shown at this width: %s)", strings.Join(names, ", "))
	}
	return t.w.Flush()
}

func (t *table) left() (names []string) {
	for i, n := range t.head {
		if t.hidden[i] {
			names = append(names, n)
		}
	}
	return names
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
			t.widths[i] = max(t.widths[i], runewidth.StringWidth(r[i]))
			right[i] = right[i] && (r[i] == unknown || strings.Trim(r[i], "0123456789") == "")
		}
	}
	if t.a.width > 0 {
		t.fit(t.a.width)
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

// fit makes a line no longer than width where the columns let it: it leaves out what may be left out until the rest fits
// when cut as far as it may be, then cuts the widest cells no further than is needed. What was shown stays shown.
func (t *table) fit(width int) {
	if !t.begun {
		spare := slices.Clone(t.spare)
		slices.SortStableFunc(spare, func(a, b string) int { return t.says(a) - t.says(b) })
		for _, n := range spare {
			if t.total(t.shortest) <= width {
				break
			}
			t.hidden[slices.Index(t.head, n)] = true
		}
	}
	for t.total(func(i int) int { return t.widths[i] }) > width {
		widest := -1
		for i := range t.head {
			if !t.hidden[i] && t.widths[i] > t.shortest(i) && (widest < 0 || t.widths[i] > t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		t.widths[widest]--
	}
}

// says is 0 for a column that has nothing to say, else 1.
func (t *table) says(name string) int {
	i := slices.Index(t.head, name)
	for _, r := range t.rows {
		if r[i] != "0" && r[i] != "no" && r[i] != "0s" && r[i] != "" {
			return 1
		}
	}
	return 0
}

func (t *table) shortest(i int) int {
	if least, ok := t.least[t.head[i]]; ok {
		return min(t.widths[i], max(least, len(t.head[i])))
	}
	return t.widths[i]
}

func (t *table) total(width func(i int) int) int {
	sum := -gap
	for i := range t.head {
		if !t.hidden[i] {
			sum += width(i) + gap
		}
	}
	return sum
}

func (t *table) line(cells []string, right []bool) {
	var b strings.Builder
	for i, c := range cells {
		if t.hidden[i] {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		if t.a.width > 0 {
			c = runewidth.Truncate(c, t.widths[i], "…")
		}
		if right[i] {
			b.WriteString(runewidth.FillLeft(c, t.widths[i]))
		} else {
			b.WriteString(runewidth.FillRight(c, t.widths[i]))
		}
	}
	t.w.WriteString(strings.TrimRight(b.String(), " ") + "\n") // bufio keeps the first error for Flush
}

func (a *app) color() bool { return a.outTTY && !a.noColor && a.getenv("NO_COLOR") == "" }
