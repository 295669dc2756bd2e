package running

import (
	"path/filepath"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/tally"
	"github.com/weir-io/weir/internal/place"
)

// A Report is what a command did under its limits, and what held.
type Report struct {
	launch.Result
	Left     launch.Left // what remains of the group
	Complete bool        // it was measured to the end: what follows is known
	Cgroup   string      // the path of its group; always known
	Version  cgroupfs.Version
	Decided  place.Decision // what was expected
	Hold     limit.Hold     // what holds buffered writes, if anything does
	Devices  []Device
	Outer    []Outer // limits that bound weir itself, and were taken over
	HandedOn string  // the program that handed the work to a daemon, so that the limits did not apply; empty: none
}

// A Device is a device with a limit.
type Device struct {
	place.Expected
	Charged *cgroupfs.Stat   // what the kernel counted for the group; nil: nothing
	Disk    *blkdev.Counters // what the disk did for all; nil: not measured
	Read    *tally.Verdict   // nil: no limit, or not measured
	Write   *tally.Verdict
}

// reportOf judges what a command did. Command is its first word.
func reportOf(g cgroupfs.Group, decided place.Decision, command string, r launch.Result) Report {
	report := Report{Result: r, Cgroup: g.Path(), Version: g.Hierarchy().Version, Decided: decided, Hold: limit.HoldKernel}
	if decided.Paced != nil {
		report.Hold = limit.HoldPacer
	}
	for _, p := range decided.Places {
		report.Devices = append(report.Devices, deviceOf(p, r))
	}
	if r.Tally != nil && r.Tally.HandedOn(command) {
		report.HandedOn = filepath.Base(command)
	}
	return report
}

// deviceOf adds what was counted, and the verdicts on a device's limits.
func deviceOf(p place.Expected, r launch.Result) Device {
	d := Device{Expected: p}
	for _, s := range r.Stats {
		if s.Device == p.Device.Number {
			d.Charged = &s
		}
	}
	if r.Tally == nil {
		return d
	}
	for _, t := range r.Tally.Devices {
		if t.Device != p.Device.Number {
			continue
		}
		d.Disk = &t.Disk
		if p.Limit.RBPS.IsSet() || p.Limit.RIOPS.IsSet() {
			v := r.Tally.Reads(t)
			d.Read = &v
		}
		if p.Limit.WBPS.IsSet() || p.Limit.WIOPS.IsSet() {
			v := r.Tally.Writes(t)
			d.Write = &v
		}
	}
	return d
}
