package pacer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// strayLeast is how old an empty cell is that may be nobody's. One in which a command is to be born
// is younger (firstFor): it may be that of a weir in a container, whose records are not here.
const strayLeast = 15 * time.Second

// removeStrays removes cells that are nobody's: without processes and groups, and of no group on
// record. A pacer leaves one if it dies, and its record is lost; or if a process that it could not
// move ended later. The owner of the group above could not remove that group.
func removeStrays(dir state.Dir, fs *cgroupfs.FS) error {
	all := cellsOf(fs)
	if len(all) == 0 {
		return os.RemoveAll(markOf(dir))
	}
	markCells(dir) // who looked before they were made may have removed it
	var old []cgroupfs.Group
	for _, own := range all {
		if since, err := own.ThereSince(); err == nil && time.Since(since) > strayLeast {
			old = append(old, own)
		}
	}
	if len(old) == 0 {
		return nil
	}
	jobs, err := Paced(dir) // now: each cell is younger than its record
	if err != nil {
		return nil // whose they are is not known. Sweep says why
	}
	for _, j := range jobs {
		limited, err := j.Limited.Find(fs)
		if err != nil {
			return nil // the same
		}
		name := cgroupfs.CellName(limited)
		old = slices.DeleteFunc(old, func(own cgroupfs.Group) bool { return own.In(name) })
	}
	var errs []error
	for _, own := range slices.Backward(old) { // one may be in another
		if err := own.Remove(); err != nil && !errors.Is(err, unix.EBUSY) && !cgroupfs.IsGone(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// markOf is a file that a pacer leaves as long as there may be cells. Without it nobody walks all groups, which takes some
// 10 µs for each.
func markOf(dir state.Dir) string { return filepath.Join(dir.Path(), "cells") }

// markCells makes that file. It is a hint: without it, cells at the top of v1's freezer are found all the same.
func markCells(dir state.Dir) { _ = os.WriteFile(markOf(dir), nil, 0o600) }

// mayStray reports whether cells are worth looking for in all groups: a pacer that has died may have left some, or there
// are some in the freezer's root, where most of v1 are. One that runs looks for them itself when it ends.
func mayStray(dir state.Dir, fs *cgroupfs.FS) bool {
	_, err := os.Lstat(markOf(dir))
	may := err == nil
	if h := fs.With(Freezer); !may && h != nil {
		top, err := h.Root().Children()
		may = err == nil && slices.ContainsFunc(top, cgroupfs.Group.IsCell)
	}
	return may && StandingOf(dir) != Running
}

// cellsOf lists the cells of all groups, whoever made them; outer ones first.
func cellsOf(fs *cgroupfs.FS) (all []cgroupfs.Group) {
	for _, h := range []*cgroupfs.Hierarchy{fs.With(Freezer), fs.Unified()} {
		if h == nil {
			continue
		}
		failed := func(cgroupfs.Group, error) {} // its cells stay
		_ = h.Root().Explore(func(g cgroupfs.Group) error {
			if g.IsCell() && !g.IsRoot() {
				all = append(all, g)
			}
			return nil
		}, failed)
	}
	return all
}
