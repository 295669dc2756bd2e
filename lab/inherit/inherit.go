// Package inherit gives tests the same process everywhere: what nohup, a shell's &, a
// login's limits or a user's umask have set is passed on from process to process, to the
// programs that tests start as well.
package inherit

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Plain undoes what this process has inherited: ignored signals, of which Go keeps HUP and
// INT ignored and no other, and a umask that keeps files from others. It returns the umask
// that was.
func Plain() (umask int) {
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // here it is still ignored: nobody listens
		}
	}
	return unix.Umask(0o022)
}

// files is how many open files a process has where tests run.
const files = 4096

// Unlimited lifts the limits on this process's resources that tests would run into: where
// it may not lift the hard one, as far as that. Of open files programs may have as many
// as a login usually gives, and Go asks for more where it can.
func Unlimited() error {
	for _, resource := range []int{unix.RLIMIT_FSIZE, unix.RLIMIT_AS, unix.RLIMIT_DATA, unix.RLIMIT_CPU, unix.RLIMIT_NPROC} {
		if err := lift(resource, unix.RLIM_INFINITY); err != nil {
			return err
		}
	}
	return lift(unix.RLIMIT_NOFILE, files)
}

// lift sets a limit. It calls the one of package syscall: by that Go knows how many files
// its children may open, for itself it has lifted the number at its start.
func lift(resource int, to uint64) error {
	var is syscall.Rlimit
	if err := syscall.Getrlimit(resource, &is); err != nil {
		return fmt.Errorf("read limit %d: %w", resource, err)
	}
	err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: to, Max: max(to, is.Max)})
	if errors.Is(err, unix.EPERM) {
		err = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: min(to, is.Max), Max: is.Max})
	}
	if err != nil {
		return fmt.Errorf("lift limit %d from %d to %d: %w", resource, is.Cur, to, err)
	}
	return nil
}
