package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// screen draws exactly the lines there are, none wider than the terminal. What there is no room for goes from the bottom:
// the line of keys, then the title.
func (m *model) screen() string {
	if m.width <= 0 || m.height <= 0 {
		return ""
	}
	if m.help {
		return m.fit(append(strings.Split(helpText, "\n"), m.keys()))
	}
	var lines []string
	if m.height > 3 {
		lines = append(lines, m.title())
	}
	if s := m.trouble(); s != "" {
		lines = append(lines, m.paint(red, s))
	}
	rows := m.chosen()
	cols, names := m.layout()
	stream := m.streamWidth(rows, names)
	lines = append(lines, m.paint(reverse, m.head(cols, names, stream)))
	foot := 0
	if m.height > 4 {
		foot = 1
	}
	room := max(0, m.height-len(lines)-foot)
	m.top = max(0, min(m.top, len(rows)-room))
	for _, r := range rows[m.top:min(len(rows), m.top+room)] {
		lines = append(lines, m.line(r, cols, names, stream))
	}
	if len(rows) == 0 && room > 0 {
		lines = append(lines, m.nothing())
	}
	if foot > 0 {
		for len(lines) < m.height-1 {
			lines = append(lines, "")
		}
		lines = append(lines, m.keys())
	}
	return m.fit(lines)
}

func (m *model) fit(lines []string) string {
	lines = lines[:min(len(lines), m.height)]
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, m.width, "…")
	}
	return strings.Join(lines, "\n")
}

const (
	red     = "31"
	yellow  = "33"
	reverse = "7"
)

func (m *model) paint(sgr, s string) string {
	if !m.o.Color || s == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

func (m *model) title() string {
	s := fmt.Sprintf("xstreamq top  %s  %d of %d groups  every %s", m.o.Clean(m.o.Title), len(m.chosen()), len(m.rows), m.o.Interval)
	if m.filter != "" {
		s += "  filter " + m.o.Clean(m.filter)
	}
	return s
}

// trouble is a line of its own: what does not work, or that the view stands still.
func (m *model) trouble() string {
	as := "figures of " + m.read.Format(time.TimeOnly)
	switch {
	case m.partial:
		return "not all could be read: " + m.o.Clean(m.err.Error())
	case m.err != nil:
		return "the server does not answer, asking again; " + as + ": " + m.o.Clean(m.err.Error())
	case !m.asked.IsZero() && m.now.Sub(m.asked) > 2*time.Second:
		return fmt.Sprintf("no answer for %s; %s", m.now.Sub(m.asked).Round(time.Second), as)
	case m.paused:
		return "refresh is paused (p goes on); " + as
	}
	return ""
}

func (m *model) nothing() string {
	if len(m.rows) == 0 {
		return "no stream or group is known here yet"
	}
	return "no name has " + m.o.Clean(m.filter) + " in it (esc shows all)"
}

func (m *model) keys() string {
	if m.typing {
		return "filter: " + m.o.Clean(m.filter) + "_  (enter keeps it, esc clears it)"
	}
	if m.help {
		return "? closes this"
	}
	return "q quit  ? help  s sort  r reverse  / filter  p pause  up/down scroll"
}

const helpText = `Keys
  q, ctrl-c    quit                 s, S, arrows  sort by the next, the last column
  p, space     pause the refresh    r             reverse the order
  /            filter by name       up, down, page up, page down, home, end  scroll
  esc          clear the filter

Columns
  IN/s     published a second         OUT/s    handled a second
  LAG      not yet read               FLIGHT   with a handler, or read ahead for one
  RETRY    failed, to come again      DELAY    published for later, the stream's
  DEAD     dead letters               CONS     consumers
  OLDEST   age of the oldest that waits or is in flight
? is a figure that the server cannot tell. Nothing is changed by looking.
`

// layout drops columns until the names have room; the lag is dropped last.
func (m *model) layout() (cols []column, names int) {
	cols = slices.Clone(columns[1:])
	for {
		names = m.width
		for _, c := range cols {
			names -= c.width + 1
		}
		if names >= 16 || len(cols) == 0 {
			return cols, max(1, names)
		}
		if len(cols) == 1 && names >= 6 {
			return cols, names
		}
		worst := slices.MaxFunc(cols, func(a, b column) int { return a.keep - b.keep })
		cols = slices.DeleteFunc(cols, func(c column) bool { return c.keep == worst.keep })
	}
}

// streamWidth shares the names' room between stream and group.
func (m *model) streamWidth(rows []row, names int) int {
	stream, group := len("STREAMv"), len("GROUP")
	for _, r := range rows {
		stream = max(stream, ansi.StringWidth(m.o.Clean(r.Stream)))
		group = max(group, ansi.StringWidth(m.group(r)))
	}
	return min(stream, max(names/2, names-1-group))
}

func (m *model) group(r row) string {
	if r.Paused {
		return m.o.Clean(r.Group) + " (paused)"
	}
	return m.o.Clean(r.Group)
}

func (m *model) head(cols []column, names, stream int) string {
	mark := func(name, title string) string {
		if columns[m.sort].name != name {
			return title
		}
		if m.reverse {
			return title + "^"
		}
		return title + "v"
	}
	var b strings.Builder
	b.WriteString(pad(mark("name", "STREAM"), stream) + " " + pad("GROUP", names-stream-1))
	for _, c := range cols {
		b.WriteString(" " + padLeft(mark(c.name, c.title), c.width))
	}
	return pad(b.String(), m.width)
}

func (m *model) line(r row, cols []column, names, stream int) string {
	var b strings.Builder
	group := pad(m.group(r), names-stream-1)
	if r.Paused {
		group = m.paint(yellow, group)
	}
	b.WriteString(pad(m.o.Clean(r.Stream), stream) + " " + group)
	for _, c := range cols {
		cell := " " + padLeft(c.text(c.value(r)), c.width)
		if c.name == "dead" && r.Dead > 0 {
			cell = m.paint(red, cell)
		}
		b.WriteString(cell)
	}
	return b.String()
}

// pad makes s exactly w columns wide.
func pad(s string, w int) string {
	s = ansi.Truncate(s, max(0, w), "…")
	return s + strings.Repeat(" ", max(0, w-ansi.StringWidth(s)))
}

func padLeft(s string, w int) string {
	return strings.Repeat(" ", max(0, w-ansi.StringWidth(s))) + ansi.Truncate(s, w, "…")
}
