package pacer

import (
	"slices"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/process"
)

// A meter counts what a group owes the pacer.
type meter interface {
	// look returns the bytes since the last look that the kernel's rules have not seen. members
	// are the group's processes.
	look(now time.Duration, members []int) (unseen float64, err error)
	// on sets the devices.
	on(devices []blkdev.Number)
	close()
}

// newMeter makes the meter that a job asks for.
func (s *server) newMeter(j Job, limited cgroupfs.Group) (meter, error) {
	if j.Count == CountEscaped {
		w, err := s.watcher()
		if err != nil {
			return nil, err
		}
		return newEscaped(j, limited, w, clockNow())
	}
	return &written{limited: limited, devices: slices.Clone(j.Devices)}, nil
}

// written counts what a group's processes dirtied and the kernel's rules have not seen.
type written struct {
	limited cgroupfs.Group // whose rules the kernel keeps
	devices []blkdev.Number
	sum     process.Sum
	last    process.IO
	charged uint64
	looked  bool
	stats   *cgroupfs.OpenStats
}

func (m *written) on(devices []blkdev.Number) { m.devices = slices.Clone(devices) }

func (m *written) look(_ time.Duration, members []int) (unseen float64, err error) {
	now := m.sum.Look(members, process.Proc)
	more := now.Minus(m.last)
	m.last = now
	held, err := m.held()
	if !m.looked { // what was before is not to be paid for
		m.looked, held = true, 0
	}
	return float64(more.Written) - float64(more.Cancelled) - held, err
}

// held returns what the kernel charged for writes to the devices since the last look. On v2 it
// returns 0 and all writes of the group count: there a charge may be the writeback of bytes
// that were counted when they were dirtied (seen: twice the limit got through).
func (m *written) held() (float64, error) {
	if m.limited.Hierarchy().Version == cgroupfs.V2 {
		return 0, nil
	}
	if m.stats == nil {
		var err error
		if m.stats, err = m.limited.OpenStats(); err != nil {
			return 0, err
		}
	}
	stats, err := m.stats.Bytes()
	if err != nil {
		return 0, err
	}
	var all uint64
	for _, s := range stats {
		if slices.Contains(m.devices, s.Device) {
			all += s.WrittenBytes
		}
	}
	more := max(all, m.charged) - m.charged
	m.charged = all
	return float64(more), nil
}

func (m *written) close() {
	m.sum.Close()
	if m.stats != nil {
		_ = m.stats.Close()
	}
}
