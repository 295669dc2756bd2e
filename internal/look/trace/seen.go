package trace

import (
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// Slow is one operation that took long.
type Slow struct {
	After   time.Duration // when it began, since the trace did
	Kind    Kind
	PID     int
	TID     int
	Process string        // the thread's name, as /proc/PID/comm has it
	File    string        // its path as the process sees it, or its name; empty: none
	Device  blkdev.Number // of its file system
	Inode   uint64
	Bytes   uint64
	Took    time.Duration
	Split   Split
}

// Cause is the part that took most of it.
func (s Slow) Cause() Part { return s.Split.largest() }

// File is what operations of one kind did with one file.
type File struct {
	File   string        // its path as a process sees it that had it open, or its name
	Device blkdev.Number // of its file system
	Inode  uint64
	Kind   Kind
	Count  uint64
	Bytes  uint64
	Max    time.Duration
	Split  Split // all their time
}

// Sum is the time of all operations together.
func (f File) Sum() time.Duration { return f.Split.Time() }

// Cause is the part that took most of it.
func (f File) Cause() Part { return f.Split.largest() }

// Missing is a hook that is not available.
type Missing struct {
	Hook    string
	Reason  string
	Without string // what is not told, or what telling it costs
}

// CallsHook is the hook at the functions of system calls. Where it is missing, each system call of
// the host takes longer while weir traces.
const CallsHook = "fentry, fexit of system calls"
