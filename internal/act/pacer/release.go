package pacer

import (
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A released process is out of its cell for a moment, so that it alone goes on.
type released struct {
	pid  int // 0: nobody is
	cell cgroupfs.Group
}

// release moves a process from its cell to the group above, where it goes on. Others of the cell
// stay paused. It fails for who is in no cell, and for a thread.
func (c *cells) release(pid int) error {
	if err := c.retake(); err != nil {
		return err
	}
	for home, each := range c.all {
		if each.threads {
			continue
		}
		if in, err := each.own.Processes(); err != nil || !slices.Contains(in, pid) {
			continue
		}
		c.before()
		c.free = released{pid, each.own}
		if err := home.AddProcess(pid); err != nil {
			c.free = released{}
			return err
		}
		return nil
	}
	return fmt.Errorf("resume process %d alone: it is in no cell", pid)
}

// retake moves a released process back. One that has ended causes no error, and one whose cell
// is gone is brought as a newcomer is.
func (c *cells) retake() error {
	free := c.free
	if c.free = (released{}); free.pid == 0 {
		return nil
	}
	c.known = c.known[:0]
	if err := free.cell.AddProcess(free.pid); err != nil && !cgroupfs.IsGone(err) {
		return err
	}
	return nil
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
