package hold

import (
	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
)

// A Pacer is weir's.
type Pacer interface {
	// Follow has it hold what the rules of a group say now, counted in a way of its own; nil
	// has it let the group go.
	Follow(g cgroupfs.Group, count *string) error
}

// A Pacing is what the pacer is asked about a plan's group. It is on record with the change,
// so that a weir that is killed leaves neither a rule without its pacer nor a pacer without
// its rule.
type Pacing struct {
	Before *string // how the pacer counts the group until then; nil: it does not hold it
	// Do asks it. If that fails the changes are taken back, and Do has seen to the pacer itself.
	Do func() error
}

// A Pace is what weir's pacer is asked.
type Pace struct {
	Cgroup  string          `json:"cgroup"`
	WBPS    uint64          `json:"wbps"` // bytes a second; 0: it lets the group go
	Devices []blkdev.Number `json:"devices,omitempty"`
	Escapes bool            `json:"escapes,omitempty"` // only what the kernel charges to other groups stops the group
}

// PaceSteps are what has the pacer hold a group, whose processes are stopped in cells that it
// makes.
func PaceSteps(g cgroupfs.Group, cells []cgroupfs.Group, wbps uint64, devices []blkdev.Number) []Step {
	var steps []Step
	for _, c := range cells {
		steps = append(steps, Step{Mkdir: c.Dir()})
	}
	return append(steps, Step{Pace: &Pace{Cgroup: g.Path(), WBPS: wbps, Devices: devices}})
}
