package tally

import (
	"context"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A Device is what was done on a device with a limit.
type Device struct {
	Rule
	Charged cgroupfs.Stat
	Disk    blkdev.Counters // what the disk did meanwhile, for anybody
	Reading Span            // in which the group was charged
	Writing Course          // the same, and in which its processes wrote to any disk
	Escaped uint64          // bytes, if Told; else the Reading's, which does not tell disks apart

	began             limit.Limit // that was in force at the start
	rereads, rewrites bool        // another limit on reads, or on writes, was in force later
}

// see takes in what a group was charged for on a device by the end of a moment.
func (d *Device) see(m moment, stats []cgroupfs.Stat) {
	s := d.Charged
	if i := slices.IndexFunc(stats, func(s cgroupfs.Stat) bool { return s.Device == d.Device }); i >= 0 {
		s = stats[i]
	}
	more := func(now, before uint64) uint64 { return now - min(now, before) }
	if s.ReadBytes > d.Charged.ReadBytes {
		d.Reading.grew(m.before, m.now)
	}
	d.Writing.see(m, more(s.WrittenBytes, d.Charged.WrittenBytes), more(s.Writes, d.Charged.Writes), bounds{d.Limit.WBPS, d.Limit.WIOPS})
	d.Charged = s
}

// rest ends the stints of what rests. If it is not known what had escaped by then, a stint goes on.
func (t *Tally) rest(now time.Time) {
	for i := range t.sum.Devices {
		d := &t.sum.Devices[i]
		b := bounds{d.Limit.WBPS, d.Limit.WIOPS}
		if !b.some() || !d.Writing.rested(now, b) {
			continue
		}
		all := amount{d.Charged.WrittenBytes, d.Charged.Writes, t.sum.Written, t.sum.Escaped, t.sum.estimated}
		if t.sum.Told {
			escaped, err := t.ask()
			if err != nil {
				d.Writing.goOn(now) // it is asked again later
				continue
			}
			all.escaped = escapedOn(context.Background(), escaped, *d) // sysfs answers at once
		}
		if !d.Writing.end(all, b) {
			d.Writing.goOn(now)
		}
	}
}

// escapedOn is how much of what has escaped, by disk, went to a device.
func escapedOn(ctx context.Context, escaped map[blkdev.Number]uint64, d Device) (bytes uint64) {
	for n, more := range escaped {
		if escape.Disks(ctx, n)(d.Device) {
			bytes += more
		}
	}
	return bytes
}
