package why

import (
	"fmt"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// parentStricter: on v2 an I/O has to pass the limits of all groups above too.
func parentStricter(f Facts) []Finding {
	if !f.onV2() {
		return nil
	}
	var found []Finding
	seen := map[blkdev.Number]bool{}
	for _, p := range f.Places {
		for _, d := range p.Devices {
			if seen[d.Number] {
				continue
			}
			seen[d.Number] = true
			for _, above := range f.Group.Above {
				for _, k := range limit.Keys {
					their, bound := ruleOn(above.Rules, d.Number).Get(k).Number()
					own, has := d.Limit.Get(k).Number()
					if !bound || !has || own <= their {
						continue
					}
					found = append(found, Finding{Code: "parent-stricter", Severity: Note,
						Evidence: []Evidence{{above.Path, fmt.Sprintf("%s: %s", d.Number, boundsOf(ruleOn(above.Rules, d.Number)))}},
						Text: fmt.Sprintf("A group above allows less than this %s limit of %s: the group gets at most %s, and shares that with its neighbours.",
							k.Direction(), limit.PerSecond(own).Format(k), limit.PerSecond(their).Format(k)),
						Fixes: []Fix{{Text: "raise the limit above", Lines: []string{fmt.Sprintf("weir set %s %s --on %s", quote("cgroup:"+above.Path),
							flagsOf(limit.Limit{}.With(k, limit.PerSecond(own))), quote(d.Node))}}}})
				}
			}
		}
	}
	return found
}

// limitAbove: the limit is not the group's own.
func limitAbove(f Facts) []Finding {
	var found []Finding
	seen := map[blkdev.Number]bool{}
	for _, p := range f.Places {
		for _, d := range p.Devices {
			if seen[d.Number] || !d.Above.Bounds() {
				continue
			}
			seen[d.Number] = true
			one := Finding{Code: "limit-above", Severity: Note, Text: "The group shares a limit with its neighbours, set on a group above: " + boundsOf(d.Above) + "."}
			for _, above := range f.Group.Above {
				if rule := ruleOn(above.Rules, d.Number); rule.Bounds() {
					one.Evidence = append(one.Evidence, Evidence{above.Path, fmt.Sprintf("%s: %s", d.Number, boundsOf(rule))})
				}
			}
			one.Fixes = []Fix{{Text: "set a lower limit on the group itself", Lines: []string{fmt.Sprintf("weir set %s %s --on %s", quote(f.Target), flagsOf(d.Above), quote(d.Node))}}}
			found = append(found, one)
		}
	}
	return found
}

// flat: on v1 a rule binds the processes of its own group only (blkio-controller.rst,
// "Hierarchical Cgroups": throttling without sane_behavior is flat).
func flat(f Facts) []Finding {
	if !f.onV1() {
		return nil
	}
	var found []Finding
	if below := f.Group.BelowV1; len(below) > 0 && !f.Group.Root && (f.limited() || len(f.Group.Processes) == 0) {
		processes := 0
		for _, b := range below {
			processes += b.Processes
		}
		one := Finding{Code: "v1-flat", Severity: Hurts,
			Evidence: []Evidence{{f.Group.Dir, fmt.Sprintf("processes in the groups below: %d, in %s", processes, f.group().Children())}},
			Text:     "On cgroup v1 a limit does not reach child groups, and child groups of this one have processes.",
			Fixes:    []Fix{{Text: "limit each of those groups too: weir show lists those that are limited"}}}
		if len(f.Group.Processes) == 0 {
			one.Severity, one.cells = Breaks, everything
			one.Text = "On cgroup v1 a limit does not reach child groups, and all of the target's processes are in child groups."
		}
		found = append(found, one)
	}
	for i, p := range f.Places {
		for _, d := range p.Devices {
			if d.Limit.Bounds() {
				continue
			}
			for _, above := range f.Group.Above {
				if rule := ruleOn(above.Rules, d.Number); rule.Bounds() && above.Path != "/" {
					found = append(found, Finding{Code: "v1-flat", Severity: Breaks, cells: gone(i),
						Evidence: []Evidence{{above.Path, fmt.Sprintf("%s: %s", d.Number, boundsOf(rule))}},
						Text:     "A group above has a limit. On cgroup v1 that limit does not reach this group.",
						Fixes: []Fix{{Text: "limit this group", Lines: []string{fmt.Sprintf("weir set %s %s --on %s", quote(f.Target), flagsOf(rule), quote(d.Node))}},
							f.bootV2()}})
				}
			}
		}
	}
	return found
}

// sameBounds compares the bound rates; an unset rate is not bound.
func sameBounds(a, b limit.Limit) bool {
	for _, k := range limit.Keys {
		n, ok := a.Get(k).Number()
		m, too := b.Get(k).Number()
		if ok != too || n != m {
			return false
		}
	}
	return true
}

// otherPolicies: io.cost and io.latency delay I/O as well (cgroup-v2.rst, "IO").
func otherPolicies(f Facts) []Finding {
	var found []Finding
	devices := map[blkdev.Number]string{}
	for _, p := range f.Places {
		for _, d := range p.Devices {
			devices[d.Number] = d.Node
		}
	}
	for _, c := range f.Group.Cost {
		if node, ok := devices[c.Device]; ok {
			found = append(found, Finding{Code: "io-cost", Severity: Note, Evidence: []Evidence{{c.File, c.Line}},
				Text:  "io.cost shares out " + node + " by weights too, so a group can get less than its limit while others are busy.",
				Fixes: []Fix{{Text: "switch io.cost off", Lines: []string{fmt.Sprintf("echo '%s enable=0' > %s", c.Device, quote(c.File))}}}})
		}
	}
	for _, l := range f.Group.Latency {
		if node, ok := devices[l.Device]; ok {
			found = append(found, Finding{Code: "io-latency", Severity: Note, Evidence: []Evidence{{l.File, l.Line}},
				Text:  "A group has a latency target on " + node + ": when it misses the target, the kernel slows the groups beside it to below their limits.",
				Fixes: []Fix{{Text: "remove the latency target", Lines: []string{fmt.Sprintf("echo '%s target=0' > %s", l.Device, quote(l.File))}}}})
		}
	}
	return found
}
