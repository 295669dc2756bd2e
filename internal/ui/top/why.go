package top

import (
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/ui/cli"
)

// A reason is what weir why says of the group whose details are open.
type reason struct {
	path     string // of the group; empty: nobody was asked
	told     bool   // what follows is the answer
	findings []why.Finding
	err      error
}

// Asks returns the group of whose limits weir why is to be asked now: once when the details of a limited
// group are opened, and not again as long as they are open. Answer takes the answer.
func (s *Screen) Asks() (g *watch.Group, asks bool) {
	if !s.detail {
		s.reason = reason{}
		return nil, false
	}
	rows := s.rows()
	if len(rows) == 0 {
		return nil, false
	}
	g = rows[s.at(rows)].Group
	if !g.Limited() || g.Path == s.reason.path {
		return nil, false
	}
	s.reason = reason{path: g.Path}
	return g, true
}

// Answer takes what weir why says of the group of a path. If its details are not open any more, nobody
// wants to know.
func (s *Screen) Answer(path string, findings []why.Finding, err error) {
	if s.reason.path == path {
		s.reason = reason{path: path, told: true, findings: findings, err: err}
	}
}

// lines are the findings of a group, each with its code and its first sentence. width is the terminal's,
// or 0.
func (r reason) lines(g *watch.Group, width int) (all []string) {
	switch {
	case r.path != g.Path:
		return nil
	case !r.told:
		return []string{"  asking …"}
	case r.err != nil:
		return []string{"  weir why cannot tell: " + plain.Line(r.err.Error())}
	case len(r.findings) == 0:
		return []string{"  it has no finding"}
	}
	for _, f := range r.findings {
		text := plain.Brief(f.Code + " (" + string(f.Severity) + "): " + firstSentence(f.Text))
		for i, line := range strings.Split(cli.Wrap(text, wrapAt(width)), "\n") {
			if i > 0 {
				line = "  " + line
			}
			all = append(all, "  "+line)
		}
	}
	return all
}

// wrapAt is how long a line of a finding may be, without what is put before it.
func wrapAt(width int) int {
	const indent = 4
	if width < 2*indent {
		return 80
	}
	return width - indent
}

// firstSentence ends where the next one begins.
func firstSentence(text string) string {
	if first, _, more := strings.Cut(text, ". "); more {
		return first + "."
	}
	return text
}
