package pacer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
)

// A Job is a group that the pacer holds, as its record and its socket have it.
type Job struct {
	Limited Place           `json:"limited"` // the group with the kernel's rules
	Stopped Place           `json:"stopped"` // the group that is frozen: the same on v2
	Devices []blkdev.Number `json:"devices"` // those that the limit is on
	WBPS    uint64          `json:"wbps"`    // bytes a second, of all of them together
	// Own: weir made the group that is frozen, and the processes go back to the one above
	// when it is not needed any more.
	Own bool `json:"own,omitempty"`
}

// A Place is a group: its hierarchy, by a controller of v1's or "" for cgroup2, and its path.
type Place struct {
	Controller string `json:"controller,omitempty"`
	Path       string `json:"path"`
}

// PlaceOf names a group for a record. Controller is one of its hierarchy's, on v1.
func PlaceOf(g cgroupfs.Group, controller string) Place {
	if g.Hierarchy().Version == cgroupfs.V2 {
		controller = ""
	}
	return Place{controller, g.Path()}
}

// Holds reports whether one place is another one, or above it.
func (p Place) Holds(other Place) bool {
	return p.Controller == other.Controller && (p.Path == "/" || p.Path == other.Path || strings.HasPrefix(other.Path, p.Path+"/"))
}

// Find finds the group of a place.
func (p Place) Find(fs *cgroupfs.FS) (cgroupfs.Group, error) {
	h := fs.Unified()
	if p.Controller != "" {
		h = fs.With(p.Controller)
	}
	if h == nil {
		return cgroupfs.Group{}, fmt.Errorf("find cgroup %s: no hierarchy has %q", p.Path, p.Controller)
	}
	return h.Group(p.Path)
}

// check refuses what cannot be done.
func (j Job) check() error {
	if j.WBPS == 0 || len(j.Devices) == 0 || j.Limited.Path == "" || j.Stopped.Path == "" {
		return fmt.Errorf("pace cgroup %q: no limit, no device or no group is named", j.Limited.Path)
	}
	return nil
}

// Release lets the processes of a job go on, and puts them back where they were if weir
// has moved them. A group that is gone is no error.
func (j Job) Release(fs *cgroupfs.FS) error {
	g, err := j.Stopped.Find(fs)
	if err != nil {
		return err
	}
	if err := g.Thaw(); err != nil {
		if cgroupfs.IsGone(err) {
			return nil
		}
		return err
	}
	if !j.Own {
		return nil
	}
	return j.dissolve(g)
}

// dissolve moves the processes of a group to the one above, and removes it.
func (j Job) dissolve(g cgroupfs.Group) error {
	for range dissolveTries { // they fork meanwhile
		pids, err := g.Processes()
		if cgroupfs.IsGone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			if err := g.Parent().AddProcess(pid); err != nil && !cgroupfs.IsGone(err) {
				return err
			}
		}
	}
	for range dissolveTries { // who has left it is taken off a moment later
		err := g.RemoveAll()
		if err == nil || cgroupfs.IsGone(err) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
		time.Sleep(time.Millisecond)
	}
	return nil // somebody has made groups in it; nobody is stopped there
}

const dissolveTries = 100
