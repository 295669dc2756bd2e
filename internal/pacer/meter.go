package pacer

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/process"
)

// A meter counts what a group's processes have made dirty and the kernel's rules have not
// seen.
type meter struct {
	limited cgroupfs.Group // whose rules the kernel keeps
	stopped cgroupfs.Group // whose processes are counted
	devices []blkdev.Number

	sum     process.Sum
	births  *process.Births // nil: nobody can tell
	born    time.Duration   // when they told of some last
	members []int
	written process.IO
	charged uint64
	looked  bool

	stats  *cgroupfs.OpenStats
	below  []cgroupfs.Group // stopped, and the groups in it
	listed time.Duration

	mayJoin func(pid int) bool // whoever else may stop it still can, when it has joined the stopped group
	outside []int              // who was in the limited group alone at the last gathering
}

// gatherEvery is how often groups below are listed, and those who have come to the limited
// group from elsewhere are brought where they can be stopped. What is born in the group is
// there from its birth.
const gatherEvery = 100 * time.Millisecond

// bornMost is how long a process takes, from when it has its number, to be in its group, or
// to bring itself or another one there.
const bornMost = 100 * time.Millisecond

// look returns how many bytes were written since the last look, less what was charged to
// the group, and so held by the kernel.
func (m *meter) look(now time.Duration) (unseen float64, err error) {
	gather := m.below == nil || now-m.listed > gatherEvery
	if gather {
		if err := m.list(); err != nil {
			return 0, err
		}
		m.listed = now
	}
	if m.births == nil || m.births.Some() {
		m.born = now
	}
	if gather || now-m.born < bornMost {
		if err := m.enumerate(); err != nil {
			return 0, err
		}
	}
	if gather {
		if err := m.gather(); err != nil {
			return 0, err
		}
	}
	written := m.sum.Look(m.members, process.Proc)
	more := written.Minus(m.written)
	m.written = written
	held, err := m.held()
	if !m.looked { // what was before is not to be paid for
		m.looked, held = true, 0
	}
	return float64(more.Written) - float64(more.Cancelled) - held, err
}

// list finds the groups below the stopped one.
func (m *meter) list() error {
	m.below = m.below[:0]
	return m.stopped.Walk(func(g cgroupfs.Group) error {
		m.below = append(m.below, g)
		return nil
	})
}

// enumerate lists the processes in those groups.
func (m *meter) enumerate() error {
	m.members = m.members[:0]
	for _, g := range m.below {
		pids, err := g.Processes()
		// A group that goes has none; a threaded one's are those of a group above.
		if err != nil && (g == m.stopped || !cgroupfs.IsGone(err) && !errors.Is(err, unix.EOPNOTSUPP)) {
			return err
		}
		m.members = append(m.members, pids...)
	}
	return nil
}

// gather brings processes of the limited group to those that can be stopped.
func (m *meter) gather() error {
	if m.limited == m.stopped {
		return nil
	}
	pids, err := m.limited.Processes()
	before := m.outside
	m.outside = nil
	for _, pid := range pids {
		if slices.Contains(m.members, pid) || !m.mayJoin(pid) {
			continue
		}
		// A weir that starts a command there is in the groups for a moment.
		if m.looked && !slices.Contains(before, pid) {
			m.outside = append(m.outside, pid)
			continue
		}
		if err := m.stopped.AddProcess(pid); err != nil && !cgroupfs.IsGone(err) {
			return err
		}
		m.members = append(m.members, pid)
	}
	return err
}

// held is what was charged for writing to the devices since the last look. On v2 that may be
// the writeback of what was counted when it was made dirty (seen: twice the limit got through),
// and is nothing: all writes of the group count.
func (m *meter) held() (float64, error) {
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

func (m *meter) close() {
	m.sum.Close()
	if m.births != nil {
		_ = m.births.Close()
	}
	if m.stats != nil {
		_ = m.stats.Close()
	}
}
