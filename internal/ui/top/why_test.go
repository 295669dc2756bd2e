package top

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/look/why"
)

// weir why is asked once when the details of a group are opened, and its findings are among them.
func TestAsks(t *testing.T) {
	s := screen(80, 40)
	if _, asks := s.Asks(); asks {
		t.Error("asks before details are open")
	}
	s.Press("down")
	s.Press("enter")
	g, asks := s.Asks()
	if !asks || g.Target != "docker:web" || !strings.Contains(s.Text(), "asking …") {
		t.Fatalf("%v, %v in\n%s", g, asks, s.Text())
	}
	s.Show(View{Snapshot: host()})
	if _, again := s.Asks(); again {
		t.Error("asks again at the next reading")
	}
	s.Answer("/elsewhere", nil, nil)
	s.Answer(g.Path, []why.Finding{
		{Code: "writeback-elsewhere", Severity: why.Breaks, Text: "The kernel charges the writeback of \x1b[2J to the root group, which no limit of this group binds. More."},
		{Code: "swap", Severity: why.Note, Text: "Swap."}}, nil)
	want := "a limit does not hold\n  writeback-elsewhere (breaks): The kernel charges the writeback of \\x1b[2J to\n    the root group, which no limit of this group binds.\n  swap (note): Swap.\n"
	if !strings.Contains(s.Text(), want) {
		t.Errorf("%q is not in\n%s", want, s.Text())
	}
	s.Press("up") // another group's details
	if g, asks = s.Asks(); !asks || !strings.HasPrefix(g.Target, "docker:legacy") || strings.Contains(s.Text(), "swap") {
		t.Errorf("%v, %v in\n%s", g, asks, s.Text())
	}
	s.Answer(g.Path, nil, errors.New("no such group"))
	if !strings.Contains(s.Text(), "  weir why cannot tell: no such group\n") {
		t.Error(s.Text())
	}
	s.Press("esc")
	_, _ = s.Asks()
	s.Press("enter")
	if _, asks = s.Asks(); !asks {
		t.Error("does not ask when they are opened again")
	}
	s.Answer(g.Path, nil, nil)
	if !strings.Contains(s.Text(), "  it has no finding\n") {
		t.Error(s.Text())
	}
}

// A group without limits has nothing that could not hold.
func TestAsksNothingWithoutLimits(t *testing.T) {
	s := screen(80, 40, "pgdown", "enter")
	if !strings.Contains(s.Text(), "unit:system.slice") {
		t.Fatal(s.Text())
	}
	if g, asks := s.Asks(); asks {
		t.Errorf("asks about %v", g)
	}
}
