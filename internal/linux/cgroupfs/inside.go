package cgroupfs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Inside returns the group in which a new process is bound as those of the group are: the group
// itself; or on v2, where a group that gives controllers to groups below it can have no processes
// (cgroup-v2.rst, "No Internal Process Constraint"), the first one below it that has one.
func (g Group) Inside() (Group, error) {
	if g.Hierarchy().Version == V1 {
		return g, nil
	}
	found, occupied := g, false
	err := g.Walk(func(below Group) error {
		if occupied {
			return nil
		}
		pids, err := below.Processes()
		if errors.Is(err, unix.EOPNOTSUPP) {
			return nil // threaded: it takes threads, not processes
		}
		if len(pids) > 0 {
			found, occupied = below, true
		}
		return err
	})
	if err != nil {
		return g, fmt.Errorf("find a process in %s: %w", g.Path(), err)
	}
	return found, nil
}
