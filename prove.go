package weir

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/prove"
)

// The times of a proof.
const (
	proveWindow    = 3 * time.Second
	proveTimeLeast = time.Second
	proveTimeMost  = 10 * time.Minute
)

// A ProveRequest says how to measure. The zero ProveRequest makes loads for at most half a minute.
type ProveRequest struct {
	// Observe measures the target's own I/O for so long, from 1 s to 10 min, and makes no load. 0:
	// loads run inside the target's group. They share its limits and its memory, write to files
	// without a name in directories of the target, and leave nothing behind.
	Observe time.Duration
	// Dirs are directories of the target to measure in, one for each disk; none: weir looks among
	// the target's mounts.
	Dirs []string
	// Paths are the kinds of I/O to try, of "direct", "sync", "buffered", "mapped" and "async"
	// (direct, 32 operations at once); none: the first four. All rows of named paths are measured.
	Paths []string
	// Window is how long each kind is measured, from 1 s to 10 min; 0: up to 3 s.
	Window time.Duration
	// All measures all rows, and not only those that tell the most: six, or one for each limit if
	// there is time for more.
	All bool
	// Progress is told what is being measured, and how far it is, from 0 to 1. It may be called
	// from any goroutine; nil: nobody is told.
	Progress func(what string, part float64)
	// Stderr is where errors of the loads themselves go; nil: nowhere.
	Stderr *os.File
}

// A Verdict says whether a limit holds.
type Verdict string

// The verdicts.
const (
	Held         Verdict = "held"               // at the writer, too
	HeldAtDevice Verdict = "held at the device" // the writer runs ahead, into memory
	NotHeld      Verdict = "not held"
	CannotTell   Verdict = "cannot tell" // Row.Reason and Row.Why say why
)

// A Proof is what was measured.
type Proof struct {
	Target string // with its kind
	Group
	Kernel   string  // its release
	Observed bool    // the rows are the target's own I/O
	Verdict  Verdict // the worst of the rows', and no better than CannotTell if a limit is Untried
	Rows     []Row
	Untried  []Untried // limits that were to be measured, and that no row has tried
	Findings []Finding // those that the rows name
	LeftOut  int       // how many rows All would measure besides
	Notes    []Note
}

// An Untried limit is one that no row has tried. It is in bytes per second, or in operations per second
// if Ops is true.
type Untried struct {
	Device, Number string // as in Device
	Read           bool   // or else a limit of writes
	Ops            bool   // operations are limited, and not bytes
	Limit          uint64
	Why            string // for people
	Remedy         Remedy // how it can be tried
}

// A Row is one kind of I/O on one device. Rates are in bytes per second, or in operations per second
// if Ops is true.
type Row struct {
	Device, Number string // as in Device
	Name           string // for people: "direct write"
	Path           string // as in ProveRequest; empty: observed, so any
	Read           bool   // or else a write
	Ops            bool   // operations are limited, and not bytes
	Limit          uint64
	Writer         Rate // what the writer, or reader, did
	Charged        Rate // what the kernel charged to the group
	Disk           Rate // what the disk did, for all
	Window         time.Duration
	P50, P99, Max  time.Duration // of an operation, as the writer saw it; 0: not measured
	Verdict        Verdict
	Reason         string // why not held, for programs; empty if held
	Why            string // the same, for people
	Warnings       []string
	Findings       []int // the numbers of the findings that explain the verdict
}

// A Rate is one that was measured, per second: over the window, and in its lowest and highest
// second.
type Rate struct{ Mean, Low, High float64 }

// Prove measures whether the limits of a running target hold: what a writer does, what the kernel
// charges to the group, and what the disk does. It takes as long as the windows say. A context that
// is done ends it early, with an error and without a load left behind.
//
// ErrNotFound: there is no such target. ErrNotPossible: the target has no limit, or weir can write
// to none of its limited disks. ErrWrongUse: a time is out of its range, or a directory is not the
// target's. That a limit does not hold is no error: see Proof.Verdict.
func (h *Host) Prove(ctx context.Context, target string, r ProveRequest) (Proof, error) {
	p, err := h.prove(ctx, target, r)
	return p, told(err, p.Notes)
}

func (h *Host) prove(ctx context.Context, target string, r ProveRequest) (p Proof, err error) {
	request, err := r.inner()
	if err != nil {
		return p, err
	}
	switch {
	case r.Observe != 0:
	case !h.host.IsOwn():
		return p, fault.Misusef("prove %s: loads run on this machine, and %s is a copy of one", target, h.host.Root)
	default:
		if p.Notes, err = h.ready("prove " + target); err != nil {
			return p, err
		}
	}
	found, err := h.host.Target(ctx, target)
	if err != nil {
		return p, err
	}
	request.Target = &found
	trial, err := prove.Prepare(ctx, h.host, request)
	defer func() { err = errors.Join(err, trial.Close()) }()
	p.Notes = append(p.Notes, notesOf(trial.Notes)...)
	if err != nil {
		return p, err
	}
	prover, done, err := r.prover()
	if err != nil {
		return p, err
	}
	defer done()
	proof, err := trial.Measure(ctx, prover)
	if err != nil {
		return p, err
	}
	p.LeftOut = trial.Left
	p.measured(proof)
	return p, nil
}

// inner is the core's form of a request, without its target.
func (r ProveRequest) inner() (prove.Request, error) {
	request := prove.Request{Dirs: r.Dirs, Observe: r.Observe, Paths: prove.Paths, Window: r.Window, Short: r.Window == 0, All: r.All || len(r.Paths) > 0}
	if r.Window == 0 {
		request.Window = proveWindow
	}
	for _, one := range []struct {
		name string
		time time.Duration
	}{{"window", request.Window}, {"observe", r.Observe}} {
		if one.time != 0 && (one.time < proveTimeLeast || one.time > proveTimeMost) {
			return request, fault.Misusef("prove: %s %s: %s to %s is possible", one.name, one.time, proveTimeLeast, proveTimeMost)
		}
	}
	if len(r.Paths) == 0 {
		return request, nil
	}
	request.Paths = nil
	for _, word := range r.Paths {
		path := load.Path(word)
		if !slices.Contains(load.Paths, path) {
			return request, fault.Misusef("prove: path %q: there are direct, sync, buffered, mapped and async", word)
		}
		if !slices.Contains(request.Paths, path) {
			request.Paths = append(request.Paths, path)
		}
	}
	return request, nil
}

// prover starts loads as this program. done is for when they have ended.
func (r ProveRequest) prover() (p prove.Prover, done func(), err error) {
	p = prove.Prover{Load: []string{"/proc/self/exe", load.Arg}, Stderr: r.Stderr, Progress: r.Progress}
	if p.Progress == nil {
		p.Progress = func(string, float64) {}
	}
	if p.Stderr != nil {
		return p, func() {}, nil
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	p.Stderr = nowhere
	return p, func() { _ = nowhere.Close() }, err
}

func (p *Proof) measured(proof prove.Proof) {
	t := proof.Target
	p.Target, p.Group = t.String(), Group{t.Group.Path(), int(proof.Version), Owner{t.Owner.Kind, t.Owner.Name}}
	p.Kernel, p.Observed, p.Verdict, p.Findings = proof.Kernel, proof.Observed, Verdict(proof.Verdict()), findingsOf(proof.Findings())
	for _, u := range proof.Untried {
		p.Untried = append(p.Untried, Untried{u.Device.Node, u.Device.Number.String(), u.Key.IsRead(), u.Key.IsOps(), u.Rate, u.Why, remedyOf(u.Remedy)})
	}
	for _, r := range proof.Rows {
		p.Rows = append(p.Rows, Row{Device: r.Device.Node, Number: r.Device.Number.String(), Name: r.Name, Path: string(r.Path), Read: r.Key.IsRead(),
			Ops: r.Key.IsOps(), Limit: r.Rate, Writer: rateOf(r.Writer), Charged: rateOf(r.Cgroup), Disk: rateOf(r.Disk), Window: r.Window,
			P50: r.P50, P99: r.P99, Max: r.Max, Verdict: Verdict(r.Verdict), Reason: string(r.Reason), Why: r.Why, Warnings: r.Warning, Findings: r.Findings})
	}
}

func rateOf(s prove.Seen) Rate { return Rate{Mean: s.Rate, Low: s.Low, High: s.High} }
