// Package live is weir top on a terminal: it reads keys and shows the screen of package top, by
// bubbletea. It is for cmd/weird, because bubbletea is too heavy for weir: weir replaces itself by
// weird top.
package live

import (
	"context"
	"os"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/ui/top"
	"github.com/weir-io/weir/internal/ui/tui"
)

// Options say what to show, and where.
type Options struct {
	Screen  top.Screen
	In, Out *os.File // the terminal
	// Next waits for the next reading.
	Next func(context.Context) (top.View, error)
	// Why asks weir why about a target, by its name, when the details of its group are opened. One
	// question is asked at a time. nil: nobody can be asked.
	Why func(ctx context.Context, target string) ([]why.Finding, error)
}

// framesPerSec is how often bubbletea looks whether the screen has changed: a key shows within 100 ms, and
// to look 60 times a second took more of a processor than to read the groups.
const framesPerSec = 10

// Run shows the screen until a key or the context ends it, which is no error: signals are the
// context's. When it returns nobody samples or asks any more.
func Run(ctx context.Context, o Options) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	m := &model{screen: o.Screen, next: o.Next, why: o.Why, asking: asking}
	// bubbletea's own handler of signals can hang: the signal that it is about to pass on has ended
	// the context, and nobody takes it any more.
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithFPS(framesPerSec), tea.WithFilter(sized)).Run()
	stop()
	m.mu.Lock() // a reading may be under way
	defer m.mu.Unlock()
	m.whyMu.Lock() // or a question
	defer m.whyMu.Unlock()
	m.ended = true
	switch {
	case m.failed != nil && ctx.Err() == nil:
		return m.failed
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// sized leaves out a size that no terminal has: see tui.CanShow.
func sized(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, is := msg.(tea.WindowSizeMsg); is && size.Width*size.Height > tui.CellsMost {
		return nil
	}
	return msg
}

// model is what bubbletea calls.
type model struct {
	screen top.Screen
	failed error

	mu    sync.Mutex // of next
	next  func(context.Context) (top.View, error)
	ended bool // both locks are for it

	why    func(context.Context, string) ([]why.Finding, error)
	whyMu  sync.Mutex      // of why
	asking context.Context // of readings and questions: it ends with the screen
	asked  bool            // a question waits for its answer
}

// A reading is what came of one.
type reading struct {
	view top.View
	err  error
}

// read reads once. bubbletea calls it in a goroutine of its own.
func (m *model) read() tea.Msg {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return nil
	}
	v, err := m.next(m.asking)
	return reading{v, err}
}

// An answer is what weir why says of a group.
type answer struct {
	path     string
	findings []why.Finding
	err      error
}

// ask is what asks weir why, if the screen has a question; nil: it has none. bubbletea calls it in a
// goroutine of its own.
func (m *model) ask() tea.Cmd {
	if m.why == nil || m.asked {
		return nil
	}
	g, asks := m.screen.Asks()
	if !asks {
		return nil
	}
	m.asked = true
	return func() tea.Msg {
		m.whyMu.Lock()
		defer m.whyMu.Unlock()
		if m.ended {
			return nil
		}
		findings, err := m.why(m.asking, g.Target)
		return answer{g.Path, findings, err}
	}
}

// Init begins with a reading.
func (m *model) Init() tea.Cmd { return m.read }

// Update takes keys, sizes, readings and answers. After a reading the next one is due.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.Width, m.screen.Height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch key := msg.String(); {
		case key == "ctrl+z":
			return m, tea.Suspend
		case m.screen.Press(key):
			return m, tea.Quit
		}
	case reading:
		if m.failed = msg.err; m.failed != nil {
			return m, tea.Quit
		}
		m.screen.Show(msg.view)
		return m, tea.Batch(m.ask(), m.read)
	case answer:
		m.asked = false
		m.screen.Answer(msg.path, msg.findings, msg.err)
	}
	return m, m.ask()
}

// View is the whole terminal.
func (m *model) View() tea.View {
	v := tea.NewView(m.screen.Text())
	v.AltScreen = true
	return v
}
