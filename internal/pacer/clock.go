package pacer

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
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

// A thread is the one that paces.
type thread struct {
	tid    int
	looked time.Duration
	note   string // what there is to say of its accuracy
}

// beExact makes the calling goroutine's thread wake in time: SCHED_FIFO, and a timer slack
// of a nanosecond. The goroutine is not locked to it: with one that is, Go needs another
// thread, which is not in real time, whenever its monitor has the goroutine start anew.
func (t *thread) beExact() {
	calmMonitor()
	runtime.GOMAXPROCS(1)    // no other thread can take the goroutine
	debug.SetGCPercent(1000) // of the 4 MB that Go starts with
	t.tid = unix.Gettid()
	if err := inRealTime(); err != nil {
		t.note = fmt.Sprintf("run with real-time priority: %v; on a busy machine a group may exceed its limit for moments, and gets less after that", err)
	}
}

func inRealTime() error {
	slack := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: realtimePriority}
	return errors.Join(slack, unix.SchedSetAttr(0, attr, 0))
}

// stayEvery is how often the pacer looks whether it still has its thread.
const stayEvery = 100 * time.Millisecond

// stay makes another thread exact as well, if Go has moved the goroutine to it while a
// system call took long.
func (t *thread) stay(now time.Duration) {
	if now-t.looked < stayEvery {
		return
	}
	t.looked = now
	if tid := unix.Gettid(); tid != t.tid && inRealTime() == nil {
		t.tid = tid
	}
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

// pollUntil sleeps in the kernel until a moment, or until a file is ready: a Go timer goes
// through another thread. It is a raw system call, because Go's monitor wakes every 20 µs
// for a while after each other one that lasts (measured: as much processor time again as
// the pacer's). It can end early, when Go interrupts it.
func pollUntil(t time.Duration, files []unix.PollFd) (ready bool) {
	left := unix.NsecToTimespec(int64(max(0, t-clockNow())))
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&files[0])), uintptr(len(files)), uintptr(unsafe.Pointer(&left)), 0, 0, 0)
	return errno == 0 && n > 0
}

// filesMost is how many files the pacer may have open: two for each process that it counts,
// and some for each group.
const filesMost = 1 << 16

// beSpared has the kernel kill others for want of memory, and gives the pacer, with its
// guards, room for its files. Where either is refused it does without.
func beSpared() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: filesMost, Max: filesMost})
}
