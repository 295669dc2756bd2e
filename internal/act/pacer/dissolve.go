package pacer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// dissolve moves the processes of a cell to the group above, and removes the cell. Groups that
// the processes made in the cell stay, and the cell with them; nothing is paused there.
func dissolve(own cgroupfs.Group, threads bool) error {
	for range dissolveTries { // they fork meanwhile
		moved, err := empty(own, threads)
		if err != nil && !cgroupfs.IsGone(err) {
			return err
		}
		if !moved {
			break
		}
	}
	for range dissolveTries { // who has left it is taken off a moment later
		err := own.RemoveAll()
		if err == nil || cgroupfs.IsGone(err) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

const dissolveTries = 100

// evict moves all processes of somebody else's group, and of the groups below it, to the group
// above it, and removes it.
func evict(own cgroupfs.Group, threads bool) (err error) {
	home := own.Parent()
	for range evictTries {
		err = own.Walk(func(g cgroupfs.Group) error {
			tasks, err := g.Tasks(threads)
			for _, id := range tasks {
				if err := home.AddTask(id, threads); err != nil && !cgroupfs.IsGone(err) {
					return err
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		if err = own.RemoveAll(); err == nil || cgroupfs.IsGone(err) {
			return nil
		}
		time.Sleep(time.Millisecond) // who has left it is taken off a moment later
	}
	return fmt.Errorf("remove cgroup: %w", err)
}

const evictTries = 10

// empty moves the processes of a cell, and of cells in it, to the group above.
func empty(own cgroupfs.Group, threads bool) (moved bool, err error) {
	home := own.Parent()
	err = own.Walk(func(g cgroupfs.Group) error {
		for above := g; above != own; above = above.Parent() {
			if !above.IsCell() {
				return nil
			}
		}
		tasks, err := g.Tasks(threads)
		for _, id := range tasks {
			if err := home.AddTask(id, threads); err != nil && !cgroupfs.IsGone(err) && !errors.Is(err, unix.EBUSY) { // EBUSY: the home has been given controllers for its children
				return err
			}
			moved = true
		}
		return err
	})
	return moved, err
}

// threadsIn reports whether all threads of a process are in a v1 group.
func threadsIn(g cgroupfs.Group, pid int) bool {
	in, err := g.Threads()
	return err == nil && !slices.ContainsFunc(threadsOf(pid), func(tid int) bool { return !slices.Contains(in, tid) })
}

// threadsAny reports whether any thread is.
func threadsAny(g cgroupfs.Group, pid int) bool {
	in, err := g.Threads()
	return err != nil || slices.ContainsFunc(threadsOf(pid), func(tid int) bool { return slices.Contains(in, tid) })
}

func threadsOf(pid int) (tids []int) {
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if tid, err := strconv.Atoi(entry.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}
