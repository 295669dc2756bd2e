package weir

import (
	"context"
	"slices"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/explain"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/planned"
)

// A WhyRequest says what a question assumes. The zero WhyRequest assumes nothing: it is about what
// is in force now.
type WhyRequest struct {
	// Limits are supposed to be set; one without rates names a place. None: the question is about
	// all disks that the target has mounted.
	Limits []Limit
	// Hold is what is supposed to hold buffered writes under Limits, or in a group that weir would
	// make; empty: HoldAuto.
	Hold Hold
}

// A Report is the answer of Why.
type Report struct {
	// Supposed is true if nothing is limited and no limit was named: then the matrix says what a
	// limit would hold.
	Supposed  bool
	Target    string // with its kind; empty: a group that weir would make
	Group     *Group // nil: this host has no group that could have a limit
	Processes int    // in the group
	Kernel    string // its release; empty: not known
	Places    []Place
	Matrix    []Cell
	Findings  []Finding // the worst first
	Notes     []Note
}

// A Place is a path or a device that was named, or a mount of the target.
type Place struct {
	Spec    string
	Chain   string   // the way to the devices, for people
	Devices []Device // with the named rates; where a rate was not named, the one in force
}

// A Cell is one path of I/O at one place.
type Cell struct {
	Place int    // index of Report.Places
	Path  string // "direct", "sync", "buffered" or "mapped"
	Read  bool   // or else a write
	// Expected is "yes", "device" (the disk is held, and the writer runs ahead of it), "no",
	// "unlimited" (there is no limit) or "unknown".
	Expected  string
	Mechanism string // what holds it, as in Holding; empty unless something does
	Findings  []int  // the numbers of the findings that explain it
}

// A Finding is one reason why a limit holds or does not.
type Finding struct {
	Number   int    // from 1
	Code     string // stable, for programs; docs/guide/findings.md explains each
	Severity string // "breaks" (a limit does not hold), "hurts" (it holds, and does harm) or "note"
	Text     string // one sentence
	Evidence []Evidence
	Fixes    []Fix // a choice; empty: nothing can be done about it on this host
}

// Evidence is what was read on this host.
type Evidence struct{ File, Value string }

// A Fix is one thing to do about a finding.
type Fix struct {
	Text  string
	Lines []string // for a root shell; empty: nothing can be pasted
}

// Held reports whether all I/O that a limit applies to is expected to be held. Its ok is false if
// weir cannot tell for some of it, and expects the rest to be held.
func (r Report) Held() (held, ok bool) {
	has := func(words ...string) bool {
		return slices.ContainsFunc(r.Matrix, func(c Cell) bool { return slices.Contains(words, c.Expected) })
	}
	switch {
	case has(string(why.No)):
		return false, true
	case r.Group == nil || has(string(why.Unknown)):
		return false, false
	}
	return true, true
}

// Why says which I/O the limits of a target hold, which not, and why. It reads facts of this host,
// runs no load and changes nothing. The subject is a target; or a path or a device, for a command
// that weir run would start there; or empty, for this host.
//
// ErrNotFound: there is no such target, path or device. ErrWrongUse: the request contradicts
// itself. That something is not held, or cannot be told, is no error: see Report.Held.
func (h *Host) Why(ctx context.Context, subject string, r WhyRequest) (Report, error) {
	request, err := r.inner(subject)
	if err != nil {
		return Report{}, told(err, nil)
	}
	request.Planned = planned.SetFor(h.host)
	facts, noted, err := explain.Facts(ctx, h.host, request)
	notes := notesOf(noted)
	if err != nil {
		return Report{}, told(err, notes)
	}
	report := reportOf(why.Judge(facts))
	report.Notes = notes
	return report, nil
}

// inner is the core's form of a request.
func (r WhyRequest) inner(subject string) (request explain.Request, err error) {
	request.Subject = subject
	if request.Asked, err = askedOf(r.Limits, true); err != nil {
		return request, err
	}
	if request.Hold, err = r.Hold.inner(); request.Hold == "" {
		request.Hold = limit.HoldAuto
	}
	return request, err
}

func reportOf(r why.Report) Report {
	report := Report{Supposed: r.Supposed, Target: r.Target, Kernel: r.Kernel, Findings: findingsOf(r.Findings)}
	if g := r.Group; g != nil {
		report.Group, report.Processes = &Group{g.Path, g.Version, Owner{g.Owner.Kind, g.Owner.Name}}, g.Processes
	}
	for _, p := range r.Places {
		one := Place{Spec: p.Spec, Chain: p.Chain}
		for _, d := range p.Devices {
			one.Devices = append(one.Devices, Device{Node: d.Device, Number: d.Number.String(), Limit: ratesOf(d.Limit)})
		}
		report.Places = append(report.Places, one)
	}
	for _, c := range r.Matrix {
		report.Matrix = append(report.Matrix, Cell{c.Place, string(c.Path), c.Read, string(c.Held), string(c.Mechanism), c.Findings})
	}
	return report
}

func findingsOf(findings []why.Finding) []Finding {
	var all []Finding
	for _, f := range findings {
		one := Finding{Number: f.Number, Code: f.Code, Severity: string(f.Severity), Text: f.Text}
		for _, e := range f.Evidence {
			one.Evidence = append(one.Evidence, Evidence(e))
		}
		for _, x := range f.Fixes {
			one.Fixes = append(one.Fixes, Fix(x))
		}
		all = append(all, one)
	}
	return all
}
