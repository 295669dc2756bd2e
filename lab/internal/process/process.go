// Package process runs a guest's process: bound to one processor, its console kept
// in a file, killed with all its children when it has to be.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What a guest can have instead of one processor: whatever time any has left by others,
// or all of them.
const (
	Spare = -1
	All   = -2
)

// Run runs a guest's process to its end, with its console going to a file and, line
// by line, to log. cpu is the processor that it and its children stay on, or Spare, or
// All: user-mode Linux hands over between its kernel and its processes at each system
// call, which takes several times as long from one processor to another. The guest is
// killed, with all its children, when the context ends, and when this program dies.
func Run(ctx context.Context, cmd *exec.Cmd, cpu int, console string, log func(string)) (err error) {
	f, err := os.Create(console)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := &lines{file: f, log: log}
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	// The death signal is tied to the thread that starts the process, and the
	// process inherits that thread's processor.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := startOn(cpu, cmd); err != nil {
		return err
	}
	waitErr := cmd.Wait()
	// UML's processes outlive a kernel that was killed or that crashed.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill what is left: %w", err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return waitErr
}

func startOn(cpu int, cmd *exec.Cmd) (err error) {
	if cpu == Spare {
		idle := exec.Command("chrt", append([]string{"--idle", "0"}, cmd.Args...)...)
		cmd.Path, cmd.Args, cmd.Err = idle.Path, idle.Args, errors.Join(cmd.Err, idle.Err)
		return cmd.Start()
	}
	if cpu == All {
		return cmd.Start()
	}
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read processors: %w", err)
	}
	one.Set(nth(before, cpu))
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("bind to a processor: %w", err)
	}
	defer func() { err = errors.Join(err, unix.SchedSetaffinity(0, &before)) }()
	return cmd.Start()
}

// nth returns the n-th processor of the set, counted round and round.
func nth(set unix.CPUSet, n int) int {
	n %= set.Count()
	for i := 0; ; i++ {
		if set.IsSet(i) {
			if n == 0 {
				return i
			}
			n--
		}
	}
}
