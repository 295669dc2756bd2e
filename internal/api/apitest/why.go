package apitest

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/targets"
)

// Why is a report of three places, two of which are alike.
func Why() why.Report {
	limits := limit.Limit{}.With(limit.WBPS, limit.PerSecond(10e6))
	cell := func(place int, p load.Path, read bool, held why.Held, by string, f ...int) why.Cell {
		c := why.Cell{Place: place, Path: p, Read: read, Held: held, Findings: f}
		if by != "" {
			c.Mechanism = "throttle"
		}
		return c
	}
	var cells []why.Cell
	for i := range 3 {
		cells = append(cells, cell(i, load.Direct, false, why.Yes, "x"), cell(i, load.Sync, false, why.AtDevice, "x", 1), cell(i, load.Buffered, false, why.No, "", 1, 2), cell(i, "mapped", false, why.Unknown, ""))
		held := why.Yes
		if i == 2 {
			held = why.NoLimit
		}
		cells = append(cells, cell(i, load.Direct, true, held, ""), cell(i, load.Buffered, true, held, ""), cell(i, "mapped", true, why.NoLimit, ""))
	}
	dev := why.DeviceID{Device: "/dev/sda", Number: blkdev.Number{Major: 8}, Limit: limits}
	return why.Report{Kernel: "6.18.0", Group: &why.GroupID{Path: "/batch", Version: 2, Owner: targets.Owner{Kind: "systemd", Unit: "batch.service"}, Processes: 2},
		Mounted: []why.Mounted{{Version: 2, At: "/sys/fs/cgroup", Controllers: []string{"io", "memory", "pids"}}},
		Places:  []why.PlaceID{{Spec: "/data", Chain: "/data → ext4 on /dev/sda", Devices: []why.DeviceID{dev, dev}}, {Spec: "/srv", Chain: "/srv → /dev/sda", Devices: []why.DeviceID{{Device: "/dev/sda"}}}, {Spec: "/none", Chain: "/none"}},
		Matrix:  cells,
		Findings: []why.Finding{{Number: 1, Code: "a", Severity: why.Breaks, Text: "It does not hold.", Evidence: []why.Evidence{{File: "/proc/x", Value: "1"}},
			Fixes: []why.Fix{{Text: "do this", Lines: []string{"echo 1", "echo 2"}}, {Text: "or that"}}}, {Number: 2, Code: "b", Severity: why.Note, Text: "Know this."}},
		Dirty: &why.Dirty{BackgroundRatio: 10, Bytes: 20e6, ExpireSeconds: 30, WritebackSeconds: 5, BackgroundAtBytes: 10e6, LimitAtBytes: 20e6, DirtyNowBytes: 5e6, WritebackNowBytes: 1e6}}
}
