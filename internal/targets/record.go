package targets

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Record is the limits that an owner stores for a target and sets when the target starts
// again.
type Record struct {
	By string // whose it is, for people: "Docker"
	// Command is the owner's program, which makes containers from the same flags as Docker's.
	Command string
	Version string // of the owner, as it says itself: "26.1.5"; empty: it does not say
	Source  string // where it was read, for people
	Limits  []Recorded
	Updates bool // the owner takes other limits to keep
}

// A Recorded limit is one that an owner stores for a device.
type Recorded struct {
	Path   string // the device, as the owner spells it
	Device blkdev.Number
	Err    error // why it is not known which device that is; Device is zero then
	Limit  limit.Limit
}

// On returns the stored limit for a device, unset if there is none.
func (r *Record) On(dev blkdev.Number) limit.Limit {
	var l limit.Limit
	for _, one := range r.Limits {
		if one.Err == nil && one.Device == dev {
			l = l.Overlay(one.Limit)
		}
	}
	return l
}
