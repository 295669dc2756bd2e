package tui

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/weir-io/weir/internal/trace"
)

// writes is a second in which a group wrote, and reclaimed memory for it.
func writes(count uint64, seconds float64) trace.Report {
	return trace.Report{Seconds: seconds, Ops: []trace.OpsReport{{
		Kind: "write", Count: count, P50: 31, P99: 212, Max: 9100,
		Split:    map[string]float64{"cpu": 3, "memcg_reclaim": 1},
		AboveP50: map[string]float64{"cpu": 0.17, "memcg_reclaim": 0.83},
		Verdict:  trace.Verdict{Of: "above_p50"},
		Buckets:  []trace.Bucket{{From: 28, To: 32, Count: count - 1}, {From: 4096, To: 4608, Count: 1}},
	}}}
}

// after is a model that has got some messages, and whether it wants to quit.
func after(t *testing.T, m model, all ...tea.Msg) (model, bool) {
	t.Helper()
	quits := false
	for _, msg := range all {
		next, cmd := m.Update(msg)
		m = next.(model)
		if cmd != nil {
			_, quit := cmd().(tea.QuitMsg)
			quits = quits || quit
		}
	}
	return m, quits
}

func key(r rune, mod tea.KeyMod) tea.KeyPressMsg {
	return tea.KeyPressMsg{Code: r, Text: string(r), Mod: mod}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		key   tea.KeyPressMsg
		quits bool
	}{
		{key('q', 0), true},
		{tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}, true},
		{tea.KeyPressMsg{Code: tea.KeyEscape}, true},
		{key('x', 0), false},
		{tea.KeyPressMsg{Code: tea.KeyEnter}, false},
	} {
		if _, quits := after(t, model{window: time.Second}, c.key); quits != c.quits {
			t.Errorf("%s: quits %v, want %v", c.key, quits, c.quits)
		}
	}
}

func TestTheWindowEndsTheView(t *testing.T) {
	m := model{window: 2 * time.Second}
	if _, quits := after(t, m, Frame{Passed: 1900 * time.Millisecond}); quits {
		t.Error("it ends before the window is over")
	}
	if _, quits := after(t, m, Frame{Passed: 2 * time.Second}); !quits {
		t.Error("it does not end with the window")
	}
}

func TestView(t *testing.T) {
	m, _ := after(t, model{title: "tracing docker:web\x1b[2J", window: 10 * time.Second}, tea.WindowSizeMsg{Width: 100, Height: 40},
		Frame{Whole: writes(4000, 4), Last: writes(500, 1), Passed: 4 * time.Second})
	view := m.View()
	if !view.AltScreen {
		t.Error("what was on the terminal would be lost")
	}
	for _, want := range []string{
		`6 s left · q ends it and prints the report · tracing docker:web\x1b[2J`,
		"write                     rate       p50       p99       max",
		"  last second            500/s     31 µs    212 µs    4.6 ms", // the longest was before
		"  whole time           1 000/s     31 µs    212 µs    4.6 ms",
		"of above p50",
		"  memcg reclaim     ████████████████████████▉       83 %   ████████████████████████▉       83 %",
		"  page cache, CPU   █████▏                          17 %   █████▏                          17 %",
	} {
		if !strings.Contains(view.Content, want) {
			t.Errorf("%q is missing in\n%s", want, view.Content)
		}
	}
}

func TestViewOfNothing(t *testing.T) {
	m, _ := after(t, model{title: "tracing", window: time.Minute})
	if s := m.text(); !strings.Contains(s, "nothing seen yet") || !strings.Contains(s, "1 min 0 s left") {
		t.Error(s)
	}
	// A kind that was seen, and not in the last second.
	m, _ = after(t, m, Frame{Whole: writes(4000, 4), Last: trace.Report{Seconds: 1}, Passed: 4 * time.Second})
	if s := m.text(); !strings.Contains(s, "last second              0/s         –") {
		t.Error(s)
	}
}

// What does not fit is left out, and the rest stays in its place.
func TestViewFits(t *testing.T) {
	whole := writes(4000, 4)
	whole.Ops = append(whole.Ops, whole.Ops[0], whole.Ops[0])
	whole.Behind = []trace.BehindReport{{Direction: "write", Requests: 10, DeviceSeconds: 1}}
	for _, size := range []tea.WindowSizeMsg{{Width: 200, Height: 60}, {Width: 80, Height: 24}, {Width: 40, Height: 10}, {Width: 10, Height: 3}, {Width: 1, Height: 1}} {
		m, _ := after(t, model{title: "tracing the whole host", window: time.Minute}, size, Frame{Whole: whole, Last: whole})
		lines := strings.Split(m.text(), "\n")
		if len(lines) > size.Height {
			t.Errorf("%d lines of %d", len(lines), size.Height)
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > size.Width {
				t.Errorf("%d columns of %d: %s", n, size.Width, line)
			}
		}
	}
}
