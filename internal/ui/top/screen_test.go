package top

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/look/watch"
)

func screen(width, height int, keys ...string) *Screen {
	s := &Screen{Width: width, Height: height}
	s.Show(View{Snapshot: host()})
	for _, k := range keys {
		s.Press(k)
	}
	return s
}

func TestScreens(t *testing.T) {
	for _, width := range []int{60, 80, 120, 200} {
		golden(t, fmt.Sprintf("screen-%d.txt", width), screen(width, 24).Text()+"\n")
	}
	golden(t, "help.txt", screen(100, 24, "?").Text()+"\n")
}

// chosen is the line of the cursor.
func chosen(s *Screen) string {
	for line := range strings.Lines(s.Text()) {
		if strings.HasPrefix(line, "▸") {
			return line
		}
	}
	return ""
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		keys string
		want string // the chosen line has it, or the text
	}{
		{"", "▸ docker:legacy"},
		{"down", "▸ docker:web"},
		{"j j k", "▸ docker:web"},
		{"up", "▸ docker:legacy"},
		{"pgdown", "▸ unit:system.slice"},
		{"j r", "▸ docker:web"},           // the cursor stays at its group
		{"right", "▸ unit:system.slice"},  // by wait
		{"left", "▸ unit:system.slice"},   // by write
		{"r", "▸ unit:system.slice"},      // the other way round
		{"/ w e b enter", "▸ docker:web"}, // a filter
		{"/ w e b", "/web▏"},              // while it is typed
		{"/ q backspace esc", "unit:system.slice"},
		{"/ w e b enter esc", "▸ docker:legacy"},
		{"t a", "▸ unit:idle.slice"},
		{"space", "frozen (space: go on)"},
		{"?", "means that a value is unknown"},
		{"? ?", "▸ docker:legacy"},
		{"down enter", "cgroup /system.slice/docker-web.scope"},
		{"down enter esc", "▸ docker:web"},
		{"down enter enter", "▸ docker:web"},
		{"/ n o n e enter", "none has none in its name"},
		{"/ n o n e enter enter", "none has none in its name"},
	} {
		if s := screen(110, 24, strings.Fields(c.keys)...); !strings.Contains(s.Text(), c.want) {
			t.Errorf("%q: %q is not in\n%s", c.keys, c.want, s.Text())
		}
	}
	for key, want := range map[string]bool{"q": true, "ctrl+c": true, "x": false, "esc": false} {
		if got := screen(80, 24).Press(key); got != want {
			t.Errorf("%s quits: %v", key, got)
		}
	}
	if s := screen(80, 24, "/"); s.Press("q") || !s.Press("ctrl+c") {
		t.Error("q belongs into the filter, and ctrl+c does not")
	}
}

// A paused screen stays as it is. The cursor goes to the first group if its own has gone.
func TestShow(t *testing.T) {
	s := screen(100, 24, "down", "space")
	before := s.Text()
	s.Show(View{Snapshot: &watch.Snapshot{}})
	if s.Text() != before {
		t.Error("it changes while it is stopped")
	}
	s.Press("space")
	next := host()
	next.Groups = next.Groups[4:]
	s.Show(View{Snapshot: next})
	if !strings.HasPrefix(chosen(s), "▸ docker:legacy") {
		t.Error(s.Text())
	}
	if empty := (&Screen{Width: 80, Height: 24}); !strings.Contains(empty.Text(), "reading …") || empty.Press("enter") || empty.Press("down") {
		t.Error(empty.Text())
	}
}

// Whatever the size, the screen fits, the cursor is on it, and the keys are below.
func TestScreenFits(t *testing.T) {
	many := host()
	for i := range 300 {
		g := *many.Groups[3]
		g.Path, g.Target = fmt.Sprintf("/many/%d", i), fmt.Sprintf("docker:many-%d", i)
		many.Groups = append(many.Groups, &g)
	}
	for _, size := range []struct{ width, height int }{{250, 60}, {80, 24}, {60, 10}, {30, 5}, {10, 3}} {
		for _, keys := range [][]string{nil, {"?"}, {"enter"}, {"pgdown", "pgdown", "pgdown"}, {"/", "1"}} {
			s := screen(size.width, size.height)
			s.Color = true
			s.Show(View{Snapshot: many})
			for _, k := range keys {
				s.Press(k)
			}
			text := s.Text()
			all := strings.Split(text, "\n")
			if len(all) > size.height {
				t.Errorf("%v %v: %d lines", size, keys, len(all))
			}
			for _, line := range all {
				for _, code := range []string{bold, red, yellow, normal} {
					line = strings.ReplaceAll(line, code, "")
				}
				if n := utf8.RuneCountInString(line); n > size.width || strings.Contains(line, "\x1b") {
					t.Errorf("%v %v: %d columns: %q", size, keys, n, line)
				}
			}
			if size.height >= 10 && len(keys) != 1 && !strings.Contains(text, "▸") {
				t.Errorf("%v %v: no cursor in\n%s", size, keys, text)
			}
		}
	}
}

// Without colours there is no control code at all; with them, what needs a look is painted.
func TestColor(t *testing.T) {
	s := screen(120, 24)
	if strings.Contains(s.Text(), "\x1b") {
		t.Error("painted without colours")
	}
	s.Color = true
	for _, want := range []string{bold + "  TARGET", red + "▸ docker:legacy"} {
		if !strings.Contains(s.Text(), want) {
			t.Errorf("%q is not in %q", want, s.Text())
		}
	}
	g := *host().Groups[4]
	g.Devices[0].Rates = nil
	if colorOf(&g) != yellow || colorOf(host().Groups[3]) != "" {
		t.Errorf("%q, %q", colorOf(&g), colorOf(host().Groups[3]))
	}
}

// A group whose limit was measured as not held is red, has a mark where there is no room for the
// word, and says so in a column where there is.
func TestMeasuredAsNotHeld(t *testing.T) {
	s := &Screen{Width: 60, Height: 60, Color: true}
	for n := range 8 {
		now := host()
		now.At = now.At.Add(time.Duration(n) * time.Second)
		g := now.Groups[1] // 10 % of its limit
		g.Devices[0].Rates.WBPS = 11e6
		g.Devices[0].Total.WrittenBytes += uint64(11_000_000 * n)
		now.Groups = []*watch.Group{g}
		s.Show(View{Snapshot: now})
	}
	for width, want := range map[int]string{60: red + "▸ pod:ci/build-7     2.10 MB   11.0 MB      write 110 % !" + normal, 200: "NOT HELD" + normal} {
		s.Width = width
		if text := s.Text(); !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}

// The details of a group say what was measured of its limit since the screen is there.
func TestMeasured(t *testing.T) {
	s := &Screen{Width: 120, Height: 60}
	for n := range 8 {
		now := host()
		now.At = now.At.Add(time.Duration(n) * time.Second)
		for _, g := range now.Groups {
			if g.Target == "docker:web" {
				g.Devices[0].Total.WrittenBytes += uint64(9_980_000 * n)
			}
		}
		s.Show(View{Snapshot: now})
	}
	for width, want := range map[int]bool{100: false, 124: true, 200: true} {
		s.Width = width
		text := s.Text()
		_, row, _ := strings.Cut(text, "docker:web ")
		row, _, _ = strings.Cut(row, "\n")
		if strings.Contains(text, "EXPECTED TO HOLD") && strings.Contains(text, "  MEASURED") != want || strings.HasSuffix(strings.TrimRight(row, " "), "  held") != want {
			t.Errorf("%d columns:\n%s", width, text)
		}
	}
	s.Width = 120
	s.Press("down")
	s.Press("enter")
	if text := s.Text(); !strings.Contains(text, "measured, write: held: 9.98 MB/s over 7.0 s") {
		t.Errorf("the details are\n%s", text)
	}
}

// In a narrow terminal the details break between words: nothing of them is cut.
func TestDetailsBreak(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		s := screen(width, 100, "enter")
		text := s.Text()
		words := strings.Join(strings.Fields(text), " ")
		all := host().Groups
		g := all[slices.IndexFunc(all, func(g *watch.Group) bool { return strings.HasPrefix(g.Target, "docker:legacy") })]
		for _, line := range append(Detail(g, "", s.measured.Of(g.Path)), "most 48.1 MB/s") {
			if whole := strings.Join(strings.Fields(line), " "); !strings.Contains(words, whole) {
				t.Errorf("%d columns: %q is not in\n%s", width, whole, text)
			}
		}
	}
	if text := screen(60, 100, "enter").Text(); !strings.Contains(text, "\n      1 200 ops in all\n") {
		t.Errorf("a figure is broken:\n%s", text)
	}
	for _, lines := range [][]string{{"   "}, {strings.Repeat("x", 99)}, {strings.Repeat(" ", 99) + "x y"}, {"x " + strings.Repeat("y", 99)}} {
		for width := range 30 {
			if got := strings.Join(wrapped(lines, width), ""); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(lines[0], " ", "") {
				t.Errorf("%q in %d columns is %q", lines, width, got)
			}
		}
	}
}

// Details that are longer than the terminal say so, and go on with page down.
func TestDetailsScroll(t *testing.T) {
	s := screen(80, 12, "enter")
	first := s.Text()
	if !strings.HasPrefix(first, "docker:legacy") || !strings.Contains(first, "\npage down: ") || strings.Contains(first, "most ") {
		t.Fatal(first)
	}
	for range 5 {
		s.Press("pgdown")
	}
	last := s.Text()
	if strings.Contains(last, "page down: ") || !strings.Contains(last, "most 48.1 MB/s\nq quit") || len(strings.Split(last, "\n")) != 12 {
		t.Error(last)
	}
	if s.Press("pgup"); s.Text() == last {
		t.Error("page up goes nowhere")
	}
	for range 5 {
		s.Press("pgup")
	}
	if s.Text() != first {
		t.Error(s.Text())
	}
	for _, key := range []string{"pgdown", "down"} {
		s.Press(key)
	}
	if text := s.Text(); !strings.HasPrefix(text, "docker:web\n") {
		t.Errorf("another group does not begin at its begin:\n%s", text)
	}
}
