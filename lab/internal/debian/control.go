package debian

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// lineMax bounds one line of control data: the longest known, a kernel's
// Provides, is below 100 kB.
const lineMax = 4 << 20

// A stanza is one paragraph of control data (deb822(5)): fields by lower-case
// name. Continuation lines are kept as they stand, each after a newline.
type stanza map[string]string

// parseControl reads paragraphs separated by blank lines.
func parseControl(r io.Reader) ([]stanza, error) {
	var all []stanza
	var cur stanza
	last := ""
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineMax)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			cur, last = nil, ""
		case line[0] == ' ' || line[0] == '\t':
			if last == "" {
				return nil, fmt.Errorf("parse control data: line %d: continuation of nothing", n)
			}
			cur[last] += "\n" + line
		default:
			name, value, ok := strings.Cut(line, ":")
			if !ok || name == "" {
				return nil, fmt.Errorf("parse control data: line %d: no field name in %q", n, line)
			}
			if cur == nil {
				cur = stanza{}
				all = append(all, cur)
			}
			last = strings.ToLower(strings.TrimSpace(name))
			if _, twice := cur[last]; twice {
				return nil, fmt.Errorf("parse control data: line %d: field %s twice", n, name)
			}
			cur[last] = strings.TrimSpace(value)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("parse control data: %w", err)
	}
	return all, nil
}

// words splits a field at white space, across continuation lines.
func (s stanza) words(field string) []string { return strings.Fields(s[field]) }

// dependencies lists the packages of a Depends field in its order: of
// alternatives the first, without versions, architectures or profiles.
func dependencies(field string) []string {
	var names []string
	for _, clause := range strings.Split(field, ",") {
		first, _, _ := strings.Cut(clause, "|")
		name := strings.TrimSpace(first)
		if i := strings.IndexAny(name, " \t\n(["); i >= 0 {
			name = name[:i]
		}
		name, _, _ = strings.Cut(name, ":")
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}
