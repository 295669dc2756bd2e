package tree

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A wait that somebody has ended leaves nothing behind: the next one waits, and takes no time of a processor.
func TestAnEndedWaitLeavesNothing(t *testing.T) {
	f, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	spent := func() time.Duration {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
			t.Fatal(err)
		}
		return time.Duration(now.Nano())
	}
	for _, wait := range []time.Duration{time.Millisecond, 400 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		before, began := spent(), time.Now()
		_, err := f.Next(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) < wait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if took := spent() - before; took > 50*time.Millisecond {
			t.Errorf("a wait of %v takes %v of a processor", wait, took)
		}
	}
}
