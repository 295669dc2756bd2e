package scratch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside marks a process that lives in a mount namespace of its own.
const inside = "WEIR_SCRATCH"

// Inside reports whether the process may make a scratch disk.
func Inside() bool { return os.Getenv(inside) == "1" }

// Reenter runs this program again, with the same arguments, in a mount namespace of
// its own, and returns its exit status. The child dies with its parent.
func Reenter() (status int, err error) {
	// PR_SET_PDEATHSIG depends on the thread that forked.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT} {
		if !signal.Ignored(s) { // by nohup, say; the child ignores it as well
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("make a mount namespace: %w (this needs root)", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	signal.Stop(signals)
	close(signals)
	<-done
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("run in a mount namespace: %w", err)
	}
	if wait := cmd.ProcessState.Sys().(syscall.WaitStatus); wait.Signaled() {
		return 128 + int(wait.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}
