package hold

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/process"
)

// strays are the threads in v1 groups that do not belong to systemd units.
type strays struct {
	Found   uint64  `json:"found"` // when, in ticks since the boot
	Threads []stray `json:"threads"`
}

type stray struct {
	Group   rawtext.Text `json:"group"`
	TID     int          `json:"tid"`
	Started uint64       `json:"started"` // in ticks since the boot: the number may be another's later
}

// findStrays lists the strays of a hierarchy. systemd fills the groups of units, and the root
// group has all threads that are in no other group.
func findStrays(io *cgroupfs.Hierarchy) (strays, error) {
	all := strays{Found: process.Now()}
	err := io.Root().Walk(func(g cgroupfs.Group) error {
		if _, isUnit := systemd.UnitOfPath(g.Path()); g.IsRoot() || isUnit {
			return nil
		}
		tids, err := g.Threads()
		for _, tid := range tids {
			if p, err := process.ReadStat(tid); err == nil { // else it has ended
				all.Threads = append(all.Threads, stray{rawtext.Text(g.Path()), tid, p.Started})
			}
		}
		return err
	})
	return all, err
}

// restoreRounds bounds how often weir looks for processes that others forked meanwhile. The
// second round usually finds none.
const restoreRounds = 10

// restore moves the strays back, and the processes that they forked where systemd had moved
// them.
func (s strays) restore(io *cgroupfs.Hierarchy) error {
	if len(s.Threads) == 0 {
		return nil
	}
	for range restoreRounds {
		moved, err := s.moveBack(io)
		if err != nil {
			return err
		}
		born, err := s.adopt(io)
		if err != nil {
			return err
		}
		if moved == 0 && born == 0 {
			return nil
		}
	}
	return nil
}

func (s strays) moveBack(io *cgroupfs.Hierarchy) (moved int, err error) {
	members := map[rawtext.Text]map[int]bool{}
	var errs []error
	for _, one := range s.Threads {
		g, err := io.Group(string(one.Group))
		if err != nil {
			return moved, err
		}
		if members[one.Group] == nil {
			tids, err := g.Threads()
			if err != nil && !cgroupfs.IsGone(err) {
				return moved, err
			}
			members[one.Group] = make(map[int]bool, len(tids))
			for _, tid := range tids {
				members[one.Group][tid] = true
			}
		}
		if members[one.Group][one.TID] {
			continue
		}
		if p, err := process.ReadStat(one.TID); err != nil || p.Started != one.Started {
			continue // it has ended
		}
		err = g.AddThread(one.TID)
		if err == nil {
			moved++
		} else if !cgroupfs.IsGone(err) { // the thread, or the group
			errs = append(errs, fmt.Errorf("put thread %d back into its group: %w", one.TID, err))
		}
	}
	return moved, errors.Join(errs...)
}

// adopt moves processes that the strays have forked since into their parents' groups, and adds
// them to the strays.
func (s *strays) adopt(io *cgroupfs.Hierarchy) (born int, err error) {
	groups := make(map[int]rawtext.Text, len(s.Threads))
	for _, one := range s.Threads {
		groups[one.TID] = one.Group
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || groups[pid] != "" {
			continue
		}
		p, err := process.ReadStat(pid)
		if err != nil || p.Started < s.Found {
			continue
		}
		group := groups[p.Parent]
		if group == "" {
			continue
		}
		g, err := io.Group(string(group))
		if err != nil {
			return born, err
		}
		if err := g.AddProcess(pid); err != nil && !cgroupfs.IsGone(err) {
			return born, fmt.Errorf("put process %d into its parent's group: %w", pid, err)
		}
		s.Threads = append(s.Threads, stray{group, pid, p.Started})
		born++
	}
	return born, nil
}
