package hold

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/systemd"
)

// strays are the threads in groups of v1 that are no unit's of systemd's.
type strays struct {
	Found   uint64  `json:"found"` // when, in ticks since the boot
	Threads []stray `json:"threads"`
}

type stray struct {
	Group   string `json:"group"`
	TID     int    `json:"tid"`
	Started uint64 `json:"started"` // in ticks since the boot: the number may be another's later
}

// findStrays lists those of a hierarchy. Units' groups are systemd's to fill; the root
// has who is in no other group.
func findStrays(io *cgroupfs.Hierarchy) (strays, error) {
	var all strays
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return all, fmt.Errorf("read clock: %w", err)
	}
	all.Found = uint64(now.Nano()) / (1e9 / ticksPerSecond)
	err := io.Root().Walk(func(g cgroupfs.Group) error {
		if _, isUnit := systemd.UnitOfPath(g.Path()); g.IsRoot() || isUnit {
			return nil
		}
		tids, err := g.Threads()
		for _, tid := range tids {
			if p, err := readProcess(tid); err == nil { // else it has ended
				all.Threads = append(all.Threads, stray{g.Path(), tid, p.started})
			}
		}
		return err
	})
	return all, err
}

// restoreRounds bounds how often processes are looked for that others have forked
// meanwhile; the second round of two finds none as a rule.
const restoreRounds = 10

// restore puts those that were moved back, and what they have forked where they were
// moved to.
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
	members := map[string]map[int]bool{}
	var errs []error
	for _, one := range s.Threads {
		g, err := io.Group(one.Group)
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
		if p, err := readProcess(one.TID); err != nil || p.started != one.Started {
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

// adopt puts what the strays have forked since they were found into its parent's group,
// and takes it for one of them.
func (s *strays) adopt(io *cgroupfs.Hierarchy) (born int, err error) {
	groups := make(map[int]string, len(s.Threads))
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
		p, err := readProcess(pid)
		if err != nil || p.started < s.Found {
			continue
		}
		group := groups[p.parent]
		if group == "" {
			continue
		}
		g, err := io.Group(group)
		if err != nil {
			return born, err
		}
		if err := g.AddProcess(pid); err != nil && !cgroupfs.IsGone(err) {
			return born, fmt.Errorf("put process %d into its parent's group: %w", pid, err)
		}
		s.Threads = append(s.Threads, stray{group, pid, p.started})
		born++
	}
	return born, nil
}

// ticksPerSecond is the kernel's USER_HZ, on all architectures that weir is built for.
const ticksPerSecond = 100

type process struct {
	parent  int
	started uint64 // in ticks since the boot
}

// readProcess reads proc_pid_stat(5) of a process or a thread.
func readProcess(tid int) (process, error) {
	name := "/proc/" + strconv.Itoa(tid) + "/stat"
	text, err := os.ReadFile(name)
	if err != nil {
		return process{}, err
	}
	const parent, started = 4 - 3, 22 - 3 // fields, after the name, which can hold anything
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= started {
		return process{}, fmt.Errorf("parse %s: it has %d fields", name, len(fields)+2)
	}
	ppid, err := strconv.Atoi(string(fields[parent]))
	start, startErr := strconv.ParseUint(string(fields[started]), 10, 64)
	if err := errors.Join(err, startErr); err != nil {
		return process{}, fmt.Errorf("parse %s: %w", name, err)
	}
	return process{ppid, start}, nil
}
