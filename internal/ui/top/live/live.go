// Package live is weir top on a terminal: it reads keys and shows the screen of package top, by
// bubbletea. It is for cmd/weird, because bubbletea is too heavy for weir: weir replaces itself by
// weird top.
package live

import (
	"context"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/top"
)

// Options say what to show, and where.
type Options struct {
	Screen  top.Screen
	Every   time.Duration // between two readings
	In, Out *os.File      // the terminal
	Sample  func(context.Context) (*watch.Snapshot, error)
}

// framesPerSec is how often bubbletea looks whether the screen has changed: a key shows within 50 ms, and
// to look 60 times a second took more of a processor than to read the groups.
const framesPerSec = 20

// Run shows the screen until a key or the context ends it, which is no error: signals are the
// context's. When it returns nobody samples any more.
func Run(ctx context.Context, o Options) error {
	m := &model{ctx: ctx, screen: o.Screen, every: o.Every, sample: o.Sample}
	// bubbletea's own handler of signals can hang: the signal that it is about to pass on has ended
	// the context, and nobody takes it any more.
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithFPS(framesPerSec)).Run()
	m.mu.Lock() // a reading may be under way
	defer m.mu.Unlock()
	m.ended = true
	switch {
	case m.failed != nil && ctx.Err() == nil:
		return m.failed
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// model is what bubbletea calls.
type model struct {
	ctx    context.Context
	screen top.Screen
	every  time.Duration
	failed error

	mu     sync.Mutex // of sample
	sample func(context.Context) (*watch.Snapshot, error)
	ended  bool
}

// A reading is what came of a sample.
type reading struct {
	snapshot *watch.Snapshot
	err      error
}

// read reads once. bubbletea calls it in a goroutine of its own.
func (m *model) read() tea.Msg {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return nil
	}
	s, err := m.sample(m.ctx)
	return reading{s, err}
}

// Init begins with a reading.
func (m *model) Init() tea.Cmd { return m.read }

// Update takes keys, sizes and readings. After a reading the next one is due.
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
		m.screen.Show(msg.snapshot)
		return m, tea.Tick(m.every, func(time.Time) tea.Msg { return m.read() })
	}
	return m, nil
}

// View is the whole terminal.
func (m *model) View() tea.View {
	v := tea.NewView(m.screen.Text())
	v.AltScreen = true
	return v
}
