package tui

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/look/trace"
)

// writes is a second in which a group wrote, and reclaimed memory for it.
func writes(count uint64, took time.Duration) trace.Report {
	const us = time.Microsecond
	return trace.Report{Took: took, Ops: []trace.OpsReport{{
		Kind: trace.Write, Count: count, P50: 31 * us, P99: 212 * us, Max: 9100 * us,
		Split:    trace.Split{trace.CPU: 3e9, trace.MemcgReclaim: 1e9},
		AboveP50: trace.Split{trace.CPU: 170e6, trace.MemcgReclaim: 830e6},
		Buckets:  []trace.Bucket{{From: 28 * us, To: 32 * us, Count: count - 1}, {From: 4096 * us, To: 4608 * us, Count: 1}},
	}}}
}

func TestKeys(t *testing.T) {
	for keys, want := range map[string]press{
		"q": pressQuit, "Q": pressQuit, "\x03": pressQuit, "\x1b": pressQuit, "xq": pressQuit,
		"\x1a": pressSuspend,
		"":     pressNothing, "x": pressNothing, "\r": pressNothing, "\x1b[A": pressNothing, "\x1bOQ": pressNothing,
	} {
		if got := pressed([]byte(keys)); got != want {
			t.Errorf("%q: %d, want %d", keys, got, want)
		}
	}
}

func TestTheWindowEndsTheView(t *testing.T) {
	if (model{window: 2 * time.Second, frame: trace.Frame{Passed: 1900 * time.Millisecond}}).over() {
		t.Error("it ends before the window is over")
	}
	if !(model{window: 2 * time.Second, frame: trace.Frame{Passed: 2 * time.Second}}).over() {
		t.Error("it does not end with the window")
	}
}

func TestView(t *testing.T) {
	m := model{title: "tracing docker:web\x1b[2J", window: 10 * time.Second, width: 100, height: 40,
		frame: trace.Frame{Whole: writes(4000, 4*time.Second), Last: writes(500, 1*time.Second), Passed: 4 * time.Second}}
	view := m.text()
	for _, want := range []string{
		`6 s left · q ends the trace and prints the report · tracing docker:web\x1b[2J`,
		"write                     rate       p50       p99       max",
		"  last second            500/s     31 µs    212 µs    4.6 ms", // the longest was before
		"  whole time           1 000/s     31 µs    212 µs    4.6 ms",
		"of above p50",
		"  memcg reclaim     ████████████████████████▉       83 %   ████████████████████████▉       83 %",
		"  page cache, CPU   █████▏                          17 %   █████▏                          17 %",
	} {
		if !strings.Contains(view, want) {
			t.Errorf("%q is missing in\n%s", want, view)
		}
	}
}

func TestViewOfNothing(t *testing.T) {
	m := model{title: "tracing", window: time.Minute}
	if s := m.text(); !strings.Contains(s, "nothing seen yet") || !strings.Contains(s, "1 min 0 s left") {
		t.Error(s)
	}
	// A kind that was seen, and not in the last second.
	m.frame = trace.Frame{Whole: writes(4000, 4*time.Second), Last: trace.Report{Took: time.Second}, Passed: 4 * time.Second}
	if s := m.text(); !strings.Contains(s, "last second              0/s         –") {
		t.Error(s)
	}
}

// What does not fit is left out, and the rest stays in its place.
func TestViewFits(t *testing.T) {
	whole := writes(4000, 4*time.Second)
	whole.Ops = append(whole.Ops, whole.Ops[0], whole.Ops[0])
	whole.Behind = []trace.BehindReport{{Write: true, Requests: 10, Device: time.Second}}
	for _, size := range []struct{ width, height int }{{200, 60}, {80, 24}, {40, 10}, {10, 3}, {1, 1}} {
		m := model{title: "tracing the whole host", window: time.Minute, frame: trace.Frame{Whole: whole, Last: whole}, width: size.width, height: size.height}
		lines := strings.Split(m.text(), "\n")
		if len(lines) > size.height {
			t.Errorf("%d lines of %d", len(lines), size.height)
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > size.width {
				t.Errorf("%d columns of %d: %s", n, size.width, line)
			}
		}
	}
}
