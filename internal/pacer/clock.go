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

// born is when this process read both CLOCK_MONOTONIC and Go's clock, which is the same one,
// read without a system call.
var born, bornAt = time.Now(), monotonic()

func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it cannot fail: the clock is there
	return time.Duration(t.Nano())
}

// clockNow is CLOCK_MONOTONIC, to the microsecond or so.
func clockNow() time.Duration { return bornAt + time.Since(born) }

// spent is the processor time of the calling thread.
func spent() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // the clock is there
	return time.Duration(t.Nano())
}

// realtimePriority is a low one: what needs to be earlier can be.
const realtimePriority = 10

// beExact makes the calling goroutine's thread wake in time: SCHED_FIFO, and a timer slack
// of a nanosecond. The error says what the accuracy is without.
func beExact() error {
	runtime.LockOSThread()
	calmMonitor()
	runtime.GOMAXPROCS(4)    // one is this thread's, also while it sleeps; with 2 it was late by a millisecond more often
	debug.SetGCPercent(1000) // of the 4 MB that Go starts with
	slack := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: realtimePriority}
	if err := errors.Join(slack, unix.SchedSetAttr(0, attr, 0)); err != nil {
		return fmt.Errorf("run in real time: %w; on a busy machine a group writes more than its limit for moments, and less after", err)
	}
	return nil
}

// monitorLate is by how much Go's monitor may wake too late.
const monitorLate = 100 * time.Millisecond

// calmMonitor gives the thread of Go's monitor a timer slack, so that it wakes when the
// processor is awake anyway. It does every 10 ms while the pacer sleeps, and has it change
// threads after: that took as much processor time as the pacing, in User-mode Linux more.
// It is the first thread that the runtime starts, and so the one with the lowest number but
// the main one's. Where the slack is refused, or another thread's, the pacer takes more time.
func calmMonitor() {
	threads, _ := os.ReadDir("/proc/self/task")
	monitor := 0
	for _, thread := range threads {
		if tid, err := strconv.Atoi(thread.Name()); err == nil && tid != os.Getpid() && (monitor == 0 || tid < monitor) {
			monitor = tid
		}
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/timerslack_ns", monitor), strconv.AppendInt(nil, int64(monitorLate), 10), 0)
}

// sleepUntil sleeps in the kernel: a Go timer goes through another thread. It is a raw
// system call, because Go's monitor wakes every 20 µs for a while after each other one
// that lasts (measured: as much processor time again as the pacer's). It can end early:
// Go interrupts it where it needs the thread, and wake does.
func sleepUntil(t time.Duration) {
	when := unix.NsecToTimespec(int64(t))
	_, _, _ = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&when)), 0, 0, 0)
}

// wake ends the sleep of a thread, by the signal that Go itself interrupts threads with.
func wake(tid int) { _ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG) } // it is this process's
