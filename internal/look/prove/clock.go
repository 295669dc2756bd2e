package prove

import (
	"time"

	"golang.org/x/sys/unix"
)

// now is CLOCK_MONOTONIC, the clock of the load's ticks.
func now() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		panic("prove: the kernel has no CLOCK_MONOTONIC") // every kernel does
	}
	return time.Duration(t.Nano())
}
