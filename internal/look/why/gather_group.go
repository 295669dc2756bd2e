package why

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// readGroup reads the group and its surroundings.
func readGroup(ctx context.Context, s Sources, q Question, group cgroupfs.Group) (Group, error) {
	g := Group{ToMake: q.Target == nil, Views: []int{0}, Path: group.Path(), Dir: group.Dir(), Root: group.IsRoot(), Version: group.Hierarchy().Version}
	for _, read := range []func(cgroupfs.Group) error{g.readRules, g.readMemory, g.readPolicies} {
		if err := read(group); err != nil {
			return g, err
		}
	}
	if s.Pacer != nil {
		g.NoPacer, g.Unseen = s.Pacer.NoPacer(group), s.Pacer.Unseen()
	}
	if q.Target == nil {
		g.Owner = targets.Owner{Kind: "weir"}
		return g, nil
	}
	g.Owner, g.Record = q.Target.Owner, q.Target.Record
	if s.Pacer != nil {
		held, err := s.Pacer.Paced(group)
		if err != nil {
			return g, err
		}
		g.Paced, g.Escapes, g.Lapsed = held.Written, held.Escapes, held.Lapsed
	}
	if s.Kept != nil {
		var err error
		if g.Kept, err = s.Kept(ctx, *q.Target); err != nil {
			return g, err
		}
	}
	if s.Planned != nil {
		g.Planned = s.Planned(*q.Target)
	}
	members, err := targets.Members(group)
	if err != nil {
		return g, err
	}
	g.Processes, g.Views = members, q.Target.Views()
	if err := g.readControllers(group); err != nil {
		return g, err
	}
	if s.UnitLimits != nil && g.Owner.Unit != "" {
		u := Unit{Name: g.Owner.Unit}
		u.Limits, u.Err = s.UnitLimits(ctx, u.Name)
		for _, r := range g.Rules {
			if systemd.GoesPast(ctx, s.Root, r.Device) {
				u.Past = append(u.Past, r.Device)
			}
		}
		g.Unit = &u
	}
	if s.SystemdRuns {
		g.Loose = g.looseness(group.Hierarchy())
	}
	return g, ctx.Err()
}

// readControllers reads which controllers reach the group, and on v1 which processes are below
// it.
func (g *Group) readControllers(group cgroupfs.Group) error {
	if g.Version == cgroupfs.V1 {
		return group.Walk(func(below cgroupfs.Group) error {
			if below == group {
				return nil
			}
			pids, err := below.Processes()
			if len(pids) > 0 {
				g.BelowV1 = append(g.BelowV1, place.Below{Path: below.Path(), Processes: len(pids)})
			}
			return err
		})
	}
	text, there, err := group.Text("cgroup.controllers")
	if err != nil {
		return err
	}
	if there {
		g.Controllers = append([]string{}, strings.Fields(text)...)
	}
	g.MissingIO, err = group.Missing("io")
	return err
}

// readRules reads the rules of the group, of those above, and of v1's root.
func (g *Group) readRules(group cgroupfs.Group) error {
	var err error
	if !g.ToMake {
		if g.Rules, err = rulesOf(group); err != nil {
			return err
		}
	}
	root := group.Hierarchy().Root()
	if g.Version == cgroupfs.V1 {
		if g.RootRules, err = rulesOf(root); err != nil {
			return err
		}
	}
	for above := group; !above.IsRoot(); {
		above = above.Parent()
		rules, err := rulesOf(above)
		if err != nil {
			return err
		}
		g.Above = append([]Above{{above.Path(), rules}}, g.Above...)
	}
	return nil
}

// boundAbove is the limit that applies to the group on a device from above, for rates that its
// own limit leaves open: on v2 an I/O has to pass the limits of all groups above.
func (g Group) boundAbove(dev blkdev.Number, own limit.Limit) (above limit.Limit) {
	if g.Version == cgroupfs.V1 {
		return above
	}
	for _, up := range g.Above {
		rule := ruleOn(up.Rules, dev)
		for _, k := range limit.Keys {
			if _, bound := own.Get(k).Number(); bound {
				continue
			}
			n, bound := rule.Get(k).Number()
			if was, has := above.Get(k).Number(); bound && (!has || n < was) {
				above = above.With(k, limit.PerSecond(n))
			}
		}
	}
	return above
}

// rulesOf takes a group that cannot have rules for one without.
func rulesOf(group cgroupfs.Group) ([]cgroupfs.Rule, error) {
	rules, err := group.Rules()
	if fault.IsUnsupported(err) || cgroupfs.IsGone(err) {
		return nil, nil
	}
	return rules, err
}

// readMemory finds the smallest bounds from the group up. On v1 a group's memory is
// bounded in another hierarchy, whose writeback knows no group: it does not matter.
func (g *Group) readMemory(group cgroupfs.Group) error {
	if g.Version == cgroupfs.V1 {
		return nil
	}
	for above := group; ; above = above.Parent() {
		m, there, err := above.Memory()
		if err != nil && !cgroupfs.IsGone(err) {
			return err
		}
		if there {
			if !g.Memory.Known {
				g.Memory.Dirty, g.Memory.Known = m.Dirty, true
			}
			if m.Max != 0 && (g.Memory.Max == 0 || m.Max < g.Memory.Max) {
				g.Memory.Max, g.Memory.MaxFile = m.Max, above.File("memory.max")
			}
			if m.High != 0 && (g.Memory.High == 0 || m.High < g.Memory.High) {
				g.Memory.High, g.Memory.HighFile = m.High, above.File("memory.high")
			}
		}
		if above.IsRoot() {
			return nil
		}
	}
}

// swappedMax bounds how many processes are asked what they have in swap.
const swappedMax = 512

// readSwapped reads what the group has in swap: its own account, or without one the sum of its
// processes.
func (g *Group) readSwapped(group cgroupfs.Group, host kernel.FS) error {
	const current, most = "memory.swap.current", "memory.swap.max"
	text, there, err := group.Text(current)
	switch {
	case cgroupfs.IsGone(err):
		return nil
	case err != nil:
		return err
	case there:
		text = strings.TrimSpace(text)
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("parse %s: %q is no number", group.File(current), text)
		}
		inMemory, err := zswapped(group)
		g.Swapped = Swapped{Bytes: n - min(n, inMemory), File: group.File(current), MaxFile: group.File(most)}
		return err
	}
	g.Swapped.File = "VmSwap in /proc/PID/status of the group's processes"
	for _, pid := range g.Processes[:min(len(g.Processes), swappedMax)] {
		g.Swapped.Bytes += host.Swapped(pid)
	}
	return nil
}

// zswapped is the part of what a group has in swap that zswap holds in memory (memory.stat).
func zswapped(group cgroupfs.Group) (uint64, error) {
	text, _, err := group.Text("memory.stat")
	if err != nil && !cgroupfs.IsGone(err) {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "zswapped "); ok {
			return strconv.ParseUint(value, 10, 64)
		}
	}
	return 0, nil
}

// neighboursMax bounds how many groups are looked at for io.latency.
const neighboursMax = 512

// errEnough ends the look at neighbours.
var errEnough = errors.New("enough groups")

// readPolicies reads io.cost of the root, and io.latency of the group, those above and
// their children: a group that misses its latency slows down the others beside it.
func (g *Group) readPolicies(group cgroupfs.Group) error {
	if g.Version == cgroupfs.V1 {
		return nil
	}
	cost, err := policies(group.Hierarchy().Root(), "io.cost.qos")
	if err != nil {
		return err
	}
	for _, p := range cost {
		if strings.Contains(" "+p.Line+" ", " enable=1 ") {
			g.Cost = append(g.Cost, p)
		}
	}
	seen := 0
	look := func(one cgroupfs.Group) error {
		if seen++; seen > neighboursMax {
			return errEnough
		}
		lines, err := policies(one, "io.latency")
		g.Latency = append(g.Latency, lines...)
		return err
	}
	for above := group; !above.IsRoot() && err == nil; {
		above = above.Parent()
		var children []cgroupfs.Group
		if children, err = above.Children(); err != nil {
			break
		}
		for _, child := range children {
			if err = look(child); err != nil {
				break
			}
		}
	}
	if errors.Is(err, errEnough) || cgroupfs.IsGone(err) {
		return nil
	}
	return err
}

// policies reads a file of "MAJ:MIN key=value…" lines; a group without it has none.
func policies(group cgroupfs.Group, file string) ([]Policy, error) {
	text, there, err := group.Text(file)
	if err != nil && !cgroupfs.IsGone(err) {
		return nil, err
	}
	if !there {
		return nil, nil
	}
	var found []Policy
	for line := range strings.Lines(text) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		dev, err := blkdev.ParseNumber(number)
		if err != nil {
			continue // a disk that was removed while in use
		}
		found = append(found, Policy{File: path.Join(group.Dir(), file), Device: dev, Line: number + " " + rest})
	}
	return found, nil
}
