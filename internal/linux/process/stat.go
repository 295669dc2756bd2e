package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// TicksPerSecond is the kernel's USER_HZ, on all architectures that weir is built for.
const TicksPerSecond = 100

// Now is the time since the boot in ticks, as Stat.Started counts it.
func Now() (ticks uint64) { return Ago(0) }

// Ago is what Now was a while ago.
func Ago(while time.Duration) (ticks uint64) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return uint64(max(0, t.Nano()-int64(while))) / (1e9 / TicksPerSecond)
}

// exiting is the kernel's PF_EXITING (include/linux/sched.h). The kernel takes a process out of its group some time
// after it has set this, and some time before it calls it a zombie (do_exit).
const exiting = 4

// A Stat is what proc_pid_stat(5) says of a process or a thread.
type Stat struct {
	Parent  int    // 0: none, or one outside this PID namespace
	Started uint64 // in ticks since the boot
	Ended   bool   // it ends, or has ended and its parent has not waited for it yet: it is in no group's list
}

// ReadStat reads the Stat of a process or a thread.
func ReadStat(tid int) (Stat, error) {
	name := "/proc/" + strconv.Itoa(tid) + "/stat"
	text, err := os.ReadFile(name)
	if err != nil {
		return Stat{}, err
	}
	s, err := parseStat(text)
	if err != nil {
		err = fmt.Errorf("parse %s: %w", name, err)
	}
	return s, err
}

// parseStat reads a line whose second field, the program's name in parentheses, can hold
// anything.
func parseStat(text []byte) (Stat, error) {
	const state, parent, flags, started = 0, 4 - 3, 9 - 3, 22 - 3 // of the fields after the name
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= started {
		return Stat{}, fmt.Errorf("it has %d fields", len(fields)+2)
	}
	ppid, err := strconv.Atoi(string(fields[parent]))
	start, startErr := strconv.ParseUint(string(fields[started]), 10, 64)
	flag, flagErr := strconv.ParseUint(string(fields[flags]), 10, 64)
	if err := errors.Join(err, startErr, flagErr); err != nil {
		return Stat{}, err
	}
	return Stat{Parent: ppid, Started: start, Ended: flag&exiting != 0 || string(fields[state]) == "Z"}, nil
}
