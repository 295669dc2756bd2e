package why

import (
	"slices"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A SwapArea is one area of swap.
type SwapArea struct {
	File    string // a device's node, or a file
	Devices []blkdev.Device
}

// Swapped is how much of a group's memory is in swap.
type Swapped struct {
	Bytes uint64
	File  string // that says so
	// MaxFile bounds it, if the kernel charges what it writes to swap to the group; empty: it
	// charges another group.
	MaxFile string
}

// swappedOut: part of the group's memory is in swap on a disk with a limit. The kernel charges a
// page that it writes to swap to the group that the page belongs to, if both controllers are in
// one v2 hierarchy (mm/page_io.c, bio_associate_blkg_from_page), and a page that it reads back to
// the process that needs it. Unlike io.latency and io.cost, the throttle makes no exception for
// swap before 29390bb5661d (6.12). Since then what is written to swap passes at once, and counts: the
// group's next writes wait for it. Measured on 7.2 under 4 MB/s: 37 MB were swapped out in 0.1 s.
func swappedOut(f Facts) []Finding {
	swapped := f.Group.Swapped
	if swapped.Bytes == 0 {
		return nil
	}
	var found []Finding
	for i, p := range f.Places {
		area, reads, writes := f.swapOn(p), p.bounds(true), p.bounds(false) && swapped.MaxFile != ""
		if area == "" || !reads && !writes {
			continue
		}
		size := limit.FormatMeasured(float64(swapped.Bytes))
		one := Finding{Code: "swapped-out", Severity: Hurts, cells: scope{places: []int{i}}, Evidence: []Evidence{{swapped.File, size}, {"/proc/swaps", area}}}
		switch {
		case !writes:
			one.Text = size + " of the group's memory is in swap, and this disk has swap. A process of the group that needs its memory back waits for the limit on reads."
		case writes && f.Release.Major != 0 && !f.Release.Before(6, 12):
			one.Text = size + " of the group's memory is in swap, and this disk has swap. What the kernel writes there does not wait for the limit on writes, but counts against it: the group's next writes wait instead."
			if reads {
				one.Text += " Reading memory back waits for the limit on reads."
			}
		case !reads:
			one.Text = size + " of the group's memory is in swap, and this disk has swap. When memory is short, the kernel writes more of it there. That waits for the limit on writes, and so do the processes that need the memory, in other groups too."
		default:
			one.Text = size + " of the group's memory is in swap, and this disk has swap. Reading it back waits for the limit on reads. Writing more of it waits for the limit on writes, and so do the processes that need the memory, in other groups too."
		}
		if writes {
			lines := []string{"echo 0 > " + quote(swapped.MaxFile)}
			if u := f.Group.Unit; u != nil && f.Group.Owner.Kind == "systemd" {
				lines = []string{"systemctl set-property " + quote(u.Name) + " MemorySwapMax=0"}
			}
			one.Fixes = append(one.Fixes, Fix{Text: "keep the group's memory out of swap, if there is enough memory", Lines: lines})
		}
		one.Fixes = append(one.Fixes, Fix{Text: "put the swap on a disk without a limit, or in memory (zram)"})
		found = append(found, one)
	}
	return found
}

// swapOn is the first area of swap on a place's devices; empty: there is none.
func (f Facts) swapOn(p Place) string {
	for _, s := range f.Swaps {
		if p.holdsSwap(s) {
			return s.File
		}
	}
	return ""
}

// swapHere: pages of any group may be written out to the device.
func swapHere(f Facts) []Finding {
	var found []Finding
	for i, p := range f.Places {
		area := f.swapOn(p)
		if !p.Named || area == "" {
			continue
		}
		found = append(found, Finding{Code: "swap", Severity: Note, cells: everything.at(i), Evidence: []Evidence{{"/proc/swaps", area}},
			Text: "There is swap on this device. The limit also slows swapping, and so every process that waits for memory."})
	}
	return found
}

// holdsSwap reports whether what the kernel swaps passes a device of the place: the area is on it,
// on a partition of it, or on something that stands on it.
func (p Place) holdsSwap(area SwapArea) bool {
	for _, d := range p.Devices {
		if slices.ContainsFunc(area.Devices, func(s blkdev.Device) bool { return s.StandsOn(d.Number) }) {
			return true
		}
	}
	return false
}
