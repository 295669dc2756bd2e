package cgconfig

import (
	"strings"

	"github.com/weir-io/weir/internal/limit"
)

// A Group is a group with all its limits.
type Group struct {
	Path   string // "/web/static"
	File   string // that names it first
	Line   int    // of its section there
	Limits []limit.Asked
}

// Target spells the group as a target.
func (g Group) Target() string { return "cgroup:" + g.Path }

// IsRoot reports whether it is the root group, whose limits apply to all processes on cgroup v1.
func (g Group) IsRoot() bool { return g.Path == "/" }

// Groups joins the limits of each group, in the order in which the groups are named.
func Groups(limits []GroupLimit) []Group {
	var groups []Group
	place := map[string]int{}
	for _, l := range limits {
		i, known := place[l.Group]
		if !known {
			i = len(groups)
			place[l.Group] = i
			groups = append(groups, Group{Path: l.Group, File: l.File, Line: l.Line})
		}
		groups[i].Limits = append(groups[i].Limits, limit.Asked{On: l.Device.String(), Limit: l.Limit})
	}
	return groups
}

// A Nest is a group below another group that has limits too. On cgroup v2 the limits of both apply
// to the inner one. On v1, for which most configurations were written, only its own do.
type Nest struct{ Outer, Inner Group }

// Nests finds all pairs of such groups.
func Nests(groups []Group) []Nest {
	var nests []Nest
	for _, above := range groups {
		for _, g := range groups {
			if g.Path != above.Path && strings.HasPrefix(g.Path, strings.TrimSuffix(above.Path, "/")+"/") {
				nests = append(nests, Nest{above, g})
			}
		}
	}
	return nests
}
