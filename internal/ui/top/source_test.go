package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/lab"
)

// The first line says if figures come from weird, and the next says if they do not any more, and why. That is a few
// lines at most, whatever the reason is, and fits.
func TestSource(t *testing.T) {
	lab.Unit(t)
	for _, width := range []int{0, 60, 80, 120, 200} {
		for _, c := range []struct {
			from       Source
			has, hasNo string
		}{
			{Source{From: "weir"}, "14:03:07 · cgroup v2", "weird"},
			{Source{From: "weird", Version: "9"}, "14:03:07 · from weird · ", "itself"},
			{Source{From: "weir", Why: "weird has ended"}, "\nread by weir top itself: weird has ended\n", "from weird"},
			{Source{From: "weir", Why: "a\nb\x1b[2J" + strings.Repeat("long ", 500)}, "\nread by weir top itself: a", "\x1b[2J"},
		} {
			text := Table(View{Snapshot: host(), Source: c.from}, Options{}, width)
			if !strings.Contains(text, c.has) || strings.Contains(text, c.hasNo) {
				t.Errorf("%d columns, %+v:\n%s", width, c.from, text)
			}
			s := Screen{Width: width, Height: 24}
			s.Show(View{Snapshot: host(), Source: c.from})
			shown := s.Text()
			if !strings.Contains(shown, c.has) || strings.Contains(shown, c.hasNo) || strings.Count(shown, "\n") >= 24 {
				t.Errorf("%d columns, %+v:\n%s", width, c.from, shown)
			}
			for line := range strings.Lines(shown) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); width > 0 && n > width {
					t.Errorf("%d columns: %q has %d", width, line, n)
				}
			}
		}
	}
}

// Names of wide characters, of marks and of pictures move no column, and no line is wider than the terminal.
func TestNamesOfAnyWidth(t *testing.T) {
	lab.Unit(t)
	s := host()
	for i, name := range []string{"容器容器容器", "e\u0301e\u0301e\u0301", "\u202egnp\u200b👩\u200d👧", strings.Repeat("長", 250), strings.Repeat("x", 250), "한글"} {
		s.Groups = append(s.Groups, &watch.Group{Path: "/" + name, Target: fmt.Sprint("docker:", i, name), Devices: s.Groups[1].Devices})
	}
	for _, width := range []int{1, 20, 60, 80, 120, 200, 250} {
		screen := Screen{Width: width, Height: 40}
		screen.Show(View{Snapshot: s})
		table := screen.Text()
		screen.Press("enter")
		column := -1
		for i, line := range strings.Split(table+"\n"+screen.Text(), "\n") {
			if n := plain.Width(line); n > width {
				t.Errorf("%d columns: %q has %d", width, line, n)
			}
			at := strings.Index(line, "1.00 MB")
			if width < 60 || at < 0 {
				continue
			}
			if at = plain.Width(line[:at]); column >= 0 && at != column {
				t.Errorf("%d columns, line %d: the column is at %d, and was at %d: %q", width, i, at, column, line)
			}
			column = at
		}
		if width >= 60 && column < 0 {
			t.Errorf("%d columns: nobody writes 1.00 MB/s in\n%s", width, table)
		}
	}
}

// The time is in the zone of who looks, and not of weird.
func TestTimeIsLocal(t *testing.T) {
	lab.Unit(t)
	was := time.Local
	defer func() { time.Local = was }()
	time.Local = time.FixedZone("there", 9*3600)
	s := &watch.Snapshot{At: time.Date(2026, 1, 2, 14, 3, 7, 0, time.UTC), Version: cgroupfs.V2}
	if text := headOf(s, Source{}, 0)[0]; !strings.HasPrefix(text, "23:03:07 ") {
		t.Error(text)
	}
}

// Why weird does not tell is whole on a terminal, and takes at most three lines of it. The first line has the pressure, also
// at 60 columns.
func TestNarrowHead(t *testing.T) {
	lab.Unit(t)
	why := "connect to /run/weird/read.sock: too many levels of symbolic links; see what is at this path with ls -l, remove it"
	for _, width := range []int{0, 60, 80, 120, 200} {
		lines := headOf(host(), Source{Why: why}, width)
		if text := strings.Join(lines, " "); !strings.Contains(text, why) {
			t.Errorf("%d columns: %q", width, lines)
		}
		for _, line := range lines {
			if width > 0 && plain.Width(line) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		if text := headOf(host(), Source{From: fromWeird}, width)[0]; !strings.HasSuffix(text, " · io pressure 12 %") || width > 0 && plain.Width(text) > width {
			t.Errorf("%d columns: %q", width, text)
		}
	}
	if all := (Source{Why: strings.Repeat("why ", 200)}).lines(60); len(all) != whyMost || !strings.HasSuffix(all[whyMost-1], " …") || plain.Width(all[whyMost-1]) > 60 {
		t.Errorf("%q", all)
	}
}

// Sentences of the details are whole on a narrow terminal, and on a low one the last line says how much more there is.
func TestNarrowAndLowDetails(t *testing.T) {
	lab.Unit(t)
	for _, width := range []int{60, 80, 120} {
		s := Screen{Width: width, Height: 60, Options: Options{Filter: "docker:legacy"}}
		s.Show(View{Snapshot: host()})
		s.Press("enter")
		if text := strings.Join(strings.Fields(s.Text()), " "); !strings.Contains(text, "expected to hold: direct and synchronous writes by the kernel's throttle") || !strings.Contains(text, "nothing holds its buffered writes: ext4 with data=journal") {
			t.Errorf("%d columns:\n%s", width, s.Text())
		}
		whole := strings.Count(s.Text(), "\n")
		s.Height = 10
		if text := s.Text(); strings.Count(text, "\n") != 9 || !strings.Contains(text, fmt.Sprintf("\npage down: %d more lines", whole-9)) {
			t.Errorf("%d lines in 10:\n%s", whole, text)
		}
	}
}

// What weird has measured comes before what the view has, and its finding is among the details.
func TestWeirdHasMeasured(t *testing.T) {
	lab.Unit(t)
	const path = "/system.slice/docker-web.scope"
	v := View{Snapshot: host(), Source: Source{From: "weird"}, Told: map[string]held.Told{path: {Verdict: held.Verdict{State: held.NotHeld, Since: time.Unix(1e9, 0)}, Code: "dax", Why: "the file system writes by itself"}}}
	if text := Table(v, Options{}, 0); !strings.Contains(text, "MEASURED") || strings.Count(text, notHeldWord) != 1 {
		t.Errorf("\n%s", text)
	}
	if text := Table(v, Options{}, 60); !strings.Contains(text, "!") {
		t.Errorf("\n%s", text)
	}
	s := Screen{Width: 100, Height: 40, Options: Options{Filter: "docker:web"}}
	s.Show(v)
	s.Press("enter")
	if text := s.Text(); !strings.Contains(text, "weird found: dax: the file system writes by itself") {
		t.Errorf("\n%s", text)
	}
	v.Told = map[string]held.Told{path: {Verdict: held.Verdict{State: held.NotTold}}}
	s.Show(v)
	if text := s.Text(); strings.Contains(text, "weird found") {
		t.Errorf("\n%s", text)
	}
}
