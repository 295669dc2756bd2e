package trace

import (
	"fmt"
	"time"
)

// A Part is one of the places where the time of an operation goes. The parts exclude each other
// and add up to the whole time. The order is that of enum part in bpf/trace.h.
type Part int

// The parts.
const (
	CPU           Part = iota // on a processor: page-cache copies, the file system's and the kernel's other work
	RunQueue                  // ready to run, waiting for a processor
	MemcgReclaim              // reclaim for a memory cgroup's limit, and its memory.high's delays
	DirectReclaim             // direct reclaim for the whole host
	DirtyThrottle             // balance_dirty_pages
	BlkThrottle               // own I/O held by blk-throttle
	Queue                     // own I/O in the block layer's queue, or waiting for a place there
	DeviceTime                // own I/O at the device
	Journal                   // journal, and locks of files and file systems
	Frozen                    // stopped by a cgroup's freezer or a signal
	Uring                     // a request of io_uring or libaio that waits for a worker, or its answer for who asked
	OtherIO                   // I/O that others submitted, or that could not be followed
	Other                     // asleep for an unknown reason
	Parts                     // how many there are
)

var partNames = [Parts]string{"cpu", "run_queue", "memcg_reclaim", "direct_reclaim", "dirty_throttling", "blk_throttle",
	"block_queue", "device", "journal_locks", "frozen", "io_uring", "other_io", "other"}

var partTitles = [Parts]string{"page cache, CPU", "run queue", "memcg reclaim", "direct reclaim", "dirty throttling", "blk-throttle",
	"block queue", "device", "journal, locks", "frozen", "io_uring, libaio", "I/O of others", "other"}

// String is the part's name in JSON.
func (p Part) String() string {
	if p < 0 || p >= Parts {
		return fmt.Sprintf("part %d", int(p))
	}
	return partNames[p]
}

// Title names the part for people.
func (p Part) Title() string {
	if p < 0 || p >= Parts {
		return p.String()
	}
	return partTitles[p]
}

// A Split is time by part, ns.
type Split [Parts]uint64

// Sum is the whole time, in ns.
func (s Split) Sum() (ns uint64) {
	for _, v := range s {
		ns += v
	}
	return ns
}

// Time is the whole time.
func (s Split) Time() time.Duration { return time.Duration(s.Sum()) }

// Plus adds two.
func (s Split) Plus(o Split) Split {
	for i := range s {
		s[i] += o[i]
	}
	return s
}

// Minus subtracts the state before.
func (s Split) Minus(before Split) Split {
	for i := range s {
		s[i] -= min(s[i], before[i])
	}
	return s
}

// Share is the share of a part, from 0 to 1; 0 if there is no time.
func (s Split) Share(p Part) float64 {
	if sum := s.Sum(); sum > 0 {
		return float64(s[p]) / float64(sum)
	}
	return 0
}

// A Kind is what an operation does.
type Kind int

// The kinds. The order is that of enum kind in bpf/trace.h.
const (
	Write Kind = iota // write(2) and its sisters, and sendfile(2) and copy_file_range(2) into a file
	Read              // read(2) and its sisters, and sendfile(2) from a file
	Fsync             // fsync(2), fdatasync(2), sync_file_range(2), msync(2), syncfs(2), sync(2)
	Fault             // page faults of mapped files
	Kinds             // how many there are
)

var kindNames = [Kinds]string{"write", "read", "fsync", "fault"}

// String names the kind, as --ops does.
func (k Kind) String() string {
	if k < 0 || k >= Kinds {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

// ParseKind is the reverse of String.
func ParseKind(text string) (Kind, bool) {
	for k, name := range kindNames {
		if name == text {
			return Kind(k), true
		}
	}
	return 0, false
}
