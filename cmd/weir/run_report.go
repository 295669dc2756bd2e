package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/escape"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/pacer"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/tally"
)

// runDocument is weir run's JSON (docs/json.md).
type runDocument struct {
	cli.Schema
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
	Devices        []runDevice   `json:"devices"`
	HandedOn       string        `json:"handed_on"` // the program that handed the work to a daemon
}

type runDevice struct {
	Device   string           `json:"device"`
	Number   blkdev.Number    `json:"number"`
	Chain    string           `json:"chain"`
	Limit    limit.Limit      `json:"limit"`
	Expected []place.Cell     `json:"expected"`
	Foreign  *place.By        `json:"foreign"` // see showDevice
	Charged  *cgroupfs.Stat   `json:"charged"` // null: the kernel counted nothing for the device
	Disk     *blkdev.Counters `json:"disk"`    // null: not measured
	Read     *runVerdict      `json:"read"`    // null: no limit, or not measured
	Write    *runVerdict      `json:"write"`
}

// runVerdict is what became of a limit in one direction.
type runVerdict struct {
	Held    tally.State `json:"held"`
	Bytes   uint64      `json:"bytes"`
	Seconds float64     `json:"seconds"`
	Ops     uint64      `json:"ops"`
	Escaped uint64      `json:"escaped_bytes"`
	Doubts  []string    `json:"doubts"`
}

// watchEscapes watches with BPF what goes past limits on writes; nil if BPF is not available.
func (a *app) watchEscapes(g cgroupfs.Group, decided place.Decision) tally.Watcher {
	if decided.Escapes != nil { // the pacer has one
		return a.pacer().Watcher(pacer.PlaceOf(g, "blkio"))
	}
	if g.Hierarchy().Version != cgroupfs.V2 || !slices.ContainsFunc(decided.Places, func(e place.Expected) bool { return e.LimitsWrites() }) {
		return nil
	}
	w, err := escape.Watch(a.fs)
	if err != nil {
		return nil // it is worked out then
	}
	return w
}

func closeWatcher(w tally.Watcher) {
	if own, is := w.(*escape.Watcher); is {
		_ = own.Close() // it ends with weir
	}
}

// tallied are the rules to be measured.
func tallied(decided place.Decision) []tally.Rule {
	var rules []tally.Rule
	for _, p := range decided.Places {
		rules = append(rules, tally.Rule{Device: p.Device.Number, Limit: p.Limit})
	}
	return rules
}

func (a *app) reportRun(room *launch.Room, decided place.Decision, command string, r launch.Result) error {
	version := room.IO.Hierarchy().Version
	doc := runDocument{Schema: cli.SchemaOf("run"), Cgroup: room.IO.Path(), Version: int(version), Status: r.Status,
		ElapsedSeconds: r.Elapsed.Seconds(), QueuedSeconds: r.Queued.Seconds(), Hold: limit.HoldKernel, Stops: r.Stops, Dirty: r.Dirty,
		Devices: []runDevice{}, Escapes: []escape.File{}}
	if decided.Paced != nil {
		doc.Hold = limit.HoldPacer
	}
	if r.Tally != nil {
		doc.Written, doc.Escaped = &r.Tally.Written, &r.Tally.Escaped
		doc.Escapes = append(doc.Escapes, r.Tally.Escapes...)
	}
	for _, p := range decided.Places {
		d := runDevice{Device: p.Device.Node, Number: p.Device.Number, Chain: p.Chain.String(), Limit: p.Limit, Expected: p.Cells(), Foreign: p.Foreign}
		for _, s := range r.Stats {
			if s.Device == p.Device.Number {
				d.Charged = &s
			}
		}
		doc.Devices = append(doc.Devices, d.judged(r))
	}
	if r.Tally != nil && r.Tally.HandedOn(command) {
		doc.HandedOn = filepath.Base(command)
	}
	a.sayRun(doc, r.Tally)
	if r.Stops > 0 {
		a.out.Say("weir's pacer paused the command %s, because it wrote to files that the kernel charges to another group", cli.Plural(int(r.Stops), "time", "times"))
	}
	if a.out.JSON {
		return a.out.Document(doc)
	}
	return nil
}

// judged adds the verdicts on a device's limits.
func (d runDevice) judged(r launch.Result) runDevice {
	if r.Tally == nil {
		return d
	}
	for _, t := range r.Tally.Devices {
		if t.Device != d.Number {
			continue
		}
		d.Disk = &t.Disk
		if d.Limit.RBPS.IsSet() || d.Limit.RIOPS.IsSet() {
			d.Read = verdictOf(r.Tally.Reads(t))
		}
		if d.Limit.WBPS.IsSet() || d.Limit.WIOPS.IsSet() {
			d.Write = verdictOf(r.Tally.Writes(t))
		}
	}
	return d
}

func verdictOf(v tally.Verdict) *runVerdict {
	return &runVerdict{v.State, v.Bytes, v.Took.Seconds(), v.Ops, v.Escaped, append([]string{}, v.Doubts...)}
}

// sayRun says what the command did, and what held.
func (a *app) sayRun(doc runDocument, sum *tally.Sum) {
	for _, d := range doc.Devices {
		if d.Read != nil {
			a.sayVerdict(d, "read", d.Read, limit.RBPS, limit.RIOPS)
		}
		if d.Write != nil {
			a.sayVerdict(d, "wrote", d.Write, limit.WBPS, limit.WIOPS)
			a.sayEscapes(doc, d, sum)
		}
	}
	if doc.HandedOn != "" {
		a.out.Say("note: %s hands its work to a daemon in another group, so this limit did not apply; find the group with weir show and limit it with weir set", doc.HandedOn)
	}
}

var stateWords = map[tally.State]string{tally.Held: "held", tally.NotHeld: "NOT held", tally.NotTold: "cannot tell whether it was held", tally.Idle: "not tested"}

func (a *app) sayVerdict(d runDevice, done string, v *runVerdict, keys ...limit.Key) {
	bounds := ""
	for _, k := range keys {
		if rate := d.Limit.Get(k); rate.IsSet() {
			bounds += ", limit " + rate.Format(k)
		}
	}
	if v.Held == tally.Idle {
		a.out.Say("%s: %s nothing%s", d.Device, done, bounds)
		return
	}
	seconds := max(v.Seconds, 1e-6)
	a.out.Say("%s: %s %s in %s: %s/s, %.0f ops/s%s: %s", d.Device, done, limit.FormatMeasured(float64(v.Bytes)), cli.Duration(time.Duration(seconds*float64(time.Second))),
		limit.FormatMeasured(float64(v.Bytes)/seconds), float64(v.Ops)/seconds, bounds, stateWords[v.Held])
	for _, doubt := range v.Doubts {
		a.out.Say("  %s", doubt)
	}
}

// sayEscapes says what went past a limit on writes, and where.
func (a *app) sayEscapes(doc runDocument, d runDevice, sum *tally.Sum) {
	v := d.Write
	if v.Escaped == 0 || v.Held == tally.Held {
		return
	}
	size := limit.FormatMeasured(float64(v.Escaped))
	var charged, disk uint64
	if d.Charged != nil {
		charged = d.Charged.WrittenBytes
	}
	if d.Disk != nil {
		disk = d.Disk.WrittenBytes
	}
	a.out.Say("  the command wrote %s (to memory or disk); the kernel charged %s to its group; %s wrote %s so far, for all processes",
		limit.FormatMeasured(float64(*doc.Written)), limit.FormatMeasured(float64(charged)), d.Device, limit.FormatMeasured(float64(disk)))
	switch {
	case doc.Version == int(cgroupfs.V1):
		a.out.Say("  %s went past the limit: cgroup v1 charges their writeback to the root group", size)
	case sum.Told:
		for _, f := range doc.Escapes[:min(len(doc.Escapes), escapesSaid)] {
			a.out.Say("  %s went past the limit: the kernel charges %s to %s", limit.FormatMeasured(float64(f.Bytes)), named(f), ownerOf(f))
		}
	default:
		a.out.Say("  %s went past the limit: the kernel charges files that the command wrote to to another group%s", size, suspects(sum, d.Number))
	}
}

// escapesSaid is how many files are named.
const escapesSaid = 3

func named(f escape.File) string {
	if f.Path == "" {
		return fmt.Sprintf("inode %d on %s", f.Inode, f.Device)
	}
	return f.Path
}

func ownerOf(f escape.File) string {
	if f.Owner.Root {
		return "the root group"
	}
	return "cgroup " + f.Owner.String()
}

// suspects are the files that were open on a device, if weir did not see which of them it was.
func suspects(s *tally.Sum, n blkdev.Number) string {
	var paths []string
	for _, o := range s.Open {
		if o.On(n) && !o.New && len(paths) < escapesSaid {
			paths = append(paths, o.Path)
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return "; the command had " + strings.Join(paths, ", ") + " open"
}
