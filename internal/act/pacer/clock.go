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

// born is when this process read both CLOCK_MONOTONIC and Go's clock, which is the same clock,
// read without a system call.
var born, bornAt = time.Now(), monotonic()

func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it cannot fail: the clock is there
	return time.Duration(t.Nano())
}

// clockNow is CLOCK_MONOTONIC, to about a microsecond.
func clockNow() time.Duration { return bornAt + time.Since(born) }

// spent is the processor time of this process. (That of a thread jumps when Go moves the goroutine
// to another one: by seconds of what that one has spent, for which nobody was looked at.)
func spent() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) // the clock is there
	return time.Duration(t.Nano())
}

// realtimePriority is low, so that other real-time programs can run first.
const realtimePriority = 10

// A thread is the operating system thread that paces.
type thread struct {
	tid    int
	looked time.Duration
	note   string // what there is to say of its accuracy
}

// beExact makes the calling goroutine's thread wake on time, with SCHED_FIFO and a timer slack
// of a nanosecond. The goroutine is not locked to the thread. If it were, Go would use another
// thread, without real-time priority, whenever its monitor resumes the goroutine.
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
	return errors.Join(slack, setRealTime(0))
}

func setRealTime(flags uint64) error {
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: flags, Priority: realtimePriority}
	return unix.SchedSetAttr(0, attr, 0)
}

// aside starts a process without the real-time priority of this one, as far as this one has it.
func aside(start func() error) error {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_FIFO || setRealTime(unix.SCHED_FLAG_RESET_ON_FORK) != nil {
		return start()
	}
	err = start()
	return errors.Join(err, setRealTime(0))
}

// stayEvery is how often the pacer checks whether it still runs on its thread.
const stayEvery = 100 * time.Millisecond

// stay makes another thread exact as well, if Go moved the goroutine to it during a long system
// call.
func (t *thread) stay(now time.Duration) {
	if now-t.looked < stayEvery {
		return
	}
	t.looked = now
	if tid := unix.Gettid(); tid != t.tid && inRealTime() == nil {
		t.tid = tid
	}
}

// monitorLate is how late Go's monitor may wake.
const monitorLate = 100 * time.Millisecond

// calmMonitor gives the thread of Go's monitor a timer slack, so that it wakes when the
// processor is awake anyway. It wakes every 10 ms while the pacer sleeps, and makes it change
// threads afterwards. That took as much processor time as the pacing, and more in user-mode
// Linux. The monitor is the first thread that the runtime starts, so it has the lowest number
// after the main thread. If the slack is refused, or another thread gets it, the pacer takes
// more processor time.
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

// pollUntil sleeps in the kernel until t, or until a file is ready. A Go timer would go through
// another thread. It uses a raw system call, because after any other system call that lasts,
// Go's monitor wakes every 20 µs for a while (measured: as much processor time as the pacer's
// own). It can end early when Go interrupts it.
func pollUntil(t time.Duration, files []unix.PollFd) (ready bool) {
	left := unix.NsecToTimespec(int64(max(0, t-clockNow())))
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&files[0])), uintptr(len(files)), uintptr(unsafe.Pointer(&left)), 0, 0, 0)
	return errno == 0 && n > 0
}

// filesMost is how many files the pacer may have open: two for each process that it counts, and
// some for each group.
const filesMost = 1 << 16

// beSpared asks the kernel to OOM-kill other processes first, and raises the pacer's limit on
// open files (its guards inherit both). If either is refused, the pacer goes on without.
func beSpared() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: filesMost, Max: filesMost})
}
