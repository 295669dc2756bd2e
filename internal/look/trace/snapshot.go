package trace

import "time"

// A Snapshot is what a trace has counted from its start up to a moment.
type Snapshot struct {
	After time.Duration // since the trace began
	Ops   [Kinds]Ops
	// Behind is I/O charged to the target that none of its operations waits for, by direction:
	// reads, writes. It is known only for groups.
	Behind [2]Behind
	// ThrottleUnseen says that weir does not know what the throttle holds of background I/O.
	ThrottleUnseen bool
	// Reclaims within operations: for a memory cgroup's limit, and for the host.
	MemcgReclaims, DirectReclaims Reclaims
	MemcgUnseen, DirectUnseen     bool // the kernel does not tell of them
	Lost                          Lost
}

// Ops are operations of one kind.
type Ops struct {
	Histogram Histogram
	Bytes     uint64 // as the calls returned
	Errors    uint64 // calls that failed
	Most      time.Duration
	Unseen    Unseen
}

// Unseen are operations that were not fully traced: the kernel skipped a program where they
// began, where they ended, or in between. No other figure includes them.
type Unseen struct {
	Count uint64
	Time  time.Duration // at least
}

func (u Unseen) minus(before Unseen) Unseen {
	return Unseen{u.Count - min(u.Count, before.Count), max(u.Time-before.Time, 0)}
}

// Behind is background I/O, mostly writeback. Times are sums over requests.
type Behind struct {
	Requests, Bytes         uint64
	Throttle, Queue, Device time.Duration
	ThrottleMost, TotalMost time.Duration
}

// Reclaims are calls of reclaim, and what they freed.
type Reclaims struct {
	Calls, Pages uint64
}

// Lost is what the trace did not see.
type Lost struct {
	Tasks  uint64 // operations of tasks for which there was no room
	IOs    uint64 // I/Os in flight for which there was no room
	Events uint64 // slow operations that were not read in time
	Stacks uint64 // sleeps whose reason the kernel did not tell
	Files  uint64 // operations on files for which there was no room
	Missed uint64 // how often the kernel left a program of the trace out, for any process
	// MissedKnown says that the kernel told how often that was; what is not known is 0.
	MissedKnown bool
}

// Any reports whether anything was lost.
func (l Lost) Any() bool {
	l.MissedKnown = false
	return l != Lost{}
}
