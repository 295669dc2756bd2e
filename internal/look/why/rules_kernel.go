package why

import (
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/kernel"
)

// slicesPerSec is how often blk-throttle gives out a part of a rate: a slice is a tenth
// of a second (throtl_slice in block/blk-throttle.c).
const slicesPerSec = 10

func (f Facts) releaseEvidence() []Evidence {
	return []Evidence{{kernel.ReleaseFile, f.Release.Text}}
}

// notBuilt: the kernel is without what a limit needs.
func notBuilt(f Facts) []Finding {
	var found []Finding
	add := func(option, text string, cells scope) {
		evidence := Evidence{f.Config.File, "# CONFIG_" + option + " is not set"}
		if f.NoThrottle != "" && !f.Config.Lacks(option) {
			evidence = Evidence{f.NoThrottle, "no such file"}
		}
		found = append(found, Finding{Code: "not-in-kernel", Severity: Breaks, cells: cells,
			Evidence: []Evidence{evidence}, Text: text,
			Fixes: []Fix{{Text: "boot a kernel that was built with CONFIG_" + option + "; those of distributions are"}}})
	}
	if f.Config.Lacks("BLK_CGROUP") {
		add("BLK_CGROUP", "The kernel was built without a cgroup controller for disk I/O.", everything)
	} else if f.Config.Lacks("BLK_DEV_THROTTLING") || f.NoThrottle != "" {
		add("BLK_DEV_THROTTLING", "The kernel was built without limits on disk I/O.", everything)
	}
	if f.onV2() && f.Config.Lacks("CGROUP_WRITEBACK") {
		add("CGROUP_WRITEBACK", "The kernel was built without cgroup writeback, so it charges buffered writes to the root group.", writtenBack)
	}
	return found
}

// eachRate calls see for each bound rate of each device, once a device.
func (f Facts) eachRate(see func(place int, d Device, k limit.Key, n uint64)) {
	seen := map[string]bool{}
	for i, p := range f.Places {
		for _, d := range p.Devices {
			if seen[d.Number.String()] {
				continue
			}
			seen[d.Number.String()] = true
			for _, k := range limit.Keys {
				if n, ok := d.Limit.Get(k).Number(); ok {
					see(i, d, k, n)
				}
			}
		}
	}
}

// rateEvidence is the rate of a limit as it was read; none for a limit that was only named.
func (d Device) rateEvidence(k limit.Key, n uint64) []Evidence {
	if d.Asked.Get(k).IsSet() {
		return nil
	}
	return []Evidence{{d.Node, k.Direction() + " limit " + limit.PerSecond(n).Format(k)}}
}

// lowLimit: a slice holds less than one page, or less than one operation.
func lowLimit(f Facts) []Finding {
	const page = 4096
	var found []Finding
	f.eachRate(func(_ int, d Device, k limit.Key, n uint64) {
		least := uint64(page * slicesPerSec)
		if k.IsOps() {
			least = slicesPerSec
		}
		if n >= least {
			return
		}
		found = append(found, Finding{Code: "limit-below-slice", Severity: Hurts, Evidence: d.rateEvidence(k, n),
			Text: fmt.Sprintf("The kernel divides a limit into tenths of a second, and a tenth of this limit is less than one %s: each has to wait for several tenths, so the rate is rough.",
				map[bool]string{true: "operation", false: "page of 4096 bytes"}[k.IsOps()]),
			Fixes: []Fix{{Text: "set a limit of " + limit.PerSecond(least).Format(k) + " or more"}}})
	})
	return found
}

// largeRequests: a request larger than a slice's part is let through late, and whole.
func largeRequests(f Facts) []Finding {
	var found []Finding
	f.eachRate(func(_ int, d Device, k limit.Key, n uint64) {
		if k.IsOps() || d.Queue.MaxSectors == 0 || n/slicesPerSec >= d.Queue.MaxSectors {
			return
		}
		found = append(found, Finding{Code: "large-requests", Severity: Note,
			Evidence: append([]Evidence{{d.Queue.Dir + "/max_sectors_kb", fmt.Sprint(d.Queue.MaxSectors >> 10)}}, d.rateEvidence(k, n)...),
			Text: fmt.Sprintf("A request can be %s here, but a tenth of a second of the limit is %s. A large request waits and then passes as a whole, so short measurements see bursts.",
				limit.FormatSize(d.Queue.MaxSectors), limit.FormatSize(n/slicesPerSec))})
	})
	return found
}

// A bug is a fault of the kernel in throttling.
type bug struct {
	from, fixed [2]int // versions; from 0.0: always
	commit      string // that ends it
	text        string
	applies     func(bytes, operations *uint64) bool // to one direction's limits per second; nil: none
	seen        [][2]int                             // versions of Debian's kernels with which it was measured
	how         string                               // it was seen
	exceeds     bool                                 // more than the limit gets through
}

// bugs are those whose end is a commit that is named here.
var bugs = []bug{
	{fixed: [2]int{5, 18}, commit: "9f5ede3c01f9",
		text:    "a request that the kernel splits counts as one operation, so a limit on operations lets too much through",
		applies: func(_, operations *uint64) bool { return operations != nil },
		seen:    [][2]int{{5, 10}}, how: "15 times a limit of 64, with requests of 1 MiB in parts of 64 KiB", exceeds: true},
	{fixed: [2]int{6, 11}, commit: "1beabab88ece",
		text:    "limits below 10 operations per second give less than they should",
		applies: func(_, operations *uint64) bool { return operations != nil && *operations < slicesPerSec },
		seen:    [][2]int{{5, 10}, {6, 1}}, how: "0.68 of a limit of 5, and 0.90 with later kernels"},
	{fixed: [2]int{6, 15}, commit: "29cb95593430",
		text:    "a limit gives less than it should if requests are about as large as a tenth of a second of it",
		applies: func(bytes, _ *uint64) bool { return bytes != nil && *bytes < 100<<10*slicesPerSec }},
	{from: [2]int{6, 10}, fixed: [2]int{6, 16}, commit: "f2c4902bd08b",
		text:    "limits in bytes and in operations on one device disturb each other",
		applies: func(bytes, operations *uint64) bool { return bytes != nil && operations != nil }},
}

// concerns reports which of a place's limits the bug is about.
func (b bug) concerns(p Place) (reads, writes bool) {
	for _, d := range p.Devices {
		number := func(k limit.Key) *uint64 {
			if n, is := d.Limit.Get(k).Number(); is {
				return &n
			}
			return nil
		}
		reads = reads || b.applies(number(limit.RBPS), number(limit.RIOPS))
		writes = writes || b.applies(number(limit.WBPS), number(limit.WIOPS))
	}
	return reads, writes
}

// finding tells what was measured with Debian's kernel of this version from what only may
// be. (A distribution can have taken over the end of a bug in either case.)
func (b bug) finding(f Facts) Finding {
	found := Finding{Code: "kernel-bug", Severity: Note, Evidence: f.releaseEvidence()}
	if slices.Contains(b.seen, [2]int{f.Release.Major, f.Release.Minor}) {
		found.Severity = Hurts
		found.Text = fmt.Sprintf("On Linux %d.%d %s (measured on Debian's kernel: %s); commit %s fixes it in %d.%d.", f.Release.Major, f.Release.Minor, b.text, b.how, b.commit, b.fixed[0], b.fixed[1])
		found.Fixes = []Fix{{Text: fmt.Sprintf("boot Linux %d.%d or later", b.fixed[0], b.fixed[1])}}
		return found
	}
	found.Text = fmt.Sprintf("May apply: before Linux %d.%d %s. Commit %s fixes it, and this kernel may have that fix.", b.fixed[0], b.fixed[1], b.text, b.commit)
	return found
}

// kernelBugs: known or possible faults of the kernel's version. If more than the limit was seen
// to get through, whether it holds depends on the requests, and is not known.
func kernelBugs(f Facts) []Finding {
	var found []Finding
	for _, b := range bugs {
		if f.Release.Before(b.from[0], b.from[1]) || !f.Release.Before(b.fixed[0], b.fixed[1]) {
			continue
		}
		cells := scope{paths: paths, cannot: true}
		for i, p := range f.Places {
			if reads, writes := b.concerns(p); reads || writes {
				cells.reads, cells.writes = cells.reads || reads, cells.writes || writes
				cells.places = append(cells.places, i)
			}
		}
		if len(cells.places) == 0 {
			continue
		}
		one := b.finding(f)
		if b.exceeds && one.Severity == Hurts {
			one.cells = cells
		}
		found = append(found, one)
	}
	return found
}
