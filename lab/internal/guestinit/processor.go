package main

import (
	"errors"
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/kernel"
)

// keepAwake gives the processor of user-mode Linux 5.10 something to do where it would
// idle: there it sometimes sleeps past its next timer, and a sleep of 5 ms takes one of
// a second.
func keepAwake(lane string, release kernel.Release) error {
	if lane != "uml" || !release.Before(5, 11) {
		return nil
	}
	cmd := exec.Command("/bin/busybox", "sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("keep awake: %w", err)
	}
	idle := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
	if err := unix.SchedSetAttr(cmd.Process.Pid, &idle, 0); err != nil {
		return errors.Join(fmt.Errorf("keep awake: %w", err), cmd.Process.Kill())
	}
	return nil
}

// traced reports whether programs run under ptrace(2), which takes much of a processor.
// Later kernels are started with seccomp=auto.
func traced(lane string, release kernel.Release) bool { return lane == "uml" && release.Before(6, 16) }

// parallel is how many tests such a guest's processor carries at once.
func parallel(lane string) int {
	if lane == "qemu" {
		return 3
	}
	return 6
}
