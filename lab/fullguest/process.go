package fullguest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// attend runs a guest's process to its end, with its console going to a file.
// The guest is killed, with all its children, when ctx ends, and when this
// program dies.
func attend(ctx context.Context, cmd *exec.Cmd, console string, log func(string)) (err error) {
	file, err := os.Create(console)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := &lines{file: file, log: log}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	// The death signal is tied to the thread that starts the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	waitErr := cmd.Wait()
	// Processes of user-mode Linux outlive a kernel that was killed or crashed.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill what is left: %w", err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return waitErr
}
