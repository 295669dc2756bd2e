package why

import (
	"fmt"

	"github.com/weir-io/weir/internal/kernel"
	"github.com/weir-io/weir/internal/limit"
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
		found = append(found, Finding{Code: "not-in-kernel", Severity: Breaks, cells: cells,
			Evidence: []Evidence{{f.Config.File, "# CONFIG_" + option + " is not set"}}, Text: text,
			Fixes: []Fix{{Text: "boot a kernel that was built with CONFIG_" + option + "; distributions' are"}}})
	}
	if f.Config.Lacks("BLK_CGROUP") {
		add("BLK_CGROUP", "The kernel was built without control groups for disk I/O.", everything)
	} else if f.Config.Lacks("BLK_DEV_THROTTLING") {
		add("BLK_DEV_THROTTLING", "The kernel was built without limits on disk I/O.", everything)
	}
	if f.onV2() && f.Config.Lacks("CGROUP_WRITEBACK") {
		add("CGROUP_WRITEBACK", "The kernel was built without charging what it writes back to groups: buffered writes are the root group's.", writtenBack)
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
		found = append(found, Finding{Code: "limit-below-slice", Severity: Hurts, Evidence: []Evidence{{d.Node, k.Direction() + " limit " + limit.PerSecond(n).Format(k)}},
			Text: fmt.Sprintf("The kernel gives out a limit in tenths of a second, and a tenth of this one is less than one %s: each waits for several, and the rate is rough.",
				map[bool]string{true: "operation", false: "page of 4096 bytes"}[k.IsOps()]),
			Fixes: []Fix{{Text: "a limit of " + limit.PerSecond(least).Format(k) + " or more"}}})
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
			Evidence: []Evidence{{d.Queue.Dir + "/max_sectors_kb", fmt.Sprint(d.Queue.MaxSectors >> 10)}, {d.Node, k.Direction() + " limit " + limit.PerSecond(n).Format(k)}},
			Text: fmt.Sprintf("A request can be %s here, and a tenth of a second of the limit is %s: a large one waits, and then passes whole, so that short measurements see bursts.",
				bytesOf(d.Queue.MaxSectors), bytesOf(n/slicesPerSec))})
	})
	return found
}

// A bug is one of the kernel's in throttling.
type bug struct {
	from, fixed [2]int // versions; from 0.0: always
	commit      string // that ends it
	text        string
	applies     func(l limit.Limit) bool
}

// bugs are those whose end is a commit that is named here.
var bugs = []bug{
	{fixed: [2]int{5, 18}, commit: "9f5ede3c01f9",
		text: "a request that the kernel splits counts as one operation, so a limit on operations lets more through",
		applies: func(l limit.Limit) bool {
			_, r := l.RIOPS.Number()
			_, w := l.WIOPS.Number()
			return r || w
		}},
	{fixed: [2]int{6, 11}, commit: "1beabab88ece",
		text: "limits below 10 operations per second come out lower than they are",
		applies: func(l limit.Limit) bool {
			r, okR := l.RIOPS.Number()
			w, okW := l.WIOPS.Number()
			return okR && r < slicesPerSec || okW && w < slicesPerSec
		}},
	{fixed: [2]int{6, 15}, commit: "29cb95593430",
		text: "a rate comes out lower than its limit where requests are about as large as a slice's part of it",
		applies: func(l limit.Limit) bool {
			const small = 100 << 10 * slicesPerSec
			r, okR := l.RBPS.Number()
			w, okW := l.WBPS.Number()
			return okR && r < small || okW && w < small
		}},
	{from: [2]int{6, 10}, fixed: [2]int{6, 16}, commit: "f2c4902bd08b",
		text: "limits in bytes and in operations on one device get into each other's way",
		applies: func(l limit.Limit) bool {
			_, rb := l.RBPS.Number()
			_, ro := l.RIOPS.Number()
			_, wb := l.WBPS.Number()
			_, wo := l.WIOPS.Number()
			return rb && ro || wb && wo
		}},
}

// kernelBugs: what may be wrong by the kernel's version. A distribution can have taken
// over the end of it.
func kernelBugs(f Facts) []Finding {
	var found []Finding
	for _, b := range bugs {
		if f.Release.Before(b.from[0], b.from[1]) || !f.Release.Before(b.fixed[0], b.fixed[1]) {
			continue
		}
		for _, p := range f.Places {
			applies := false
			for _, d := range p.Devices {
				applies = applies || b.applies(d.Limit)
			}
			if applies {
				found = append(found, Finding{Code: "kernel-bug", Severity: Note, Evidence: f.releaseEvidence(),
					Text: fmt.Sprintf("May apply: before Linux %d.%d %s; %s ends it, which this kernel may have as well.", b.fixed[0], b.fixed[1], b.text, b.commit)})
				break
			}
		}
	}
	return found
}
