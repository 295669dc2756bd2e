package load

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// A clock reads CLOCK_MONOTONIC in nanoseconds. Go's own time is the same clock, read
// without a system call, but counts from the process's start.
type clock struct {
	base time.Time
	at   int64 // of base
}

func newClock() (clock, error) {
	var ts unix.Timespec
	before := time.Now()
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return clock{}, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
	}
	// The reading lies between the two, within a microsecond.
	return clock{base: before.Add(time.Since(before) / 2), at: ts.Nano()}, nil
}

func (c clock) now() int64 { return c.at + int64(time.Since(c.base)) }
