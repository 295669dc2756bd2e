package launch

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// start starts the command so that its first instruction is inside every group of joined. On v2
// the child is cloned into the group (CLONE_INTO_CGROUP, Linux 5.7). v1 has no such clone, but
// moves single threads: the thread that forks joins the groups, its child starts in them, and
// the thread goes back. On an error nothing runs.
func start(cmd *exec.Cmd, hierarchies *cgroupfs.FS, joined []cgroupfs.Group) error {
	var threads []move
	for _, g := range joined {
		if g.Hierarchy().Version == cgroupfs.V2 {
			dir, err := g.OpenDir()
			if err != nil {
				return err
			}
			defer unix.Close(dir)
			if cmd.SysProcAttr == nil {
				cmd.SysProcAttr = &syscall.SysProcAttr{}
			}
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, dir
			continue
		}
		home, err := hierarchies.OfProcess(g.Hierarchy(), 0)
		if err != nil {
			return err
		}
		threads = append(threads, move{from: home, to: g})
	}
	err := within(threads, func() error {
		if err := cmd.Start(); err != nil {
			return startError(cmd.Args[0], err)
		}
		return nil
	})
	if err != nil && cmd.Process != nil { // it runs, and weir cannot look after it
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return err
}

type move struct{ from, to cgroupfs.Group }

// within calls f on a thread that it moves into the groups, and moves the thread back. It leaves
// the first group first: in the pacer's cell the thread is paused with the command for as long as
// that has to pay for what it writes at once.
func within(moves []move, f func() error) error {
	if len(moves) == 0 {
		return f()
	}
	runtime.LockOSThread()
	tid := unix.Gettid()
	var err error
	moved := 0
	for ; moved < len(moves) && err == nil; moved++ {
		err = moves[moved].to.AddThread(tid)
	}
	if err == nil {
		err = f()
	}
	for _, m := range moves[:moved] {
		if back := m.from.AddThread(tid); back != nil {
			// The thread stays locked: no other goroutine ever runs in the group.
			return errors.Join(err, fmt.Errorf("take weir's own thread out of %s: %w", m.to.Dir(), back))
		}
	}
	runtime.UnlockOSThread()
	return err
}
