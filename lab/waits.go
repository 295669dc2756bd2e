package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// idleLong is for how long a writer under a limit may get nothing done before it is asked
// why: the throttle lets something go in each of its slices, of 100 ms.
const idleLong = 400 * time.Millisecond

// WatchWriter looks at a writer and at what it has done so far, until stop is called. Where
// that stands still for long, it notes what each of the writer's threads waits for in the
// kernel, how late its own looks were, and how far the kernel's tick was behind, by which
// the throttle counts; stop logs the notes. So a rate that is too low comes with its reason:
// a bio in the throttle, a lock, a signal, no processor, or no tick.
func WatchWriter(t testing.TB, pid int, done func() int64) (stop func()) {
	end, ended := make(chan struct{}), make(chan []string, 1)
	go func() {
		var notes []string
		const every = 50 * time.Millisecond
		last, moved, looked, told := done(), time.Now(), time.Now(), false
		worst, behind := time.Duration(0), time.Duration(0) // of the looks and the tick, since the last movement
		for {
			select {
			case <-end:
				ended <- notes
				return
			case <-time.After(every):
			}
			worst = max(worst, time.Since(looked)-every)
			looked, behind = time.Now(), max(behind, tickLag())
			now := done()
			switch {
			case now != last:
				if told {
					notes = append(notes, fmt.Sprintf("went on after %s, the tick up to %s behind", time.Since(moved).Round(time.Millisecond), behind))
				}
				last, moved, told, worst, behind = now, looked, false, 0, 0
			case time.Since(moved) > idleLong+worst && !told:
				told = true
				notes = append(notes, fmt.Sprintf("nothing for %s (looks were up to %s late, the tick up to %s behind): %s", time.Since(moved).Round(time.Millisecond), worst.Round(time.Millisecond), behind, waits(pid)))
			}
		}
	}()
	return func() {
		close(end)
		for _, note := range <-ended {
			t.Logf("the writer: %s", note)
		}
	}
}

// tickLag is how far the kernel's tick is behind: the coarse clock is set by it, as are the
// jiffies by which blk-throttle counts.
func tickLag() time.Duration {
	var exact, coarse unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &coarse) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &exact) != nil {
		return 0
	}
	return time.Duration(exact.Nano() - coarse.Nano()).Round(time.Millisecond)
}

// waits says what the threads of a process wait for.
func waits(pid int) string {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(tasks) == 0 {
		return "it is gone"
	}
	var all []string
	for _, task := range tasks {
		read := func(name string) string {
			text, err := os.ReadFile(filepath.Join(task, name))
			if err != nil {
				return "?"
			}
			return strings.TrimSpace(string(text))
		}
		_, stat, _ := strings.Cut(read("stat"), ") ")
		state, _, _ := strings.Cut(stat, " ")
		stack := strings.Join(strings.Fields(read("stack")), " ")
		all = append(all, fmt.Sprintf("thread %s is %s in %s, system call %s, stack %s", filepath.Base(task), state, read("wchan"), read("syscall"), stack))
	}
	groups, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err == nil {
		all = append(all, "in groups "+strings.ReplaceAll(strings.TrimSpace(string(groups)), "\n", " "))
	}
	return strings.Join(all, "; ")
}
