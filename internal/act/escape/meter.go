package escape

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A Meter counts for a pacer what has escaped a group on some disks, and what the kernel
// charged to the group there. It uses a Watcher, or an Estimate if there is none.
type Meter struct {
	group    cgroupfs.Group
	devices  []blkdev.Number
	upon     blkdev.Upon // of devices
	watcher  Watcher     // nil: estimate counts
	id       uint64
	on       map[blkdev.Number]bool // of what the watcher counts: whether it is on the disks
	stats    *cgroupfs.OpenStats
	estimate *Estimate
	suspects suspects // of what estimate counts

	byDisk           map[blkdev.Number]uint64 // what the watcher has counted, at the last look
	escaped, charged uint64
	own              map[blkdev.Number]uint64 // of charged, by disk: see charge
	written          uint64                   // by the group's processes, at the last look
	pending          bool                     // something of it waits in memory
}

// NewMeter starts to count. The watcher may be nil. It belongs to the caller, and reports the
// group each time that step more bytes have escaped.
func NewMeter(g cgroupfs.Group, devices []blkdev.Number, w Watcher, step uint64) (m *Meter, err error) {
	m = &Meter{group: g, watcher: w, suspects: suspects{began: time.Now().Add(-clockMost), since: -1}}
	m.On(devices)
	if w == nil {
		m.estimate, err = NewEstimate(g, m.devices)
		return m, err
	}
	if m.id, err = g.ID(); err != nil {
		return nil, err
	}
	if m.stats, err = g.OpenStats(); err != nil {
		return nil, err
	}
	if err = w.Add(g, step); err == nil {
		_, err = m.watched()
	}
	return m, err
}

// Threshold is how many bytes have to escape before a group is paused: a tenth of a second of
// the limit, up to 4 MiB; for an Estimate no less than its possible error.
func Threshold(bytesPerSec uint64, watched bool) uint64 {
	if watched {
		return min(max(bytesPerSec/10, 64<<10), thresholdMost)
	}
	return max(thresholdMost, 512<<10*uint64(runtime.NumCPU()))
}

const thresholdMost = 4 << 20

// restMost is the longest time between two looks of an Estimate at a group of which nothing
// escapes.
const restMost = 30 * time.Millisecond

// Rest is how long a group of which nothing escapes needs no look. A watcher reports escapes by
// itself.
func (m *Meter) Rest() time.Duration {
	if m.watcher != nil {
		return time.Second
	}
	return restMost
}

// Look returns what has escaped, and what was charged, since the last look. The escaped bytes
// may be negative, if an Estimate finds that it was wrong.
func (m *Meter) Look() (escaped, charged float64, err error) {
	before, paid := m.escaped, m.charged
	if m.watcher != nil {
		_, err = m.watched()
	} else {
		err = m.estimated()
	}
	if err != nil {
		return 0, 0, err
	}
	return float64(m.escaped) - float64(before), float64(m.charged - min(m.charged, paid)), nil
}

func (m *Meter) watched() (*Meter, error) {
	all, err := m.watcher.Escaped(m.id)
	if err != nil {
		return m, err
	}
	m.byDisk, m.escaped = all, 0
	for n, bytes := range all {
		on, known := m.on[n]
		if !known {
			on = slices.ContainsFunc(m.devices, Disks(context.Background(), n)) // sysfs answers at once
			m.on[n] = on
		}
		if on {
			m.escaped += bytes
		}
	}
	stats, err := m.stats.Bytes()
	if err != nil {
		return m, err
	}
	m.charge(stats)
	return m, nil
}

// charge adds up what was charged for writes to the disks. A write is charged to a volume before it
// is to the volume's disk, so what was a disk's own never falls again.
func (m *Meter) charge(stats []cgroupfs.Stat) {
	m.charged = 0
	for _, s := range stats {
		if slices.Contains(m.devices, s.Device) {
			m.own[s.Device] = max(m.own[s.Device], m.upon.Own(s.Device, writtenOf(stats)))
			m.charged += m.own[s.Device]
		}
	}
}

// estimated reads the group's own counters only if its processes have written, or something
// waits to be charged, because reading them is slow.
func (m *Meter) estimated() error {
	written, _, err := m.estimate.written()
	if err != nil || written.WriteBytes == m.written && !m.pending {
		return err
	}
	r, err := m.estimate.Look()
	if err != nil {
		return err
	}
	m.written, m.pending = r.Written, r.Dirty > 0
	m.escaped = r.Escaped
	m.charge(r.Stats)
	return nil
}

// ByDisk is what had escaped by the last look, also on disks without a limit, in bytes; nil without a watcher.
// It asks nobody: the watcher goes through all groups for an answer about one.
func (m *Meter) ByDisk() map[blkdev.Number]uint64 { return maps.Clone(m.byDisk) }

// Disks are those on which something has been seen to escape, as the watcher numbers them.
func (m *Meter) Disks() (on []blkdev.Number) {
	for n, is := range m.on {
		if is {
			on = append(on, n)
		}
	}
	return on
}

// ID is the group's number, as the watcher reports it.
func (m *Meter) ID() uint64 { return m.id }

// On makes the meter count on other disks from now on.
func (m *Meter) On(devices []blkdev.Number) {
	m.devices, m.on, m.suspects.on = slices.Clone(devices), map[blkdev.Number]bool{}, map[blkdev.Number]bool{}
	m.upon, m.own = blkdev.New("/").Upon(context.Background(), devices), map[blkdev.Number]uint64{} // sysfs answers at once
}

// Close ends the counting.
func (m *Meter) Close() {
	if m.estimate != nil {
		m.estimate.Close()
	}
	if m.stats != nil {
		_ = m.stats.Close()
	}
	if m.watcher != nil {
		_ = m.watcher.Remove(m.id) // it ends with its process
	}
}
