package top

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/look/watch"
)

func TestCurves(t *testing.T) {
	s := &Screen{Width: 100, Height: 30}
	for _, w := range []float64{0, 1, 4e6, 8e6} {
		g := &watch.Group{Path: "/a", Target: "unit:a", Devices: []watch.Device{{Rates: &watch.Rates{WBPS: w}}}}
		s.Show(View{Snapshot: &watch.Snapshot{Groups: []*watch.Group{g, {Path: "/new", Target: "unit:new", Devices: []watch.Device{{}}}}}})
	}
	if text, want := s.curves.lines("/a", 0), "write  ▁▅█"; len(text) != 3 || !strings.HasPrefix(text[2], want) || !strings.HasSuffix(text[2], " most 8.00 MB/s") {
		t.Errorf("%q, want %s", text, want)
	}
	if text := s.curves.lines("/new", 0); text != nil {
		t.Errorf("a group without rates: %q", text)
	}
	s.All = true
	if s.Press("enter"); !strings.Contains(s.Text(), "write  ▁▅█") {
		t.Errorf("not in the details:\n%s", s.Text())
	}
	// It has the last readings only, goes on while the screen is stopped, and ends with the group.
	s.Press("space")
	for range curveMost {
		s.Show(View{Snapshot: &watch.Snapshot{Groups: []*watch.Group{{Path: "/a", Devices: []watch.Device{{Rates: &watch.Rates{RBPS: 5}}}}}}})
	}
	if text := s.curves.lines("/a", 0); len(s.curves["/a"].all()) != curveMost || !strings.HasPrefix(text[1], "read  "+strings.Repeat("█", curveMost)) || !strings.HasSuffix(text[2], "most 0 B/s") {
		t.Errorf("%d readings: %q", len(s.curves["/a"].all()), text)
	}
	// One that rests has its past until that is too old.
	for n := range curveMost + 1 {
		s.Show(View{Snapshot: &watch.Snapshot{Groups: []*watch.Group{{Path: "/a", Devices: []watch.Device{{Rates: &watch.Rates{}}}}}}})
		rest := min(n+1, curveMost)
		want := strings.Repeat("█", curveMost-rest) + strings.Repeat(" ", rest)
		if text := s.curves.lines("/a", 0); len(text) != 3 || !strings.HasPrefix(text[1], "read  "+want+" most") {
			t.Fatalf("%d readings at rest: %q, want %q", n+1, text, want)
		}
	}
	s.Show(View{Snapshot: &watch.Snapshot{Groups: []*watch.Group{{Path: "/a", Devices: []watch.Device{{Rates: &watch.Rates{RBPS: 5}}}}}}})
	if text := s.curves.lines("/a", 0); !strings.HasPrefix(text[1], "read  "+strings.Repeat(" ", curveMost-1)+"█ most") {
		t.Errorf("after a rest: %q", text)
	}
	s.Show(View{Snapshot: &watch.Snapshot{}})
	if len(s.curves) != 0 {
		t.Errorf("%d groups that are gone", len(s.curves))
	}
}
