package top

import (
	"strings"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
)

// A View is one reading, with what is known beside it. The maps are by the groups' paths.
type View struct {
	Snapshot *watch.Snapshot
	Plans    map[string]string    // their names
	Told     map[string]held.Told // what weird run has measured
	Source   Source
}

// A Source says who has read the figures.
type Source struct {
	From    string // "weird", or "weir" itself
	Version string // of weird
	Why     string // why it was not weird; empty: nobody needs to know
}

// fromWeird is who reads for several views.
const fromWeird = "weird"

// head is the beginning of the first line: where figures come from, if that is weird.
func (s Source) head() string {
	if s.From == fromWeird {
		return "from weird · "
	}
	return ""
}

// whyMost is how many lines of a terminal that takes at most.
const whyMost = 3

// lines says why figures do not come from weird. width is the terminal's, or 0: then it is one line.
func (s Source) lines(width int) []string {
	if s.Why == "" {
		return nil
	}
	text := "read by weir top itself: " + plain.Brief(s.Why)
	if width <= 0 {
		return []string{text}
	}
	all := strings.Split(cli.Wrap(text, wrapAt(width)), "\n")
	if len(all) > whyMost {
		all = all[:whyMost]
		all[whyMost-1] += " …"
	}
	return all
}

// Of is what was measured of the group of a path: by weird, which watches for longer, or else in this view.
func (b beside) Of(path string) held.Verdict {
	if v, is := b.weird[path]; is && v.State != held.NotTold {
		return v.Verdict
	}
	if b.measured == nil {
		return held.Verdict{State: held.NotTold}
	}
	return b.measured.Of(path)
}

// found is what weird has found of a group whose limits do not hold; none: nothing. width is the terminal's, or 0.
func (b beside) found(path string, width int) []string {
	v := b.weird[path]
	if strings.TrimSpace(v.Why) == "" {
		return nil
	}
	text := "weird found: " + plain.Brief(strings.TrimPrefix(v.Code+": "+v.Why, ": "))
	return strings.Split(cli.Wrap(text, wrapAt(width)), "\n")
}
