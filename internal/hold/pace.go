package hold

import (
	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
)

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
