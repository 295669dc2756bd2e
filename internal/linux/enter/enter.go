// Package enter runs a program in the cgroup namespace of another process. A container has one of
// its own: there the kernel spells the groups of all others as /../.., and weir, which goes by these
// paths, finds none of them.
package enter

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// Cgroups runs a program in the place of this process, in the cgroup namespace of process pid
// (cgroup_namespaces(7)). A name without a slash is looked for in PATH. It returns only if it cannot.
// Where the kernel has no such namespaces, or both are in one already, it only runs the program.
func Cgroups(pid int, command, environ []string) error {
	program, err := exec.LookPath(command[0])
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("run %q: there is no such program in PATH", command[0])
	}
	if err != nil {
		return err
	}
	space := filepath.Join("/proc", strconv.Itoa(pid), "ns/cgroup")
	theirs, err := os.Open(space)
	switch {
	case errors.Is(err, unix.ENOENT): // cgroup v1 on an old kernel; process 1 is always there
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return &fault.Unsupported{Feature: "enter the cgroup namespace of process " + strconv.Itoa(pid), Reason: err.Error(),
			Remedy: "run it as root with CAP_SYS_PTRACE, and without an AppArmor profile"}
	case err != nil:
		return err
	default:
		defer theirs.Close()
		// A thread has a namespace: the one that executes the program is to have it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWCGROUP); err != nil {
			return &fault.Unsupported{Feature: "enter the cgroup namespace of process " + strconv.Itoa(pid), Reason: err.Error(),
				Remedy: "run it as root with CAP_SYS_ADMIN"}
		}
	}
	return fmt.Errorf("run %s: %w", program, unix.Exec(program, command, environ))
}
