package targets

import (
	"fmt"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// GroupWith returns the target's group in the hierarchy of a controller. On v1 that can be another
// hierarchy than that of disk I/O: there it is the group of one of the target's processes. none
// says why there is no such group; empty: there is.
func (t Target) GroupWith(groups *cgroupfs.FS, controller string) (g cgroupfs.Group, none string, err error) {
	h := groups.With(controller)
	if h == nil {
		return g, fmt.Sprintf("no mounted cgroup hierarchy has the %s controller", controller), nil
	}
	if t.Group.Hierarchy() == h {
		return t.Group, "", nil
	}
	pid := t.anyProcess()
	if pid == 0 {
		return g, fmt.Sprintf("%s has no process, so weir cannot find its %s cgroup", t.Group.Path(), controller), nil
	}
	g, err = groups.OfProcess(h, pid)
	if cgroupfs.IsGone(err) {
		return g, "its process is gone", nil
	}
	return g, "", err
}

// anyProcess is one of the target's processes; 0: it has none, as far as can be told.
func (t Target) anyProcess() int {
	switch {
	case t.PID != 0:
		return t.PID
	case len(t.Firsts) > 0:
		return t.Firsts[0]
	}
	if members, err := Members(t.Group); err == nil && len(members) > 0 {
		return members[0]
	}
	return 0
}
