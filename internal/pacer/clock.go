package pacer

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A clock is CLOCK_MONOTONIC, read without a system call: Go's clock is the same one from
// another beginning.
type clock struct {
	began time.Time
	first time.Duration
}

func newClock() clock {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it cannot fail: the clock is there
	return clock{time.Now(), time.Duration(t.Nano())}
}

func (c clock) now() time.Duration { return c.first + time.Since(c.began) }

// theClock is started once: nothing changes it.
var theClock = newClock()

// clockNow is CLOCK_MONOTONIC.
func clockNow() time.Duration { return theClock.now() }

// spent is the processor time of this process.
func spent() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) // nor can it
	return time.Duration(t.Nano())
}

// realtimePriority is a low one: what needs to be earlier can be.
const realtimePriority = 10

// beExact makes this process wake in time: SCHED_FIFO, and a timer slack of a nanosecond, of
// all its threads. Those to come have it from these. The goroutine that paces is on no thread
// of its own: Go's monitor takes it off every 10 ms, and a thread of its own would wake two
// others each time (measured: half as much processor time again). There is one processor for
// all goroutines, and the others get it then. The error says what the accuracy is without.
func beExact() error {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(1000) // of the 4 MB that Go starts with
	tasks, err := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		tid, wrong := strconv.Atoi(task.Name())
		if wrong != nil {
			continue
		}
		attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: realtimePriority}
		if wrong := unix.SchedSetAttr(tid, attr, 0); !errors.Is(wrong, unix.ESRCH) {
			err = errors.Join(err, wrong)
		}
		_ = os.WriteFile("/proc/"+task.Name()+"/timerslack_ns", []byte("1"), 0) // those in real time have none
	}
	if err != nil {
		return fmt.Errorf("run in real time: %w; on a busy machine a group writes more than its limit for moments, and less after", err)
	}
	return nil
}

// sleepUntil sleeps in the kernel: a Go timer goes through another thread. It is a raw
// system call, because Go's monitor wakes every 20 µs for a while after each other one
// that lasts (measured: as much processor time again as the pacer's). It can end early:
// Go interrupts it where it needs the thread.
func sleepUntil(t time.Duration) {
	when := unix.NsecToTimespec(int64(t))
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&when)), 0, 0, 0)
}
