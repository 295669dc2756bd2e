package pacer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A released process is out of its cell for a moment, so that it goes on while others do not.
type released struct {
	pid  int
	cell cgroupfs.Group
}

// isFree reports whether a process is released.
func (c *cells) isFree(pid int) bool {
	return slices.ContainsFunc(c.free, func(r released) bool { return r.pid == pid })
}

// release moves a process from its cell to the group above, where it goes on. Others of the cell
// stay paused. It fails for who is in no cell, and for a thread.
func (c *cells) release(pid int) error {
	if c.isFree(pid) {
		return nil
	}
	for home, each := range c.all {
		if each.threads {
			continue
		}
		if in, err := each.own.Processes(); err != nil || !slices.Contains(in, pid) {
			continue
		}
		c.before()
		c.free = append(c.free, released{pid, each.own})
		if err := home.AddProcess(pid); err != nil {
			c.free = c.free[:len(c.free)-1]
			return err
		}
		return nil
	}
	return fmt.Errorf("resume process %d alone: it is in no cell", pid)
}

// retake moves released processes back. One that has ended causes no error, and one whose cell
// is gone is brought as a newcomer is.
func (c *cells) retake() error {
	if len(c.free) == 0 {
		return nil
	}
	free := c.free
	c.free, c.known = nil, c.known[:0]
	var errs []error
	for _, r := range free {
		if err := r.cell.AddProcess(r.pid); err != nil && !cgroupfs.IsGone(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// still reports whether all processes of the cells have stopped, and may be asked again a moment
// later if not.
func (c *cells) still() bool {
	for _, each := range c.all {
		if is, err := each.own.Still(); err == nil && !is {
			return false
		}
	}
	return true
}
