package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// boundsOf describes the rates that are bound.
func boundsOf(l limit.Limit) string { return l.Bound().String() }

// ruleEvidence is a rule as it was read.
func (g Group) ruleEvidence(r cgroupfs.Rule) Evidence {
	return Evidence{g.rulesFile(), fmt.Sprintf("%s: %s", r.Device, boundsOf(r.Limit))}
}

// rulesFile is where the group's rules are.
func (g Group) rulesFile() string {
	if g.Version == cgroupfs.V1 {
		return g.Dir + "/blkio.throttle.*_device"
	}
	return g.Dir + "/io.max"
}

func (p Place) has(n blkdev.Number) bool {
	return slices.ContainsFunc(p.Devices, func(d Device) bool { return d.Number == n })
}

// beneath reports whether a device is below the devices of the place, and not one of them.
func (p Place) beneath(n blkdev.Number) (top blkdev.Device, ok bool) {
	if p.has(n) {
		return top, false
	}
	for _, d := range p.Devices {
		if stands(d.Device, func(b blkdev.Device) bool { return b.Number == n || b.Whole().Number == n }) {
			return d.Device, true
		}
	}
	return top, false
}

// strayRules are the group's rules on devices of no place, and below none.
func (f Facts) strayRules() []cgroupfs.Rule {
	var stray []cgroupfs.Rule
	for _, r := range f.Group.Rules {
		used := slices.ContainsFunc(f.Places, func(p Place) bool {
			_, below := p.beneath(r.Device)
			return below || p.has(r.Device)
		})
		if !used {
			stray = append(stray, r)
		}
	}
	return stray
}

// ruleElsewhere: the group has a rule, but none on the device in question.
func ruleElsewhere(f Facts) []Finding {
	stray := f.strayRules()
	if len(stray) == 0 {
		return nil
	}
	var evidence []Evidence
	for _, r := range stray {
		evidence = append(evidence, f.Group.ruleEvidence(r))
	}
	if f.limited() {
		if !f.AllDisks {
			return nil // it was asked about another place
		}
		return []Finding{{Code: "unused-device", Severity: Note, Evidence: evidence,
			Text: "A limit is on a device that the target has not mounted, so it holds none of the target's I/O to files."}}
	}
	found := Finding{Code: "rule-elsewhere", Severity: Breaks, cells: everything, Evidence: evidence,
		Text: "The limit is on another device than the target's files."}
	for _, p := range f.Places {
		for _, d := range p.Devices {
			found.Fixes = append(found.Fixes, Fix{Text: "move it to " + d.Node, Lines: []string{
				fmt.Sprintf("weir set %s %s --on %s", quote(f.Target), flagsOf(stray[0].Limit), quote(d.Node)),
				fmt.Sprintf("weir clear %s --on %s", quote(f.Target), stray[0].Device)}})
		}
	}
	return []Finding{found}
}

var flagNames = [...]string{limit.RBPS: "--read", limit.WBPS: "--write", limit.RIOPS: "--read-iops", limit.WIOPS: "--write-iops"}

// flagsOf spells the bound rates as weir's flags.
func flagsOf(l limit.Limit) string {
	flags := ""
	for _, k := range limit.Keys {
		if n, ok := l.Get(k).Number(); ok {
			flags += fmt.Sprintf(" %s %d", flagNames[k], n)
		}
	}
	return strings.TrimPrefix(flags, " ")
}

// ruleBeneath: a rule is on a device that the place's stands on. Whose the I/O is
// down there, depends on the layer: dm's linear targets hand the group on with the bio
// (bio_clone_blkg_association), a loop device does with direct I/O on its file only,
// and others do their own.
func ruleBeneath(f Facts) []Finding {
	var found []Finding
	for i, p := range f.Places {
		for _, r := range f.Group.Rules {
			top, ok := p.beneath(r.Device)
			if !ok {
				continue
			}
			one := Finding{Severity: Note, Evidence: []Evidence{f.Group.ruleEvidence(r)}, Fixes: []Fix{{Text: "move the limit to the device of the file system",
				Lines: []string{fmt.Sprintf("weir set %s %s --on %s", quote(f.Target), flagsOf(r.Limit), quote(top.Node)), fmt.Sprintf("weir clear %s --on %s", quote(f.Target), r.Device)}}}}
			switch {
			case top.Kind == blkdev.Loop:
				loopBeneath(&one, p, top, i)
			case top.Kind == blkdev.DM && (top.Flavor == "lvm" || top.Flavor == "partition"):
				one.Code = "rule-beneath"
				one.Text = "The limit is on a device below that of the file system, so it also applies to the group's I/O on other volumes there."
			default:
				one.Code, one.cells = "rule-beneath", gone(i)
				one.cells.cannot = true
				one.Text = fmt.Sprintf("The limit is on a device below %s, and weir cannot tell whether I/O there is still charged to this group.", top.Node)
			}
			found = append(found, one)
		}
	}
	return found
}

func loopBeneath(one *Finding, p Place, top blkdev.Device, i int) {
	dio := "/sys/block/" + top.Name + "/loop/dio"
	if top.Backing != nil && top.Backing.DirectIO {
		one.Code = "rule-beneath"
		one.Evidence = append(one.Evidence, Evidence{dio, "1"})
		one.Text = "The limit is on a device below a loop device with direct I/O, which the kernel charges to this group: the limit holds."
		return
	}
	one.Code, one.Severity, one.cells = "loop-buffered", Breaks, gone(i)
	one.Evidence = append(one.Evidence, Evidence{dio, "0"})
	one.Text = "The limit is on a device below a loop device that does buffered I/O, and the kernel charges that I/O to the root group."
	one.Fixes = append(one.Fixes, Fix{Text: "switch the loop device to direct I/O", Lines: []string{"losetup --direct-io=on " + quote(top.Node)}})
}

// mountWithoutRule: the target's group has limits, and none on this disk.
func mountWithoutRule(f Facts) []Finding {
	if !f.limited() && len(f.Group.Rules) == 0 || !f.AllDisks || f.Group.ToMake {
		return nil
	}
	var found []Finding
	for _, p := range f.Places {
		below := slices.ContainsFunc(f.Group.Rules, func(r cgroupfs.Rule) bool { _, ok := p.beneath(r.Device); return ok })
		if p.bounds(true) || p.bounds(false) || below || !f.limited() {
			continue
		}
		found = append(found, Finding{Code: "disk-without-limit", Severity: Note, Evidence: []Evidence{{mountinfo, p.Chain.String()}},
			Text: "The target has no limit on this disk: " + p.Spec + ".",
			Fixes: []Fix{{Text: "limit this disk too", Lines: []string{
				fmt.Sprintf("weir set %s %s --on %s", quote(f.Target), flagsOf(f.anyLimit()), quote(p.Spec))}}}})
	}
	return found
}

// anyLimit is the first limit there is.
func (f Facts) anyLimit() limit.Limit {
	for _, p := range f.Places {
		for _, d := range p.Devices {
			if d.Limit.Bounds() {
				return d.Limit
			}
		}
	}
	return limit.Limit{}
}

// partition: what was named is a partition, and the limit is on the whole disk
// (blkg_conf_open_bdev refuses partitions).
func partition(f Facts) []Finding {
	var found []Finding
	for i, p := range f.Places {
		if !p.Named {
			continue
		}
		for _, l := range p.Chain.Layers {
			for _, d := range l.Devices {
				if d.Kind == blkdev.Partition {
					found = append(found, Finding{Code: "partition", Severity: Note, cells: scope{places: []int{i}},
						Evidence: []Evidence{{"/sys/class/block/" + d.Name + "/partition", d.Number.String()}},
						Text:     fmt.Sprintf("The kernel limits whole disks: a limit for %s is on %s, and applies to the group's I/O on all of that disk.", d.Node, d.Whole().Node)})
				}
			}
		}
	}
	return found
}

// stands reports whether a device, or one that it stands on, is among the given ones.
func stands(d blkdev.Device, is func(blkdev.Device) bool) bool {
	if is(d) {
		return true
	}
	for _, below := range d.Beneath {
		if stands(below, is) {
			return true
		}
	}
	return false
}
