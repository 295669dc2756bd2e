package launch

import (
	"fmt"
	"os"
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// asUser reports whether weir is not root, so that it needs a delegated group.
func (h Host) asUser() bool { return os.Geteuid() != 0 && h.FS.Root() == "/" }

// scoped reports whether systemd makes the group: for users it makes no group with limits.
func (h Host) scoped() bool { return h.SystemdRuns && !h.asUser() }

// controllersOf lists the controllers that a v2 group must have: io, and memory, because only
// with both does the kernel charge buffered writes to the group (cgroup-v2.rst, "Writeback");
// memory alone, if io is on v1.
func controllersOf(hierarchy *cgroupfs.Hierarchy) []string {
	var list []string
	for _, c := range []string{"io", "memory"} {
		if hierarchy.Version == cgroupfs.V2 && hierarchy.Has(c) {
			list = append(list, c)
		}
	}
	return list
}

// groups chooses the group's place: the io group, and one for memory if it is wanted and that
// controller is on another hierarchy.
func (h Host) groups(o Options) (io cgroupfs.Group, memory *cgroupfs.Group, err error) {
	hierarchy, err := h.FS.IO(o.Version)
	if err != nil {
		return io, nil, err
	}
	name := name(o)
	if io, err = h.placeIn(hierarchy, name, controllersOf(hierarchy)); err != nil {
		return io, nil, err
	}
	if o.MemoryMax == 0 || hierarchy.Has("memory") {
		return io, nil, nil
	}
	other := h.FS.With("memory")
	if other == nil {
		return io, nil, noMemory()
	}
	g, err := h.placeIn(other, name, controllersOf(other))
	return io, &g, err
}

func noMemory() error {
	return fault.With(&fault.Unsupported{Feature: "limit memory", Reason: "no mounted cgroup hierarchy has the memory controller"}, fault.Remedy{Do: fault.NoMemory})
}

// placeIn puts a new group below the caller's own. On v2 the caller's group may be unable to give
// controllers to groups below it; then it is the nearest one above that can.
func (h Host) placeIn(hierarchy *cgroupfs.Hierarchy, name string, controllers []string) (cgroupfs.Group, error) {
	own, err := h.FS.OfProcess(hierarchy, 0)
	if err != nil {
		return cgroupfs.Group{}, err
	}
	for parent := own; ; parent = parent.Parent() {
		child, err := parent.Child(name)
		if err != nil {
			return cgroupfs.Group{}, err
		}
		if parent.IsRoot() || hierarchy.Version == cgroupfs.V1 {
			return child, nil
		}
		// A slice belongs to systemd, even if a user may write to it: systemd takes the
		// controllers back when it next checks (systemd.io, CGROUP_DELEGATION).
		if h.SystemdRuns && h.asUser() && strings.HasSuffix(parent.Path(), ".slice") {
			return cgroupfs.Group{}, notDelegated(own)
		}
		can, err := parent.CanEnable(controllers...)
		if err != nil {
			return cgroupfs.Group{}, err
		}
		if can {
			return child, nil
		}
	}
}

// notDelegated says what a user needs to run weir on a host with systemd.
func notDelegated(own cgroupfs.Group) error {
	why := "it is not delegated to you"
	if inside, err := own.Child("x"); err == nil && inside.MayMake() == nil {
		why = "cgroup v2 enables controllers only below groups without processes, and weir runs in this one"
	}
	return fmt.Errorf("make a cgroup in %s: %s; run weir as root, or in a group below that of a unit with Delegate=yes (DelegateSubgroup=NAME makes one)", own.Dir(), why)
}

// offered reports which controller a user cannot have in a group.
func (h Host) offered(g cgroupfs.Group) error {
	for _, c := range controllersOf(g.Hierarchy()) {
		if h.asUser() && !g.Parent().Offers(c) {
			return fmt.Errorf("make a cgroup in %s: it does not have the %s controller, which only root can enable; run weir as root, or add %s to Delegate= of the unit and of those above it",
				g.Parent().Dir(), c, c)
		}
	}
	return nil
}
