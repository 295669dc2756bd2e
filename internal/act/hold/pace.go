package hold

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A Pacer is weir's.
type Pacer interface {
	// Follow makes the pacer hold what the rules of a group say now; nil releases the group.
	Follow(g cgroupfs.Group, how *limit.Pacing) error
}

// A Pacing is the request to the pacer for a plan's group. It is on record with the change, so
// that a killed weir leaves neither a rule without its pacer nor a pacer without its rule.
type Pacing struct {
	Before *limit.Pacing // how the pacer holds the group until then; nil: it does not
	// Do sends the request. If it fails, the changes are taken back, and Do has restored the
	// pacer itself.
	Do func() error
}

// A Pace is a request to weir's pacer, for dry runs.
type Pace struct {
	Cgroup  string          `json:"cgroup"`
	WBPS    uint64          `json:"wbps"` // bytes a second; 0: it lets the group go
	Devices []blkdev.Number `json:"devices,omitempty"`
	Escapes bool            `json:"escapes,omitempty"` // only what the kernel charges to other groups stops the group
}

// PaceSteps lists the steps by which the pacer holds a group: it makes cells, in which it
// pauses the processes.
func PaceSteps(g cgroupfs.Group, cells []cgroupfs.Group, wbps uint64, devices []blkdev.Number) []Step {
	var steps []Step
	for _, c := range cells {
		steps = append(steps, Step{Mkdir: c.Dir()})
	}
	return append(steps, Step{Pace: &Pace{Cgroup: g.Path(), WBPS: wbps, Devices: devices}})
}
