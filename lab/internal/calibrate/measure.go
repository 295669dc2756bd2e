package calibrate

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// fastest runs something again and again in one thread, and returns the least processor
// time that it took: what other programs take meanwhile is not in it.
func fastest(times int, run func() error) (best time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range times {
		before := threadTime()
		if err := run(); err != nil {
			return 0, err
		}
		if took := threadTime() - before; best == 0 || took < best {
			best = took
		}
	}
	return max(best, 1), nil
}

func call() time.Duration {
	const calls = 2000
	best, _ := fastest(40, func() error { // getppid(2) has no errors
		for range calls {
			_, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		}
		return nil
	})
	return max(best/calls, 1)
}

// appending writes a file of some tens of MiB, several times: memory that a virtual machine
// has never used costs its first user more than the append does.
func appending(dir string) (best time.Duration, err error) {
	const passes, appends = 4, 16
	f, err := os.CreateTemp(dir, "calibrate-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, 64<<10)
	for range passes {
		took, err := fastest(40, func() error {
			for range appends {
				if _, err := f.Write(block); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		if best == 0 || took < best {
			best = took
		}
		// The next pass gets the same memory.
		_, seekErr := f.Seek(0, io.SeekStart)
		if err := errors.Join(f.Truncate(0), seekErr); err != nil {
			return 0, err
		}
	}
	return max(best/appends, 1), nil
}

// start takes a process's whole time, most of which is not this thread's.
func start() (best time.Duration, err error) {
	for range 30 {
		began := time.Now()
		if err := exec.Command("true").Run(); err != nil {
			return 0, err
		}
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
	}
	return best, nil
}

// Compute is the least that a piece of computing took of so many: Machine.Compute, if nothing
// disturbs it. It does what an emulator does most: it looks things up and jumps.
func Compute(pieces int) time.Duration {
	table := make([]uint64, 1<<14)
	for i := range table {
		table[i] = uint64(i) * 0x9e3779b97f4a7c15
	}
	best, _ := fastest(pieces, func() error {
		x := uint64(1)
		for range 1 << 16 {
			x = x*6364136223846793005 + table[x>>50]
			if x&1 == 0 {
				x ^= x >> 29
			}
		}
		runtime.KeepAlive(x) // else the compiler leaves it out
		return nil
	})
	return best
}

// affinity lists the processors that this program may run on.
func affinity() (cpus []int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

// busyFor is several periods of a quota, which are 100 ms each.
const busyFor = 600 * time.Millisecond

// shares keeps a thread busy on each processor, and returns how much processor time each
// got a second. What a program with SCHED_IDLE leaves depends on where that is: in this
// session nearly all, in another session half. The kernel gives each session an equal share,
// whatever its programs' policy (sched(7), "The autogroup feature"), also of what guests get.
func shares(cpus []int) []float64 {
	got := make([]float64, len(cpus))
	began := time.Now()
	var busy sync.WaitGroup
	for i, cpu := range cpus {
		busy.Go(func() {
			runtime.LockOSThread() // until it ends, and the thread with it
			var one unix.CPUSet
			one.Set(cpu)
			if unix.SchedSetaffinity(0, &one) != nil {
				return // the processor has gone
			}
			before := threadTime()
			for time.Since(began) < busyFor {
			}
			got[i] = (threadTime() - before).Seconds() / time.Since(began).Seconds()
		})
	}
	busy.Wait()
	return got
}

// threadTime is the processor time that the calling thread has had.
func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
