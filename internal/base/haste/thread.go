package haste

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// threadPriority is the lowest of SCHED_FIFO (sched(7)): other real-time programs run first.
	threadPriority = 1
	// leastNice is the nice value of a thread that may not run in real time.
	leastNice = -20
	// shareMost of each shareWindow is what a thread may spend in real time. For the rest of the window it has the
	// priority of everybody.
	shareMost, shareWindow = 100 * time.Millisecond, 500 * time.Millisecond
)

// A Thread is an operating system thread of one goroutine, which the kernel runs at once when it has something to do:
// in real time, for a fifth of one processor's time at most. The zero Thread has no priority, and neither has a nil one.
type Thread struct {
	schedule func(tid int, realTime bool) error // set by tests; nil: setRealTime
	spent    func() time.Duration               // set by tests; nil: threadTime

	tid   int
	began time.Time     // the window
	at    time.Duration // what the thread had spent then

	mu      sync.Mutex
	resting *time.Timer // until the window ends; nil: it runs in real time
	ended   bool
}

// Begin locks the calling goroutine to its thread, and has that run in real time. Where the host does not permit it, the
// error says so, and the thread gets the best priority that it may have.
func (t *Thread) Begin() error {
	runtime.LockOSThread()
	if t.schedule == nil {
		t.schedule, t.spent = setRealTime, threadTime
	}
	tid := unix.Gettid()
	if err := t.schedule(tid, true); err != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, leastNice) // of a thread: setpriority(2). The same right as before
		return fmt.Errorf("run with real-time priority: %w", err)
	}
	t.tid, t.began, t.at = tid, time.Now(), t.spent()
	return nil
}

// Pace is called after each piece of work. A thread that has used up its share takes its turn like others until the
// window ends.
func (t *Thread) Pace() {
	if t == nil || t.tid == 0 {
		return
	}
	now, spent := time.Now(), t.spent()
	if now.Sub(t.began) >= shareWindow {
		t.began, t.at = now, spent
		return
	}
	if spent-t.at > shareMost {
		t.rest(t.began.Add(shareWindow).Sub(now))
	}
}

func (t *Thread) rest(until time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.resting != nil || t.schedule(t.tid, false) != nil {
		return
	}
	t.resting = time.AfterFunc(until, func() { // the thread may wait for work by then
		t.mu.Lock()
		defer t.mu.Unlock()
		t.resting = nil
		if !t.ended {
			_ = t.schedule(t.tid, true) // it was permitted before
		}
	})
}

// End gives the thread and its priority back. The goroutine is the one of Begin.
func (t *Thread) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.resting != nil {
		t.resting.Stop()
	}
	if t.tid == 0 || t.resting != nil || t.schedule(t.tid, false) == nil {
		runtime.UnlockOSThread() // else the thread ends with its goroutine
	}
}

// setRealTime changes how a thread is scheduled. What it starts does not inherit that.
func setRealTime(tid int, realTime bool) error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
	if realTime {
		attr.Policy, attr.Priority, attr.Flags = unix.SCHED_FIFO, threadPriority, unix.SCHED_FLAG_RESET_ON_FORK
	}
	return unix.SchedSetAttr(tid, &attr, 0)
}

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // the clock is there
	return time.Duration(t.Nano())
}
