package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weir-io/weir/internal/trace"
)

// A Frame is what there is to see at one moment.
type Frame struct {
	Whole  trace.Report // from the beginning on
	Last   trace.Report // since the frame before
	Passed time.Duration
}

// model is the view's state. It is a value: Update returns another.
type model struct {
	title         string
	window        time.Duration
	frame         Frame
	width, height int // of the terminal; 0: not known yet
}

// Init asks for nothing: frames come by themselves.
func (m model) Init() tea.Cmd { return nil }

// Update takes a frame, a key, or a new size.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case Frame:
		m.frame = msg
		if msg.Passed >= m.window {
			return m, tea.Quit
		}
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "Q", "ctrl+c", "esc":
			return m, tea.Quit
		case "ctrl+z":
			return m, tea.Suspend
		}
	}
	return m, nil
}

// View fills the terminal; what was there comes back afterwards.
func (m model) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	return v
}
