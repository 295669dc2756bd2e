package prove

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/cgroupfs"
)

// Inside returns the group that a load is started in, to be bound as a target is: the
// target's own; or on v2, where a group that gives controllers to groups below it can
// have no processes (cgroup-v2.rst, "No Internal Process Constraint"), the first one
// below it that has one.
func Inside(g cgroupfs.Group) (cgroupfs.Group, error) {
	if g.Hierarchy().Version == cgroupfs.V1 {
		return g, nil
	}
	found, any := g, false
	err := g.Walk(func(below cgroupfs.Group) error {
		if any {
			return nil
		}
		pids, err := below.Processes()
		if errors.Is(err, unix.EOPNOTSUPP) {
			return nil // threaded: it takes threads, not processes
		}
		if len(pids) > 0 {
			found, any = below, true
		}
		return err
	})
	if err != nil {
		return g, fmt.Errorf("find a process in %s: %w", g.Path(), err)
	}
	return found, nil
}
