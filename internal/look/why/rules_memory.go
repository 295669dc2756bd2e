package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/limit"
)

// smallMemory is up to where a memory limit makes a slow buffered writer hang or die,
// if its pages take longer than longDrain to get to the disk. At 1 MB/s, measured on
// v2 with ext4: 64 MiB hung or was killed in 5 of 5 runs, 256 MiB hung in 2 of 3; at
// 10 MB/s with 64 MiB writers stalled for 6 s.
const (
	smallMemory = 512 << 20
	longDrain   = 5 * time.Second
)

// strictFor is the bound on a device's dirty pages that is offered, and strictLeast how
// much of it the device may always have: without that, its share of what disks have
// lately written back decides (mm/page-writeback.c, wb_calc_thresh). With both, the same
// writers lived in 14 of 14 runs, at 0.4 to 1.0 of 1 MB/s; smaller bounds gave less. What
// was missing is that writeback begins before the pages that may be dirty are all in the
// one request that waits: see earlyFix.
const (
	strictFor   = 16 << 20
	strictLeast = 15 << 20
)

// writeRate is the limit on bytes written of a place's slowest device.
func (p Place) writeRate() (Device, uint64, bool) {
	var slowest Device
	var rate uint64
	for _, d := range p.Devices {
		if n, ok := d.Limit.WBPS.Number(); ok && (rate == 0 || n < rate) {
			slowest, rate = d, n
		}
	}
	return slowest, rate, rate != 0
}

// drainTime is how long bytes take at a rate.
func drainTime(bytes, perSec uint64) time.Duration {
	seconds := float64(bytes) / float64(perSec)
	return time.Duration(min(seconds, 1e9) * float64(time.Second))
}

// SlowDrain reports whether a group's memory is so small, and the device's limit on bytes
// written so low, that a buffered writer stalls, hangs or is killed (v2): and for how long
// all of that memory drains to the disk.
func SlowDrain(memory uint64, d Device) (took time.Duration, slow bool) {
	rate, ok := d.Limit.WBPS.Number()
	if !ok || memory == 0 || memory > smallMemory || d.strict(rate) {
		return 0, false
	}
	took = drainTime(memory, rate)
	return took, took >= longDrain
}

// drains: all of a group's memory can be dirty pages, which reach the disk only at the limit. A
// process that needs memory waits for that, or is OOM-killed.
func drains(f Facts) []Finding {
	memory, file := f.Group.Memory.bound()
	var found []Finding
	for i, p := range f.Places {
		d, rate, ok := p.writeRate()
		if !ok || !p.Writeback {
			continue
		}
		took, slow := SlowDrain(memory, d)
		if !slow {
			continue
		}
		one := Finding{Code: "slow-drain", Severity: Hurts, cells: writtenBack.at(i),
			Evidence: append([]Evidence{{file, fmt.Sprintf("%d (%s)", memory, limit.FormatSize(memory))}}, d.rateEvidence(limit.WBPS, rate)...),
			Text: fmt.Sprintf("The group's memory can fill with dirty pages that take %s to reach the disk at this limit: a buffered writer will stall, hang or be OOM-killed.",
				Seconds(took))}
		if d.BDI != nil && d.BDI.CanBeStrict {
			one.Fixes = append(one.Fixes, d.earlyFix())
		} else if f.Release.Before(6, 2) {
			one.Fixes = append(one.Fixes, Fix{Text: "boot Linux 6.2 or later, where /sys/class/bdi/" + d.Number.String() + " has strict_limit and max_bytes"})
		}
		one.Fixes = append(one.Fixes, Fix{Text: "give the group far more memory than it writes at once"})
		if file == f.Group.Memory.MaxFile {
			one.Fixes = append(one.Fixes, Fix{Text: "use memory.high instead of memory.max: the writer then stalls but is not killed", Lines: []string{
				fmt.Sprintf("echo %d > %s", memory, quote(strings.TrimSuffix(file, "max")+"high")), "echo max > " + quote(file)}})
		}
		found = append(found, one)
	}
	return found
}

// strictFix bounds what may be dirty for a device. The bound must be there before its
// least is raised to it.
func (d Device) strictFix() Fix {
	return Fix{Text: "limit the dirty data of the device", Lines: []string{
		fmt.Sprintf("echo 1 > %s/strict_limit", d.BDI.Dir),
		fmt.Sprintf("echo %d > %s/max_bytes", strictFor, d.BDI.Dir),
		fmt.Sprintf("echo %d > %s/min_bytes", strictLeast, d.BDI.Dir)}}
}

// earlyFix is strictFix for a group whose memory is small. The flusher would wait until
// a tenth of that is dirty or 30 s old (vm.rst), while the device has nothing to do.
func (d Device) earlyFix() Fix {
	fix := d.strictFix()
	fix.Text += ", and make this host write back early"
	fix.Lines = append(fix.Lines, "echo 1 > /proc/sys/vm/dirty_background_ratio",
		"echo 100 > /proc/sys/vm/dirty_expire_centisecs", "echo 100 > /proc/sys/vm/dirty_writeback_centisecs")
	return fix
}

// strict reports whether the device's dirty pages are bound to little enough. The kernel
// keeps the bound as a share of what may be dirty on the host, so that what it reads as
// moves with the memory that is free (mm/page-writeback.c, bdi_get_max_bytes).
func (d Device) strict(rate uint64) bool {
	return d.BDI != nil && d.BDI.Strict && (d.BDI.MaxBytes <= strictFor*5/4 || drainTime(d.BDI.MaxBytes, rate) < longDrain)
}

// runsAhead: without a bound on memory, a writer is held back only at the host's
// threshold (vm.rst, dirty_ratio).
func runsAhead(f Facts) []Finding {
	if bytes, _ := f.Group.Memory.bound(); bytes != 0 || f.Dirty == nil || f.Dirty.LimitAt == 0 {
		return nil
	}
	var found []Finding
	for i, p := range f.Places {
		d, rate, ok := p.writeRate()
		if !ok || !p.Writeback && !f.rootHolds(p) || d.strict(rate) || drainTime(f.Dirty.LimitAt, rate) < longDrain {
			continue
		}
		text := fmt.Sprintf("The disk is held but the writer is not: up to %s can be dirty here before a writer waits, which takes %s to write at this limit.",
			f.threshold(), Seconds(drainTime(f.Dirty.LimitAt, rate)))
		same := slices.IndexFunc(found, func(one Finding) bool { return one.Text == text })
		if same < 0 {
			same, found = len(found), append(found, Finding{Code: "writer-runs-ahead", Severity: Note, cells: writtenBack.at(), Text: text, Evidence: f.dirtyEvidence()})
		}
		one := &found[same]
		one.cells.places = append(one.cells.places, i)
		if d.BDI != nil && d.BDI.CanBeStrict {
			one.Fixes = append(one.Fixes, d.strictFix())
		}
	}
	return found
}

// writebackRequests are the largest that file systems were seen to write back in: ext4
// ends one at 8 MiB (MAX_WRITEPAGES_EXTENT_LEN), XFS does not. The throttle delays each
// as a whole, and lets it through as a whole.
func writebackRequests() map[string]uint64 {
	return map[string]uint64{"ext4": 8 << 20, "xfs": 30 << 20}
}

// largeWriteback: a buffered write reaches the disk in bursts that are seconds apart.
func largeWriteback(f Facts) []Finding {
	if f.Config.Lacks("CGROUP_WRITEBACK") {
		return nil
	}
	var found []Finding
	for i, p := range f.Places {
		d, rate, ok := p.writeRate()
		if !ok || !p.Writeback || p.FS == nil || d.strict(rate) {
			continue
		}
		request := writebackRequests()[p.FS.FSType]
		if drainTime(request, rate) < time.Second {
			continue
		}
		found = append(found, Finding{Code: "large-writeback", Severity: Note, cells: writtenBack.at(i),
			Evidence: append([]Evidence{{p.FS.Point, p.FS.FSType}}, d.rateEvidence(limit.WBPS, rate)...),
			Text: fmt.Sprintf("Writeback here comes in requests of up to %s. The limit delays each and then lets it through as a whole: nothing for up to %s, then a burst. Only a longer measurement shows the limit's rate.",
				limit.FormatSize(request), Seconds(drainTime(request, rate)))})
	}
	return found
}

// threshold is from where on writers wait: as it was set, or as the kernel has computed it from the
// memory that is free, which is a whole number of MiB only by chance.
func (f Facts) threshold() string {
	if f.Dirty.Bytes != 0 {
		return limit.FormatSize(f.Dirty.LimitAt)
	}
	return limit.FormatMeasured(float64(f.Dirty.LimitAt))
}

// dirtyEvidence is which setting of the pair is in force.
func (f Facts) dirtyEvidence() []Evidence {
	if f.Dirty.Bytes != 0 {
		return []Evidence{{"/proc/sys/vm/dirty_bytes", fmt.Sprint(f.Dirty.Bytes)}}
	}
	return []Evidence{{"/proc/sys/vm/dirty_ratio", fmt.Sprintf("%d %%", f.Dirty.Ratio)}, {"/proc/vmstat", "nr_dirty_threshold: " + f.threshold()}}
}

// backlog: the dirty data takes long to write at the limit, and a process that syncs waits for
// it.
func backlog(f Facts) []Finding {
	if !f.Group.Memory.Known || f.Group.ToMake {
		return nil
	}
	var found []Finding
	for _, p := range f.Places {
		_, rate, ok := p.writeRate()
		if !ok || !p.Writeback || drainTime(f.Group.Memory.Dirty, rate) < longDrain {
			continue
		}
		found = append(found, Finding{Code: "backlog", Severity: Note,
			Evidence: []Evidence{{f.Group.Dir + "/memory.stat", "file_dirty and file_writeback: " + limit.FormatMeasured(float64(f.Group.Memory.Dirty))}},
			Text: fmt.Sprintf("Data that the group has written but that is not on the disk yet needs %s at this limit; an fsync waits as long.",
				Seconds(drainTime(f.Group.Memory.Dirty, rate)))})
	}
	return found
}

// cached: reads from the page cache are no I/O.
func cached(f Facts) []Finding {
	var found []Finding
	for i, p := range f.Places {
		if p.File == "" || p.Cached <= 0 || p.Err != nil {
			continue
		}
		found = append(found, Finding{Code: "cached", Severity: Note, cells: cachedReads.at(i),
			Evidence: []Evidence{{p.File, fmt.Sprintf("%s of %s in the page cache (cachestat, mincore)", limit.FormatSize(uint64(p.Cached)), limit.FormatSize(uint64(p.Size)))}},
			Text:     fmt.Sprintf("%d %% of the file is in the page cache: reading that part is no disk I/O, and no limit slows it down.", p.Cached*100/p.Size),
			Fixes: []Fix{{Text: "to measure reads from the disk, drop this file from the page cache",
				Lines: []string{"dd of=" + quote(p.File) + " oflag=nocache conv=notrunc,fdatasync count=0 status=none"}}}})
	}
	return found
}

// Seconds writes a time in the unit that suits it: "5.3 s", "8 min".
func Seconds(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 10:
		return fmt.Sprintf("%.1f s", s)
	case s < 120:
		return fmt.Sprintf("%.0f s", s)
	case s < 7200:
		return fmt.Sprintf("%.0f min", s/60)
	default:
		return fmt.Sprintf("%.0f h", s/3600)
	}
}
