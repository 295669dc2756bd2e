package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Enter returns a room for a group that exists already and does not belong to weir. A Child can
// be started in it, and Close leaves the group as it is.
func Enter(g cgroupfs.Group) *Room {
	return &Room{IO: g, joined: []cgroupfs.Group{g}, limited: true}
}

// Outside returns a room that is the caller's own group.
func Outside() *Room { return &Room{} }

// A Child is a process of weir in a room, for example a load. It dies with weir, however weir
// ends, and does not get the terminal's signals.
type Child struct {
	PID   int
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// Spawn starts a command in the room; files are its descriptors from 3 on.
func (h Host) Spawn(room *Room, c Command, files ...*os.File) (*Child, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = c.Stdin, c.Stdout, c.Stderr, files
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	child := &Child{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel watches the thread that forked (prctl(2), PR_SET_PDEATHSIG), so the thread
		// waits for its child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(child.ended)
		err := start(cmd, h.FS, room.groups())
		if err == nil {
			child.PID = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			child.err = cmd.Wait()
		}
	}()
	return child, <-started
}

// Ended is closed when the child has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Kill ends the child, which may have ended already. A child that waits for a disk ends when
// the disk has answered.
func (c *Child) Kill() { _ = c.cmd.Process.Kill() }

// Wait waits for the child's end and returns its exit status as a shell would.
func (c *Child) Wait() (int, error) {
	<-c.ended
	var exit *exec.ExitError
	if c.err != nil && !errors.As(c.err, &exit) {
		return 0, fmt.Errorf("wait for %q: %w", c.cmd.Args[0], c.err)
	}
	return status(c.cmd.ProcessState), nil
}
