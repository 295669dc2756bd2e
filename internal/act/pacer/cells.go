package pacer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// cells are the groups in which the processes of a limited group are paused: one group of weir
// in each group that has processes (see cgroupfs.CellName). On v1 they are in the freezer's
// hierarchy.
type cells struct {
	fs      *cgroupfs.FS
	limited cgroupfs.Group
	name    string
	tell    func(cgroupfs.Group) error // the guard, before a cell is stopped for the first time
	untell  func(cgroupfs.Group) error
	before  func() // is called before processes are moved, which can take long: see moveMost

	all     map[cgroupfs.Group]*cell // by home
	stopped bool
	first   cgroupfs.Group // is kept until kept, empty as it may be: a command is to be born there
	kept    time.Duration
	passed  map[int]bool            // not to be brought: see background.IsHelper
	tidied  time.Duration           // see untidy
	seen    []int                   // the members then
	empties bool                    // there was an empty cell
	known   []int                   // members of v1 who are all in cells, or passed over
	missed  map[cgroupfs.Group]miss // see try
	apart   map[int]time.Duration   // whose threads are not all in the limited group, and since when
	free    []released
}

type cell struct {
	own     cgroupfs.Group
	brake   *cgroupfs.Brake
	threads bool
	empty   time.Duration // since when it has been; 0: it is not
}

const (
	// bringRounds bounds how often newcomers are listed again: processes fork meanwhile.
	bringRounds = 4
	// firstFor is how long a cell stays without processes if a command is about to start in it.
	firstFor = 10 * time.Second
	// emptyFor is how long a cell without processes stays. Meanwhile the owner of the group
	// above cannot remove that group.
	emptyFor = 150 * time.Millisecond
	// tidyMost is the longest time between two looks for empty cells while no process comes or
	// goes.
	tidyMost = 500 * time.Millisecond
	// apartMost is how long a v1 process is left out if only some of its threads are in the
	// limited group: it may be a weir that starts a command there.
	apartMost = 100 * time.Millisecond
)

func (c *cells) v1() bool { return c.limited.Hierarchy().Version == cgroupfs.V1 }

// make makes the cell of a group, in the same state as the others.
func (c *cells) make(home cgroupfs.Group) (*cell, error) {
	if have := c.all[home]; have != nil {
		return have, nil
	}
	made, err := c.open(home)
	if err != nil {
		return nil, err
	}
	if err = c.tell(made.own); err == nil && c.stopped {
		err = made.brake.Set(true)
	}
	if err != nil {
		return nil, errors.Join(err, made.brake.Close())
	}
	if c.all == nil {
		c.all = make(map[cgroupfs.Group]*cell)
	}
	c.all[home] = made
	return made, nil
}

// open makes a cell, or opens an existing one. It replaces a cell that somebody else made,
// because its owner could resume the processes in it.
func (c *cells) open(home cgroupfs.Group) (*cell, error) {
	for evicted := false; ; evicted = true {
		own, threads, err := home.CreateCell(c.name)
		if err != nil {
			return nil, fmt.Errorf("make cgroup: %w", err)
		}
		brake, err := own.Brake()
		if err != nil {
			return nil, err
		}
		if err = brake.Check(); err == nil {
			return &cell{own: own, brake: brake, threads: threads}, nil
		}
		_ = brake.Close() // nothing was written
		if evicted {
			return nil, err
		}
		c.before()
		if gone := evict(own, threads); gone != nil {
			return nil, errors.Join(err, gone)
		}
	}
}

// set pauses or resumes the processes of all cells.
func (c *cells) set(stop bool) error {
	c.stopped = stop
	var errs []error
	for home, each := range c.all {
		err := each.brake.Set(stop)
		if cgroupfs.IsGone(err) { // with its home: its processes are where somebody has put them
			c.forget(home)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// forget drops a cell that is gone. There is nothing to write back to its freezer file, and a
// guard that is gone too will be replaced.
func (c *cells) forget(home cgroupfs.Group) {
	gone := c.all[home]
	delete(c.all, home)
	_ = errors.Join(gone.brake.Close(), c.untell(gone.own))
}

// gather moves processes that are in no cell into one. moved reports whether there were any.
func (c *cells) gather(r *roster, now time.Duration) (moved bool, err error) {
	for range bringRounds {
		var some bool
		if c.v1() {
			some, err = c.bringV1(r, now)
		} else {
			some = c.bringV2(r, now)
		}
		if !some || err != nil {
			return moved, err
		}
		moved = true
		if err := r.enumerate(); err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// bringV2 moves the processes of a group itself into the cell below it.
func (c *cells) bringV2(r *roster, now time.Duration) (some bool) {
	for _, p := range r.places {
		if !p.group.In(c.name) {
			some = c.move(p.group, p.tasks, p.threads, now) || some
		} else if home := p.group.Parent(); !home.In(c.name) { // another pacer's; its home may be another limit's cell
			c.try(home, now, func() error {
				_, err := c.make(home)
				return err
			})
		}
	}
	return some
}

// bringV1 moves members that are in no cell into the cell of their group in the freezer's
// hierarchy.
func (c *cells) bringV1(r *roster, now time.Duration) (some bool, err error) {
	if len(c.apart) == 0 && slices.Equal(c.known, r.members) {
		return false, nil
	}
	c.known = append(c.known[:0], r.members...)
	in := make(map[int]bool, len(r.members))
	for _, each := range c.all {
		pids, err := each.own.Processes()
		if err != nil && !cgroupfs.IsGone(err) {
			return false, err
		}
		for _, pid := range pids {
			in[pid] = true
		}
	}
	homes := make(map[cgroupfs.Group][]int)
	for _, pid := range r.members {
		if in[pid] || !c.whole(pid, now) {
			continue
		}
		home, err := c.fs.OfProcess(c.fs.With("freezer"), pid)
		if cgroupfs.IsGone(err) {
			continue
		}
		if err != nil {
			return some, err
		}
		homes[home] = append(homes[home], pid)
	}
	for home, pids := range homes {
		some = c.move(home, pids, false, now) || some
	}
	return some, nil
}

// move moves tasks of a group into its cell.
func (c *cells) move(home cgroupfs.Group, tasks []int, threads bool, now time.Duration) (some bool) {
	tasks = slices.DeleteFunc(slices.Clone(tasks), c.passes)
	if len(tasks) == 0 {
		return false
	}
	c.try(home, now, func() (err error) {
		some, err = c.moveInto(home, tasks, threads)
		return err
	})
	return some
}

func (c *cells) moveInto(home cgroupfs.Group, tasks []int, threads bool) (some bool, err error) {
	into, err := c.makeFor(home, threads)
	if err != nil {
		return false, err
	}
	in, err := into.own.Tasks(into.threads) // another pacer's
	tasks = slices.DeleteFunc(tasks, func(id int) bool { return slices.Contains(in, id) })
	if len(tasks) > 0 {
		c.before()
	}
	for _, id := range tasks {
		failed := into.own.AddTask(id, into.threads)
		switch {
		case failed == nil:
			some = true
		case errors.Is(failed, unix.EINVAL): // a kernel thread, which writes nothing for itself
			c.pass(id)
		case !cgroupfs.IsGone(failed) && err == nil:
			err = failed
		}
	}
	return some, err
}

func (c *cells) pass(pid int) {
	if c.passed == nil {
		c.passed = make(map[int]bool)
	}
	c.passed[pid] = true
}

// passes reports whether a process must not be moved into a cell.
func (c *cells) passes(pid int) bool {
	if c.isFree(pid) {
		return true
	}
	if _, known := c.passed[pid]; !known {
		helper := background.IsHelper(pid)
		if !helper && background.MayBecomeHelper(pid) && !c.waited(pid, clockNow()) {
			return true
		}
		c.pass(pid)
		c.passed[pid] = helper
	}
	return c.passed[pid]
}

// waited reports whether a process has been in the group for so long that it cannot be a weir
// about to start a command, or a helper.
func (c *cells) waited(pid int, now time.Duration) bool {
	since, known := c.apart[pid]
	if known {
		return now-since > apartMost
	}
	if c.apart == nil {
		c.apart = make(map[int]time.Duration)
	}
	c.apart[pid] = now
	return false
}

// whole reports whether all threads of a process are in the limited group, or have had the time to
// be. On v1, a weir that starts a command has one thread in the group for a moment, and on a busy
// machine for longer: in a cell all of it would be paused, and pass no signals on.
func (c *cells) whole(pid int, now time.Duration) bool {
	return threadsIn(c.limited, pid) || !background.MayBecomeHelper(pid) && c.waited(pid, now)
}

// untidy reports whether it is time for tidy: a process came or went, a cell is empty, or the
// last look was too long ago.
func (c *cells) untidy(r *roster, now time.Duration) bool {
	return c.empties || len(c.missed) > 0 || now-c.tidied > tidyMost || !slices.Equal(c.seen, r.members)
}

// tidy removes cells that have been empty for a while, and releases processes that have left
// the limited group.
func (c *cells) tidy(r *roster, now time.Duration) {
	c.tidied, c.seen, c.empties = now, append(c.seen[:0], r.members...), false
	clear(c.passed) // the numbers are given again
	c.known = c.known[:0]
	for pid, since := range c.apart {
		if now-since > 10*apartMost {
			delete(c.apart, pid)
		}
	}
	for home, each := range c.all {
		tasks, err := each.own.Tasks(each.threads)
		switch {
		case cgroupfs.IsGone(err):
			err = nil
			c.forget(home)
		case err != nil:
		case len(tasks) > 0:
			if each.empty = 0; each.own == c.first {
				c.kept = 0
			}
			err = c.leave(home, tasks, r.members)
		case each.empty == 0:
			each.empty, c.empties = now, true
		case now-each.empty > emptyFor && (each.own != c.first || now >= c.kept):
			if each.own.Remove() == nil { // else it is not empty any more
				c.forget(home)
			}
		default:
			c.empties = true
		}
		if err != nil && !cgroupfs.IsGone(err) {
			c.miss(home, err, now)
		}
	}
	c.prune(now)
}

// leave moves processes back that are in a v1 cell but no longer in the limited group.
func (c *cells) leave(home cgroupfs.Group, tasks, members []int) error {
	if !c.v1() {
		return nil
	}
	for _, pid := range tasks {
		if slices.Contains(members, pid) || !threadsIn(c.all[home].own, pid) || threadsAny(c.limited, pid) {
			continue
		}
		if err := home.AddProcess(pid); err != nil && !cgroupfs.IsGone(err) {
			return err
		}
	}
	return nil
}

// dissolve resumes all processes, moves them back and removes the cells.
func (c *cells) dissolve() error {
	errs := []error{c.set(false)}
	for home, each := range c.all {
		err := dissolve(each.own, each.threads)
		errs = append(errs, err)
		if err == nil {
			c.forget(home)
		}
	}
	return errors.Join(errs...)
}

func (c *cells) close() {
	for _, each := range c.all {
		_ = each.brake.Close()
	}
}
