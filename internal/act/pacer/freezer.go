package pacer

import (
	"slices"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Freezer is the v1 controller that pauses processes.
const Freezer = "freezer"

// JobFor returns the request to hold a group with these rules. It uses the lowest write rate,
// because the pacer cannot tell disks apart. some is false if there is none.
func JobFor(g cgroupfs.Group, rules []cgroupfs.Rule) (j Job, some bool) {
	j = Job{Limited: PlaceOf(g, "blkio")}
	for _, r := range rules {
		if n, bound := r.Limit.WBPS.Number(); bound {
			if j.WBPS == 0 || n < j.WBPS {
				j.WBPS = n
			}
			j.Devices = append(j.Devices, r.Device)
		}
	}
	return j, len(j.Devices) > 0
}

// CellsFor returns the cells in which the pacer pauses the processes of a limited group: on v1
// below their groups in the freezer's hierarchy, on v2 in the group itself. pid 0 is the
// caller.
func CellsFor(fs *cgroupfs.FS, limited cgroupfs.Group, pids ...int) ([]cgroupfs.Group, error) {
	name := cgroupfs.CellName(limited)
	if limited.Hierarchy().Version == cgroupfs.V2 {
		cell, err := limited.Child(name)
		return []cgroupfs.Group{cell}, err
	}
	freezer := fs.With(Freezer)
	if freezer == nil {
		return nil, NoFreezer()
	}
	var cells []cgroupfs.Group
	for _, pid := range pids {
		home, err := fs.OfProcess(freezer, pid)
		if cgroupfs.IsGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		cell, err := home.Child(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(cells, cell) {
			cells = append(cells, cell)
		}
	}
	return cells, nil
}

// NoFreezer is the error on a v1 host where no process can be paused.
func NoFreezer() error {
	return &fault.Unsupported{Feature: "pace on cgroup v1", Reason: "the freezer controller is not mounted", Remedy: "mount -t cgroup -o freezer freezer DIR"}
}
