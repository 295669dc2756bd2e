// Command guestinit is the first process of a small guest: it mounts what tests
// need, mounts cgroups the way the kernel's command line asks for, runs the job
// from the disk "job", writes the results to the disk "out", and switches the
// machine off. Where the command line names a root disk it goes over to the system
// on that. In such a full guest, whose init is systemd, a unit runs it with the
// argument "unit": it does the same with mounts and cgroups left alone.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	var err error
	switch {
	case os.Getpid() == 1:
		first()
		return
	case len(os.Args) == 2 && os.Args[1] == "small":
		err = runSmall(context.Background())
	case len(os.Args) == 2 && os.Args[1] == "unit":
		err = runUnit(context.Background())
	default:
		err = fmt.Errorf("usage: guestinit unit (or as a guest's first process)")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "guestinit: %v\n", err)
		os.Exit(1)
	}
}

// first is process 1. A child does the work, so that the one duty of process 1,
// to reap everybody's orphans, cannot race with os/exec.
func first() {
	if err := mountBasics(); err != nil {
		fmt.Fprintf(os.Stderr, "guestinit: %v\n", err)
		powerOff()
	}
	line, err := os.ReadFile("/proc/cmdline")
	if node := rootDisk(string(line)); node != "" {
		err = switchRoot(node)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "guestinit: %v\n", err)
		powerOff()
	}
	cmd := exec.Command("/proc/self/exe", "small")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TMPDIR=/tmp"}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "guestinit: %v\n", err)
		powerOff()
	}
	for {
		pid, err := syscall.Wait4(-1, nil, 0, nil)
		if pid == cmd.Process.Pid || err == syscall.ECHILD {
			powerOff()
		}
	}
}

func powerOff() {
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Fprintf(os.Stderr, "guestinit: power off: %v\n", err)
	}
	select {} // process 1 must not return: the kernel would panic
}
