package launch

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An ending is how a command has ended.
type ending struct {
	known   bool
	status  int    // as a shell gives it
	written uint64 // bytes, by it and the children that it waited for
}

// wait waits for the end of a command. Without reaping it, weir leaves it to init: see Command.
func (e *ending) wait(cmd *exec.Cmd, reap bool) error {
	if !reap {
		return e.note(cmd.Process.Pid)
	}
	err := cmd.Wait()
	if s := cmd.ProcessState; s != nil {
		e.known, e.status = true, status(s)
		if used, ok := s.SysUsage().(*syscall.Rusage); ok {
			e.written = writtenOf(used.Oublock)
		}
	}
	return err
}

func writtenOf(blocks int64) uint64 { return uint64(blocks) * 512 } // getrusage(2): of task_io_account_write

// childInfo is the part of siginfo_t that waitid(2) fills in.
type childInfo struct {
	_, _, code int32
	of         struct {
		_         [0]uintptr // which aligns it as the kernel does
		_, _      int32
		exitValue int32
	}
}

// exited is CLD_EXITED; else a signal has ended it.
const exited = 1

// note takes note of the end of a process that stays a zombie.
func (e *ending) note(pid int) error {
	var info unix.Siginfo
	var used unix.Rusage
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, &used)
	}
	if err != nil {
		return fmt.Errorf("waitid: %w", err)
	}
	child := (*childInfo)(unsafe.Pointer(&info))
	e.known, e.written = true, writtenOf(used.Oublock)
	if e.status = int(child.of.exitValue); child.code != exited {
		e.status += 128
	}
	return nil
}
