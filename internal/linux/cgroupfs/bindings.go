package cgroupfs

import (
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Binding is what binds a group on one device.
type Binding struct {
	Device blkdev.Number
	Limit  limit.Limit // of each rate, the lowest number that binds it
	// Above names the groups whose rules are the lower ones, other than the group itself.
	Above []string
}

// Bindings returns what binds the I/O of the group on each device: its own rules, and on v2 those
// of the groups above, which apply to child groups too (cgroup-v2.rst, "IO Interface Files").
func (g Group) Bindings() ([]Binding, error) {
	var all []Binding
	for at := g; ; at = at.Parent() {
		rules, err := at.Rules()
		if err != nil && !fault.IsUnsupported(err) {
			return nil, err
		}
		for _, r := range rules {
			all = bind(all, r, at.Path(), at.Path() == g.Path())
		}
		if at.IsRoot() || g.Hierarchy().Version == V1 {
			return all, nil
		}
	}
}

func bind(all []Binding, r Rule, path string, own bool) []Binding {
	i := slices.IndexFunc(all, func(b Binding) bool { return b.Device == r.Device })
	if i < 0 {
		i, all = len(all), append(all, Binding{Device: r.Device, Limit: limit.None})
	}
	b := &all[i]
	for _, k := range limit.Keys {
		n, bound := r.Limit.Get(k).Number()
		if !bound {
			continue
		}
		if was, bounds := b.Limit.Get(k).Number(); bounds && was <= n {
			continue
		}
		b.Limit = b.Limit.With(k, limit.PerSecond(n))
		if !own && !slices.Contains(b.Above, path) {
			b.Above = append(b.Above, path)
		}
	}
	return all
}

// Left lists the groups whose rules bind what is in g, and would not bind what is in another group
// of the hierarchy, which need not exist: on v2 g and those above it, up to the first that the other
// one is below, too. On v1 it is g, even if the other one is below it: a rule is for one group alone
// (block/blk-throttle.c, throtl_pd_init: "the broken flat hierarchy behavior is retained"). The root
// of v1's tree is not among them: its rules are for the writeback of the whole machine.
func (g Group) Left(other Group) (left []Group) {
	if g.h.Version == V1 {
		if g.Path() == "/" {
			return nil
		}
		return []Group{g}
	}
	for ; !g.IsRoot() && !strings.HasPrefix(other.path, g.path+"/"); g = g.Parent() {
		left = append(left, g)
	}
	return left
}
