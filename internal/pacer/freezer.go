package pacer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"

	"github.com/weir-io/weir/internal/cgroupfs"
)

// Freezer is v1's controller that stops processes.
const Freezer = "freezer"

// prefix begins the names of the groups that weir makes to stop processes in.
const prefix = "weir-pace-"

// JobFor is what the pacer is asked to hold a group with these rules: the lowest rate of
// writing, because it cannot tell disks apart. some is false if there is none.
func JobFor(g, stopped cgroupfs.Group, rules []cgroupfs.Rule) (j Job, some bool) {
	j = Job{Limited: PlaceOf(g, "blkio"), Stopped: PlaceOf(stopped, Freezer), Own: g.Hierarchy().Version == cgroupfs.V1}
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

// StoppedFor is the group in which the processes of a limited group are stopped: the same
// on v2; on v1 one of weir's own below theirs in the freezer's hierarchy, so that whoever
// freezes theirs freezes it too.
func StoppedFor(fs *cgroupfs.FS, g cgroupfs.Group, pids []int) (cgroupfs.Group, error) {
	if g.Hierarchy().Version == cgroupfs.V2 {
		return g, nil
	}
	freezer := fs.With(Freezer)
	if freezer == nil {
		return cgroupfs.Group{}, &cgroupfs.Unsupported{Feature: "pace on cgroup v1", Reason: "the freezer controller is not mounted", Remedy: "mount -t cgroup -o freezer freezer DIR"}
	}
	above, found := freezer.Root(), false
	for _, pid := range pids {
		theirs, err := fs.OfProcess(freezer, pid)
		if cgroupfs.IsGone(err) {
			continue
		}
		if err != nil {
			return cgroupfs.Group{}, err
		}
		if found && theirs != above {
			return cgroupfs.Group{}, fmt.Errorf("pace cgroup %s: its processes are in two groups of the freezer, %s and %s; put them into one", g.Path(), above.Path(), theirs.Path())
		}
		above, found = theirs, true
	}
	sum := sha256.Sum256([]byte(g.Path()))
	name := prefix + hex.EncodeToString(sum[:4])
	if path.Base(above.Path()) == name { // it is paced already
		return above, nil
	}
	return above.Child(name)
}
