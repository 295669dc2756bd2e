package inode

import (
	"fmt"
	"time"
)

// Mended is what moving an owner has done.
type Mended struct {
	Before File          `json:"before"`
	After  File          `json:"after"`
	Rounds int           `json:"rounds"` // of writeback; 0 if the file was the group's already
	Took   time.Duration `json:"took_ns"`
}

// Refused says why an inode's owner is left as it is. The most that was done to the file
// is that its dirty pages were written back, and clean ones dropped from the page cache.
type Refused struct {
	Path   string
	Reason string
	Remedy string // may be empty
	Err    error  // what the kernel answered, if it was asked
}

func (e *Refused) Error() string {
	s := "move the writeback of " + e.Path + ": " + e.Reason
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *Refused) Unwrap() error { return e.Err }

// Unmoved says that all was tried, and that the kernel kept the owner.
type Unmoved struct {
	Path   string
	Owner  Owner // as it is now
	Rounds int
}

func (e *Unmoved) Error() string {
	whose := "has no owner"
	if e.Owner.State == Owned {
		whose = "belongs to " + e.Owner.Memory.String()
	}
	return fmt.Sprintf("move the writeback of %s: after %d rounds it still %s", e.Path, e.Rounds, whose)
}
