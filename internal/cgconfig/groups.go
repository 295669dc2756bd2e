package cgconfig

import (
	"maps"
	"slices"
	"sort"
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

// Nests finds the first pairs of such groups, at most so many, and counts the others: of n groups, each
// below the one before it, there are n² / 2.
func Nests(groups []Group, most int) (nests []Nest, more int) {
	at := make(map[string]int, len(groups))
	for i, g := range groups {
		at[g.Path] = i
	}
	paths := slices.Sorted(maps.Keys(at))
	for _, above := range groups {
		begin := strings.TrimSuffix(above.Path, "/") + "/"
		from, _ := slices.BinarySearch(paths, begin)
		below := paths[from:]
		end := sort.Search(len(below), func(i int) bool { return !strings.HasPrefix(below[i], begin) })
		below = below[:end]
		if above.IsRoot() && len(below) > 0 { // it is among them
			below = below[1:]
		}
		if left := most - len(nests); left > 0 && len(below) > 0 {
			in := make([]int, len(below))
			for i, path := range below {
				in[i] = at[path]
			}
			slices.Sort(in)
			for _, i := range in[:min(left, len(in))] {
				nests = append(nests, Nest{above, groups[i]})
			}
		}
		more += len(below)
	}
	return nests, more - len(nests)
}
