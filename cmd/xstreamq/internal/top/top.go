// Package top is the live full-screen view of every stream and group. It only reads.
package top

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/xstreamq/xstreamq"
)

// Bounds of Options.Interval.
const (
	MinInterval = 500 * time.Millisecond
	MaxInterval = time.Minute
)

// Options of one view.
type Options struct {
	In       io.Reader
	Out      io.Writer
	Title    string // the server, for people
	First    []xstreamq.Depth
	Read     func(context.Context) ([]xstreamq.Depth, error)
	Interval time.Duration // from one answer to the next question
	Sort     string        // one of Columns
	Filter   string
	Color    bool
	Clean    func(string) string // makes a text harmless on a terminal and one line
}

// Run shows the view until the user ends it or ctx ends, and gives the terminal back as it was.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a question that is under way
	opts := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithFPS(30)}
	if !o.Color {
		opts = append(opts, tea.WithColorProfile(colorprofile.Ascii))
	}
	_, err := tea.NewProgram(newModel(ctx, o), opts...).Run()
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil // a signal is a way to end it
	}
	return err
}

// Messages of the program.
type (
	answer struct {
		depths []xstreamq.Depth
		err    error
		at     time.Time
	}
	due   struct{} // it is time for the next question
	clock struct{} // a second went by
)

type model struct {
	ctx context.Context //nolint:containedctx // bubbletea's commands are given none
	o   Options

	width, height int
	rows          []row
	last          map[xstreamq.GroupRef]reading
	read          time.Time // of what is shown
	err           error     // of the last question
	partial       bool      // it was answered beside err
	asked         time.Time // zero: no question is under way
	now           time.Time

	sort    int // of columns
	reverse bool
	filter  string
	typing  bool // the filter
	paused  bool
	help    bool
	top     int // first row shown
}

func newModel(ctx context.Context, o Options) *model {
	m := &model{ctx: ctx, o: o, width: 80, height: 24, now: time.Now(), filter: o.Filter, sort: max(0, columnIndex(o.Sort))}
	m.take(answer{depths: o.First, at: m.now})
	return m
}

func (m *model) Init() tea.Cmd { return tea.Batch(m.later(), tick()) }

func tick() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return clock{} }) }

func (m *model) later() tea.Cmd {
	return tea.Tick(m.o.Interval, func(time.Time) tea.Msg { return due{} })
}

// ask puts one question. The next one waits for its answer, so a slow server is asked less often.
func (m *model) ask() tea.Cmd {
	m.asked = time.Now()
	return func() tea.Msg {
		d, err := m.o.Read(m.ctx)
		return answer{d, err, time.Now()}
	}
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case clock:
		m.now = time.Now()
		return m, tick()
	case due:
		if !m.paused && m.asked.IsZero() {
			return m, m.ask()
		}
	case answer:
		m.asked = time.Time{}
		m.take(msg)
		return m, m.later()
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		if m.typing {
			m.filter += strings.ReplaceAll(msg.Content, "\n", "")
		}
	}
	return m, nil
}

// take keeps what was read. What could be read of a failing server is shown beside the error.
func (m *model) take(a answer) {
	m.err, m.partial = a.err, a.err != nil && len(a.depths) > 0
	if a.err != nil && len(a.depths) == 0 {
		return
	}
	m.rows, m.last = rated(a.depths, a.at, m.last)
	m.read, m.now = a.at, a.at
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if m.typing {
		m.typeFilter(name, k.Text)
		return nil
	}
	switch name {
	case "q":
		return tea.Quit
	case "esc":
		if m.help {
			m.help = false
		} else {
			m.filter = ""
		}
	case "?", "h":
		m.help = !m.help
	case "/":
		m.typing, m.help = true, false
	case "s", "right", "l":
		m.sort, m.reverse = (m.sort+1)%len(columns), false
	case "S", "shift+s", "left":
		m.sort, m.reverse = (m.sort+len(columns)-1)%len(columns), false
	case "r":
		m.reverse = !m.reverse
	case "p", "space":
		m.paused = !m.paused
		if !m.paused && m.asked.IsZero() {
			return m.ask()
		}
	case "down", "j":
		m.top++
	case "up", "k":
		m.top--
	case "pgdown":
		m.top += max(1, m.height-5)
	case "pgup":
		m.top -= max(1, m.height-5)
	case "home", "g":
		m.top = 0
	case "end", "G", "shift+g":
		m.top = len(m.rows)
	}
	return nil
}

func (m *model) typeFilter(name, text string) {
	switch name {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	default:
		m.filter += text
	}
	m.top = 0
}

func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	return v
}
