package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
)

// The boot parameters that put io and memory on one cgroup v2 hierarchy.
const (
	noV1        = "cgroup_no_v1=blkio,memory"
	systemdOnV2 = "systemd.unified_cgroup_hierarchy=1"
)

// bootV2 is the way to cgroup v2 for io and memory.
func (f Facts) bootV2() Fix {
	fix := Fix{Text: "boot with this kernel parameter, which puts io and memory on cgroup v2, where buffered writes are held", Lines: []string{noV1}}
	if f.Systemd {
		fix.Lines[0] = systemdOnV2
	}
	return fix
}

func (f Facts) onV1() bool { return f.IO != nil && f.IO.Version == int(cgroupfs.V1) }
func (f Facts) onV2() bool { return f.IO != nil && f.IO.Version == int(cgroupfs.V2) }

// mountedWith is the hierarchy that has a controller.
func (f Facts) mountedWith(controller string) (Mounted, bool) {
	i := slices.IndexFunc(f.Mounted, func(m Mounted) bool { return slices.Contains(m.Controllers, controller) })
	if i < 0 {
		return Mounted{}, false
	}
	return f.Mounted[i], true
}

func (m Mounted) String() string {
	return fmt.Sprintf("cgroup v%d at %s: %s", m.Version, m.At, strings.Join(m.Controllers, " "))
}

// mountinfo is where hierarchies are read.
const mountinfo = "/proc/self/mountinfo"

func mountEvidence(mounts ...Mounted) []Evidence {
	var all []Evidence
	for _, m := range mounts {
		all = append(all, Evidence{mountinfo, m.String()})
	}
	return all
}

// noController: no hierarchy of this host can limit I/O.
func noController(f Facts) []Finding {
	if f.IO != nil {
		return nil
	}
	text := f.WhyNone.Reason
	if text == "" {
		text = "no cgroup hierarchy of this host has a controller of disk I/O"
	}
	found := Finding{Code: "no-io-controller", Severity: Breaks, cells: everything, Evidence: mountEvidence(f.Mounted...),
		Text: strings.ToUpper(text[:1]) + text[1:] + "."}
	if f.WhyNone.Remedy != "" {
		found.Fixes = []Fix{{Text: f.WhyNone.Remedy}}
	}
	return []Finding{found}
}

// readOnly: the rules can be read and not written.
func readOnly(f Facts) []Finding {
	if f.IO == nil || !f.IO.ReadOnly {
		return nil
	}
	return []Finding{{Code: "read-only", Severity: Note, Evidence: mountEvidence(*f.IO),
		Text: "The hierarchy is mounted read-only here: weir can read limits but cannot set them.",
		Fixes: []Fix{{Text: "in a container, run weir on the host"},
			{Text: "on a host", Lines: []string{"mount -o remount,rw " + quote(f.IO.At)}}}}}
}

// v1Writeback: on v1, what the kernel writes back is the root group's
// (blkio-controller.rst; bdi writeback has no group without CGROUP_WRITEBACK's v2).
func v1Writeback(f Facts) []Finding {
	places := f.placesWhere(func(p Place) bool { return p.Err == nil && !p.dataJournal() && !f.rootHolds(p) && !f.paced(p) })
	if !f.onV1() || len(places) == 0 {
		return nil
	}
	evidence := mountEvidence(*f.IO)
	if memory, ok := f.mountedWith("memory"); ok {
		evidence = append(evidence, mountEvidence(memory)...)
	}
	fixes := []Fix{f.pace(), f.bootV2()}
	if lines := f.rootLines(places); len(lines) > 0 {
		fixes = append(fixes, Fix{Text: "limit all writeback to the device, for all groups together", Lines: lines})
	}
	return []Finding{{Code: "v1-writeback", Severity: Breaks, cells: writtenBack.at(places...), Evidence: evidence,
		Text:  "On cgroup v1 the kernel charges writeback to the root group, so the limits of other groups do not apply to it. Only data that a program syncs itself (fsync, msync) is charged to the program's group.",
		Fixes: append(fixes, Fix{Text: "write with O_DIRECT or O_DSYNC (dd oflag=direct), which the limit holds"})}}
}

// rootLines limit the root group on v1, to the writes per second that were named.
func (f Facts) rootLines(places []int) []string {
	var lines []string
	for _, i := range places {
		for _, d := range f.Places[i].Devices {
			for k, file := range map[limit.Key]string{limit.WBPS: "blkio.throttle.write_bps_device", limit.WIOPS: "blkio.throttle.write_iops_device"} {
				if n, ok := d.Limit.Get(k).Number(); ok {
					lines = append(lines, fmt.Sprintf("echo '%s %d' > %s", d.Number, n, quote(f.IO.At+"/"+file)))
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// rootHolds reports whether v1's root group has limits on writes to all devices of a
// place, and none above the place's own: it holds their writeback, everybody's together.
func (f Facts) rootHolds(p Place) bool {
	if !f.onV1() || len(p.Devices) == 0 {
		return false
	}
	return !slices.ContainsFunc(p.Devices, func(d Device) bool { return !f.rootBound(d).Covers(d.Limit) })
}

// rootBound is what binds everybody's writes to a device.
func (f Facts) rootBound(d Device) place.RootBound {
	return place.RootBound{Rule: f.rootLimit(d), BDI: d.BDI}
}

// onVolume reports whether writers are held as the devices are.
func (f Facts) onVolume(p Place) bool {
	return f.rootHolds(p) && !slices.ContainsFunc(p.Devices, func(d Device) bool { return !f.rootBound(d).HoldsWriters() })
}

// rootLimit is the limit of v1's root group on a device; if the question is about the root
// group, with the named rates.
func (f Facts) rootLimit(d Device) limit.Limit {
	if f.Group.Root {
		return d.Limit
	}
	return ruleOn(f.Group.RootRules, d.Number)
}

// rootRules are those in force on v1's root group.
func (f Facts) rootRules() []cgroupfs.Rule {
	if f.Group.Root {
		return f.Group.Rules
	}
	return f.Group.RootRules
}

// rootRules: v1's root group is limited on a device, and with it all writeback to it.
func rootRules(f Facts) []Finding {
	var all []Finding
	if held := f.placesWhere(func(p Place) bool { return f.rootHolds(p) && !f.onVolume(p) }); len(held) > 0 {
		one := Finding{Code: "root-rule", Severity: Note, cells: writtenBack.at(held...), Evidence: f.rootEvidence(held),
			Text: "The root group has a limit on the device, which applies to the writeback of all groups together: the disk is held, single writers are not."}
		all = append(all, one)
	}
	if held := f.placesWhere(f.onVolume); len(held) > 0 {
		one := Finding{Code: "volume", Severity: Note, cells: writtenBack.at(held...), Evidence: f.rootEvidence(held),
			Text: "The root group has a limit on the device, and only little data may wait in memory for it: buffered writes are held, for all writers to the device together."}
		for _, i := range held {
			for _, d := range f.Places[i].Devices {
				one.Evidence = append(one.Evidence, Evidence{d.BDI.Dir + "/max_bytes", fmt.Sprint(d.BDI.MaxBytes)})
			}
		}
		all = append(all, one)
	}
	return all
}

func (f Facts) rootEvidence(places []int) (all []Evidence) {
	for _, i := range places {
		for _, d := range f.Places[i].Devices {
			if rule := ruleOn(f.rootRules(), d.Number); rule.Bounds() { // and is not only named
				all = append(all, Evidence{f.IO.At, fmt.Sprintf("%s: %s", d.Number, boundsOf(rule))})
			}
		}
	}
	return all
}

// memoryElsewhere: v2 has io, but memory is on another hierarchy (cgwb_create needs both).
func memoryElsewhere(f Facts) []Finding {
	if !f.onV2() || slices.Contains(f.IO.Controllers, "memory") {
		return nil
	}
	found := Finding{Code: "memory-elsewhere", Severity: Breaks, cells: writtenBack,
		Evidence: []Evidence{{f.IO.At + "/cgroup.controllers", strings.Join(f.IO.Controllers, " ")}},
		Text:     "The kernel uses the memory controller to find which group dirtied a page. That controller is not on the same hierarchy as io, so the kernel charges writeback to the root group.",
		Fixes:    []Fix{f.bootV2()}}
	if memory, ok := f.mountedWith("memory"); ok {
		found.Evidence = append(found.Evidence, mountEvidence(memory)...)
	} else {
		found.Fixes[0].Text += " (if cgroup_disable=memory is on the kernel's command line, remove it)"
	}
	return []Finding{found}
}

// ioNotEnabled: v2's group has no io.max.
func ioNotEnabled(f Facts) []Finding {
	g := f.Group
	if !f.onV2() || g.Root || g.Controllers == nil || slices.Contains(g.Controllers, "io") || f.limited() && !f.ownLimits() {
		return nil
	}
	return []Finding{{Code: "io-not-enabled", Severity: Breaks, cells: everything,
		Evidence: []Evidence{{g.Dir + "/cgroup.controllers", strings.Join(g.Controllers, " ")}},
		Text:     "The io controller is not enabled for this group, so the group cannot have a limit.",
		Fixes:    []Fix{{Text: "enable it", Lines: echoes(g.MissingIO)}}}}
}

// ownLimits reports whether a rate is limited that the groups above do not bind.
func (f Facts) ownLimits() bool {
	return slices.ContainsFunc(f.Places, func(p Place) bool {
		return slices.ContainsFunc(p.Devices, func(d Device) bool {
			return slices.ContainsFunc(limit.Keys[:], func(k limit.Key) bool {
				_, bound := d.Limit.Get(k).Number()
				_, above := d.Above.Get(k).Number()
				return bound && !above
			})
		})
	})
}

// rootGroup: v2 has no rules on the root.
func rootGroup(f Facts) []Finding {
	if !f.onV2() || !f.Group.Root {
		return nil
	}
	return []Finding{{Code: "root-group", Severity: Breaks, cells: everything, Evidence: []Evidence{{f.Group.Dir, "no io.max"}},
		Text:  "This is the root group, and cgroup v2 has no limits on the root group.",
		Fixes: []Fix{{Text: "start the command in a group of its own", Lines: []string{"weir run --write 10MB/s -- COMMAND"}}}}}
}

func echoes(writes []cgroupfs.Write) []string {
	var lines []string
	for _, w := range writes {
		lines = append(lines, "echo "+w.Line+" > "+quote(w.File))
	}
	return lines
}
