package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
)

// docker is the command of which one version drops flags, and says nothing.
const (
	docker        = "docker"
	dockerDropped = "26.1.5"
)

// dropsFlags reports whether the owner's command line is known to drop the flags of limits.
func dropsFlags(r *targets.Record) bool { return r.Command == docker && r.Version == dockerDropped }

// recordDiffers: the target's owner stores another limit than the one in force, or weir does. They set their own
// when the target restarts, and what an earlier weir or an echo set is lost.
func recordDiffers(f Facts) []Finding {
	r := f.Group.Record
	if f.Group.Kept.Unknown {
		return nil
	}
	by := weir
	var evidence []Evidence
	var keep, takeBack, flags []string
	for _, dev := range recordedDevices(f.Group) {
		now, kept := ruleOn(f.Group.Rules, dev), f.Group.atStart(dev)
		if !differs(kept, now) {
			continue
		}
		if !differs(ruleOn(f.Group.Kept.Rules, dev), now) {
			by = r.By
		}
		name := f.nodeOf(dev)
		evidence = append(append(evidence, f.Group.evidenceOn(dev)), f.Group.keptOn(dev)...)
		if now.Bounds() {
			keep = append(keep, fmt.Sprintf("weir set %s %s --on %s --persist", quote(f.Target), flagsOf(now), quote(name)))
			flags = append(flags, dockerFlags(now, name)...)
		}
		takeBack = append(takeBack, fmt.Sprintf("weir set %s %s --on %s", quote(f.Target), flagsTo(now, kept), quote(name)))
	}
	if len(evidence) == 0 {
		return nil
	}
	found := Finding{Code: "record-differs", Severity: Hurts, Evidence: evidence,
		Text: fmt.Sprintf("%s keeps another limit for this target than the one in force, and will set its own when the target restarts.", by)}
	if by == weir {
		found.Fixes = weirKeeps(keep)
	} else {
		found.Fixes = keepFixes(r, keep, flags)
	}
	found.Fixes = append(found.Fixes, Fix{Text: "put that other limit into force", Lines: takeBack})
	return []Finding{found}
}

// weir is who keeps a limit that is on weir's own record.
const weir = "weir"

// weirKeeps has weir keep another limit than it does.
func weirKeeps(lines []string) []Fix {
	if len(lines) == 0 {
		return nil
	}
	return []Fix{{Text: "have weir keep this one", Lines: lines}}
}

// atStart is what is set on a device when the target starts: weir sets its own after the owner.
func (g Group) atStart(dev blkdev.Number) (l limit.Limit) {
	if g.Record != nil {
		l = g.Record.On(dev)
	}
	return l.Overlay(ruleOn(g.Kept.Rules, dev))
}

// keptOn is where that is kept.
func (g Group) keptOn(dev blkdev.Number) (all []Evidence) {
	if g.Record != nil {
		all = append(all, Evidence{g.Record.Source, fmt.Sprintf("%s: %s", dev, boundsOrNone(g.Record.On(dev)))})
	}
	if kept := ruleOn(g.Kept.Rules, dev); kept.Bounds() {
		all = append(all, Evidence{g.Kept.File, fmt.Sprintf("%s: %s", dev, boundsOf(kept))})
	}
	return all
}

// differs reports whether an owner keeps another number of a rate than the one in force. A rate that it
// does not keep at all is recordLacks' question.
func differs(kept, now limit.Limit) bool {
	return slices.ContainsFunc(limit.Keys[:], func(k limit.Key) bool {
		n, bound := kept.Get(k).Number()
		is, too := now.Get(k).Number()
		return bound && (!too || is != n)
	})
}

// recordLacks: nobody stores the limit in force, or a rate of it. The user asked for that limit, but it is lost
// when the target restarts.
func recordLacks(f Facts) []Finding {
	r := f.Group.Record
	if r == nil || f.Group.Kept.Unknown {
		return nil
	}
	var keep, flags []string
	one := Finding{Code: "record-lacks", Severity: Note, Text: r.By + " does not keep this limit: it is in force only until the target stops."}
	for _, rule := range f.Group.Rules {
		kept := f.Group.atStart(rule.Device)
		planned := kept.Overlay(ruleOn(f.Group.Planned, rule.Device))
		if differs(kept, rule.Limit) || sameBounds(kept, rule.Limit) || sameBounds(planned, rule.Limit) {
			continue
		}
		name := f.nodeOf(rule.Device)
		one.Evidence = append(append(one.Evidence, f.Group.evidenceOn(rule.Device)), f.Group.keptOn(rule.Device)...)
		if kept.Bounds() {
			one.Text = r.By + " keeps only a part of this limit: the rest is in force only until the target stops."
		}
		keep = append(keep, fmt.Sprintf("weir set %s %s --on %s --persist", quote(f.Target), flagsOf(rule.Limit), quote(name)))
		flags = append(flags, dockerFlags(rule.Limit, name)...)
	}
	if len(keep) == 0 {
		return nil
	}
	one.Fixes = keepFixes(r, keep, flags)
	return []Finding{one}
}

// keepFixes have a limit kept over restarts of the target.
func keepFixes(r *targets.Record, lines, flags []string) []Fix {
	if len(lines) == 0 {
		return nil
	}
	if r.Updates {
		return []Fix{{Text: "have " + r.By + " keep it", Lines: lines}}
	}
	fixes := []Fix{{Text: "let weir set the limit again at each start of the target", Lines: lines}}
	if !dropsFlags(r) {
		fixes = append(fixes, Fix{Text: "recreate the container, so that " + r.By + " keeps it: " + r.Command + " run " + strings.Join(flags, " ")})
	}
	return fixes
}

// recordEmpty: the target's owner was given no limit, or lost it.
func recordEmpty(f Facts) []Finding {
	r := f.Group.Record
	if r == nil || len(r.Limits) > 0 || len(f.Group.Rules) > 0 {
		return nil
	}
	text := r.By + " keeps no disk I/O limit for this target, and none is in force."
	if dropsFlags(r) {
		text += " The command line of Docker " + dockerDropped + " silently ignores --device-write-bps and similar flags."
	}
	return []Finding{{Code: "record-empty", Severity: Note, Evidence: []Evidence{{r.Source, "no limit"}, {f.Group.rulesFile(), "no limit"}},
		Text:  text,
		Fixes: []Fix{{Text: "set one while it runs", Lines: []string{"weir set " + quote(f.Target) + " --write 10MB/s"}}}}}
}

// recordedDevices are those with a rule, and those that the record has besides.
func recordedDevices(g Group) []blkdev.Number {
	var all []blkdev.Number
	seen := map[blkdev.Number]bool{}
	add := func(dev blkdev.Number) {
		if !seen[dev] {
			seen[dev] = true
			all = append(all, dev)
		}
	}
	for _, r := range g.Rules {
		if r.Limit.Bounds() {
			add(r.Device)
		}
	}
	if g.Record != nil {
		for _, l := range g.Record.Limits {
			if l.Err == nil {
				add(l.Device)
			}
		}
	}
	for _, r := range g.Kept.Rules {
		add(r.Device)
	}
	return all
}

// evidenceOn is the group's rule on a device, or that it has none.
func (g Group) evidenceOn(dev blkdev.Number) Evidence {
	return Evidence{g.rulesFile(), fmt.Sprintf("%s: %s", dev, boundsOrNone(ruleOn(g.Rules, dev)))}
}

func boundsOrNone(l limit.Limit) string {
	if !l.Bounds() {
		return "no limit"
	}
	return boundsOf(l)
}

// nodeOf names a device of the places by its node, and another by its number.
func (f Facts) nodeOf(dev blkdev.Number) string {
	for _, p := range f.Places {
		for _, d := range p.Devices {
			if d.Number == dev {
				return d.Node
			}
		}
	}
	return dev.String()
}

// flagsTo spells the flags that turn one limit into another: a rate that is bound now, and not
// in the other, is removed.
func flagsTo(now, wanted limit.Limit) string {
	flags := flagsOf(wanted)
	for _, k := range limit.Keys {
		_, bound := now.Get(k).Number()
		if _, stays := wanted.Get(k).Number(); bound && !stays {
			flags += " " + flagNames[k] + " max"
		}
	}
	return flags
}

var dockerFlagNames = [...]string{limit.RBPS: "--device-read-bps", limit.WBPS: "--device-write-bps", limit.RIOPS: "--device-read-iops", limit.WIOPS: "--device-write-iops"}

// dockerFlags spells the bound rates as docker run takes them; a number without a unit
// is bytes there too. They are to be copied to a shell.
func dockerFlags(l limit.Limit, device string) []string {
	var flags []string
	for _, k := range limit.Keys {
		if n, ok := l.Get(k).Number(); ok {
			flags = append(flags, dockerFlagNames[k]+" "+quote(fmt.Sprintf("%s:%d", device, n)))
		}
	}
	return flags
}
