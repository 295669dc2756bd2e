package dirty

import (
	"math"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
)

// Levels are the thresholds for dirty and writeback pages together, in bytes.
type Levels struct {
	Background uint64 // from there on the flusher writes back
	Throttle   uint64 // from there on writers are made to wait a little
	Limit      uint64 // where they wait until it is less
}

// levelsOf adds the point at which throttling begins, halfway between the two
// (mm/page-writeback.c, dirty_freerun_ceiling). A background threshold that is not below the
// limit counts as half of it (domain_dirty_limits).
func levelsOf(background, limit uint64) Levels {
	if background >= limit {
		background = limit / 2
	}
	return Levels{Background: background, Throttle: (background + limit) / 2, Limit: limit}
}

// hostLevels are those in force on the host; there is false if /proc/vmstat has none.
func hostLevels(d kernel.Dirty) (l Levels, there bool) {
	if d.LimitAt == 0 {
		return l, false
	}
	return levelsOf(d.BackgroundAt, d.LimitAt), true
}

// available is the memory of the host that can become dirty: what a ratio is of. There is
// false where both thresholds are set in bytes.
func available(d kernel.Dirty) (bytes float64, there bool) {
	switch {
	case d.Bytes == 0 && d.Ratio > 0:
		return float64(d.LimitAt) * 100 / float64(d.Ratio), true
	case d.BackgroundBytes == 0 && d.BackgroundRatio > 0:
		return float64(d.BackgroundAt) * 100 / float64(d.BackgroundRatio), true
	}
	return 0, false
}

// ratio is a threshold as a part of what can become dirty.
func ratio(percent, bytes uint64, host float64) float64 {
	if bytes > 0 {
		return min(float64(bytes)/host, 1)
	}
	return float64(percent) / 100
}

// ownLevels estimates the thresholds of a cgroup v2 group itself, on file systems with cgroup
// writeback: the host's ratios, applied to the group's page cache and what it may still take
// (mm/page-writeback.c, mdtc_calc_avail; mm/memcontrol.c, mem_cgroup_wb_stats). The kernel does
// not show them. headroom is what the group and those above it may still take, in bytes; there
// is false without a memory limit.
func ownLevels(d kernel.Dirty, m cgroupfs.Memory, headroom uint64) (l Levels, there bool) {
	host, known := available(d)
	if !known || headroom == math.MaxUint64 {
		return l, false
	}
	hostClean := max(host-float64(d.Now+d.InWriteback), 0)
	otherClean := max(hostClean-float64(m.Clean), 0)
	can := float64(m.Clean+m.Dirty) + min(float64(headroom), otherClean)
	limit := can * ratio(d.Ratio, d.Bytes, host)
	return levelsOf(uint64(can*ratio(d.BackgroundRatio, d.BackgroundBytes, host)), uint64(limit)), true
}

// headroomOf is what a group, and those above it, may still take of memory, bytes;
// MaxUint64 without a bound.
func headroomOf(g cgroupfs.Group) (uint64, error) {
	room := uint64(math.MaxUint64)
	for ; !g.IsRoot(); g = g.Parent() {
		m, there, err := g.Memory()
		if err != nil {
			return 0, err
		}
		bound := m.Max
		if m.High > 0 && (bound == 0 || m.High < bound) {
			bound = m.High
		}
		if !there || bound == 0 {
			continue
		}
		used, err := g.MemoryUsed()
		if err != nil {
			return 0, err
		}
		room = min(room, bound-min(bound, used))
	}
	return room, nil
}
