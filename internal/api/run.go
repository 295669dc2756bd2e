package api

import (
	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/tally"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/running"
)

// A Run is weir run's document.
type Run struct {
	Schema
	Cgroup         string        `json:"cgroup"`
	Version        int           `json:"cgroup_version"`
	Status         int           `json:"status"`
	ElapsedSeconds float64       `json:"elapsed_seconds"`
	Hold           limit.Hold    `json:"hold"`
	QueuedSeconds  float64       `json:"queued_seconds"`
	Stops          uint64        `json:"stops"`         // by the pacer, for what escaped
	Dirty          *uint64       `json:"dirty_bytes"`   // null: not known
	Written        *uint64       `json:"written_bytes"` // null: not measured
	Escaped        *uint64       `json:"escaped_bytes"` // null: not measured
	Escapes        []escape.File `json:"escapes"`
	Devices        []RunDevice   `json:"devices"`
	HandedOn       string        `json:"handed_on"` // the program that handed the work to a daemon
}

// A RunDevice is a device with a limit.
type RunDevice struct {
	Device   string           `json:"device"`
	Number   blkdev.Number    `json:"number"`
	Chain    string           `json:"chain"`
	Limit    limit.Limit      `json:"limit"`
	Outer    []RunOuter       `json:"outer"` // rates that weir took over
	Expected []place.Cell     `json:"expected"`
	Foreign  *place.By        `json:"foreign"` // what holds writes to other groups' files
	Charged  *cgroupfs.Stat   `json:"charged"` // null: the kernel counted nothing for the device
	Disk     *blkdev.Counters `json:"disk"`    // null: not measured
	Read     *RunVerdict      `json:"read"`    // null: no limit, or not measured
	Write    *RunVerdict      `json:"write"`
}

// A RunOuter is a rate of a limit that binds a group that weir was started in.
type RunOuter struct {
	Rate   string `json:"rate"` // its name in Limit
	Cgroup string `json:"cgroup"`
}

// A RunVerdict is what became of a limit in one direction.
type RunVerdict struct {
	Held    tally.State `json:"held"`
	Bytes   uint64      `json:"bytes"`
	Seconds float64     `json:"seconds"`
	Ops     uint64      `json:"ops"`
	Escaped uint64      `json:"escaped_bytes"`
	Doubts  []string    `json:"doubts"`
}

// RunOf makes the document of a run that has ended.
func RunOf(r running.Report) Run {
	doc := Run{Schema: SchemaOf("run"), Cgroup: r.Cgroup, Version: int(r.Version), Status: r.Status, ElapsedSeconds: r.Elapsed.Seconds(), Hold: r.Hold,
		QueuedSeconds: r.Queued.Seconds(), Stops: r.Stops, Dirty: r.Dirty, Escapes: []escape.File{}, Devices: []RunDevice{}, HandedOn: r.HandedOn}
	if r.Tally != nil {
		doc.Written, doc.Escaped = &r.Tally.Written, &r.Tally.Escaped
		doc.Escapes = append(doc.Escapes, r.Tally.Escapes...)
	}
	for _, d := range r.Devices {
		doc.Devices = append(doc.Devices, RunDevice{Device: d.Device.Node, Number: d.Device.Number, Chain: d.Chain.String(), Limit: d.Limit, Outer: outerOf(r.Outer, d.Device.Number), Expected: d.Cells(),
			Foreign: d.Foreign, Charged: d.Charged, Disk: d.Disk, Read: runVerdictOf(d.Read), Write: runVerdictOf(d.Write)})
	}
	return doc
}

func outerOf(all []running.Outer, n blkdev.Number) []RunOuter {
	of := []RunOuter{}
	for _, o := range all {
		if o.Device == n {
			of = append(of, RunOuter{o.Key.String(), o.Cgroup})
		}
	}
	return of
}

func runVerdictOf(v *tally.Verdict) *RunVerdict {
	if v == nil {
		return nil
	}
	return &RunVerdict{v.State, v.Bytes, v.Took.Seconds(), v.Ops, v.Escaped, append([]string{}, v.Doubts...)}
}
