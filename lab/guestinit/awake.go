package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// keepAwake gives the processor of user-mode Linux 5.10 something to do where it would
// idle: there it sometimes sleeps past its next timer, and a sleep of 5 ms takes one of
// a second.
func keepAwake(lane string) error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Errorf("keep awake: %w", err)
	}
	if lane != "uml" || !strings.HasPrefix(unix.ByteSliceToString(name.Release[:]), "5.10") {
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
