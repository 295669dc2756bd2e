package place

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A Group is what is known of the group that limits are for. It was read before: the decision
// reads nothing.
type Group struct {
	Controller
	Path   string
	Rules  []cgroupfs.Rule             // in force
	Bounds map[blkdev.Number]RootBound // v1: what binds everybody's writes to a device
	Paced  *Paced                      // what weir's pacer holds now; nil: nothing
	// Escapes is what it holds now of what the kernel charges to other groups, and of the
	// group's own with that (cgroup v2); nil: nothing.
	Escapes *Paced
	// Unseen is why BPF cannot see that; nil: it can, or there is nothing to see (cgroup v1). The
	// kernel's counters can err, and no process may be paused because of an error.
	Unseen error
	// NoPacer is why weir's pacer cannot hold the group; nil: it can.
	NoPacer error
	Own     int     // processes that the group's rules bind
	Below   []Below // v1: groups below it with processes, which its rules do not reach
	// Late: the group is there, and gets the io controller only with this limit (cgroup v2). The kernel
	// goes on writing back the files that the group has written as before, until it writes to another
	// file of the disk (fs/fs-writeback.c: a wb is looked up again only for a new inode).
	Late bool
}

// A Below is a group below another.
type Below struct {
	Path      string
	Processes int
}

// A Decision is what is expected of the placed limits, and what has to be done for them.
type Decision struct {
	Group Group
	Hold  limit.Hold
	// Paced is what weir's pacer has to hold; nil: nothing.
	Paced *Paced
	// Escapes is what it is to hold of what the kernel charges to other groups, and of the
	// group's own with that (cgroup v2); nil: nothing.
	Escapes *Paced
	Places  []Expected
}

// Expected is a limit on a device with what is expected to hold it.
type Expected struct {
	Placed
	Expectation
	// Foreign is what is expected to hold writes to other groups' files, which the kernel
	// charges to those groups; nil: there are no such writes.
	Foreign *By
}

// A SpecError says that the request contradicts itself.
type SpecError struct{ Message string }

func (e *SpecError) Error() string { return e.Message }

// Class makes it fault.WrongUse.
func (e *SpecError) Class() fault.Class { return fault.WrongUse }

// A NothingToPaceError says that the pacer was asked to hold what it cannot hold.
type NothingToPaceError struct {
	Why string // it cannot hold the limits that are named; empty: no limit on bytes written is
}

func (e *NothingToPaceError) Error() string {
	if e.Why != "" {
		return "hold by the pacer: " + e.Why
	}
	return "hold by the pacer: the pacer holds bytes written, and no limit on them is named"
}

// Class makes it fault.WrongUse.
func (*NothingToPaceError) Class() fault.Class { return fault.WrongUse }

// Decide says what is expected of limits that will be set for a group, and whether weir's pacer
// has to hold them too. With the zero Hold the pacer stays as it is.
func Decide(g Group, all []Placed, how limit.Hold) (Decision, error) {
	d := Decision{Group: g, Hold: how}
	sites := make([]Site, len(all))
	for i, p := range all {
		sites[i] = g.Site(p.Device.Number, ruleOn(g.Rules, p.Device.Number).Overlay(p.Limit), p.FS())
	}
	wanted := slices.ContainsFunc(sites, func(s Site) bool { return s.wants(how) })
	switch {
	case how == limit.HoldPacer && !wanted && !slices.ContainsFunc(sites, func(s Site) bool { return s.Past != "" }):
		return d, &NothingToPaceError{uncounted(sites)}
	case how == limit.HoldPacer && wanted && g.NoPacer != nil:
		return d, g.NoPacer
	case how == "":
		d.Paced = g.Paced
	case wanted && g.NoPacer == nil, g.Paced != nil && how != limit.HoldKernel:
		d.Paced = pacedBy(g.Rules, sites)
	}
	for i, p := range all {
		sites[i].Paced = d.Paced
		d.Places = append(d.Places, Expected{Placed: p, Expectation: Expect(sites[i])})
	}
	d.Escapes = d.escapes(sites)
	for i := range d.Places {
		if e := &d.Places[i]; e.LimitsWrites() && e.Buffered.Mechanism == Writeback {
			e.Foreign = d.foreign(sites[i])
		}
	}
	return d, nil
}

// uncounted says why the pacer cannot hold what is written there; empty: it can, or no limit is for that.
func uncounted(sites []Site) string {
	for _, s := range sites {
		if _, bound := s.Limit.WBPS.Number(); bound && s.Kernel.Uncounted != "" {
			return s.Kernel.Uncounted
		}
	}
	return ""
}

// escapes returns what the pacer has to hold of what the kernel charges to other groups, if the
// kernel's writeback has to hold a limit on bytes.
func (d Decision) escapes(sites []Site) *Paced {
	g := d.Group
	switch {
	case d.Paced != nil || g.Version != cgroupfs.V2:
		return nil
	case d.Hold == "":
		return g.Escapes
	case d.Hold != limit.HoldAuto || g.NoPacer != nil || g.Unseen != nil:
		return nil
	}
	here := g.Escapes != nil // else on another device
	for i, s := range sites {
		_, bound := s.Limit.WBPS.Number()
		here = here || bound && d.Places[i].Buffered.Mechanism == Writeback
	}
	if !here {
		return nil
	}
	return pacedBy(g.Rules, sites)
}

// foreign says what is expected to hold writes to other groups' files at a site, if the
// kernel's writeback holds the group's own.
func (d Decision) foreign(s Site) *By {
	if d.Group.Root { // v1's: whose writeback is everybody's
		return nil
	}
	for _, p := range []*Paced{d.Paced, d.Escapes} {
		if p.holds(s) {
			by := &By{Mechanism: Pacer}
			if _, ops := s.Limit.WIOPS.Number(); ops {
				by.Why = "the pacer counts bytes, not operations"
			}
			return by
		}
	}
	return &By{Why: "the kernel charges them to those groups" + d.blind()}
}

// Without is the same decision if the pacer is not available.
func (d Decision) Without() (Decision, error) { return d.With(limit.HoldKernel) }

// With is the decision about the same limits with another Hold.
func (d Decision) With(how limit.Hold) (Decision, error) {
	var all []Placed
	for _, e := range d.Places {
		all = append(all, e.Placed)
	}
	return Decide(d.Group, all, how)
}

// Site collects what is known of a device, for the group.
func (g Group) Site(dev blkdev.Number, l limit.Limit, fs *blkdev.Mount) Site {
	s := Site{Device: dev, Limit: l, Kernel: g.Writes(fs), Root: g.Bounds[dev], Paced: g.Paced, Past: g.flat()}
	if fs != nil && fs.DAX() { // neither blk-throttle nor the pacer sees it
		s.Past = s.Kernel.Why
	}
	return s
}

// pacedBy returns what the pacer holds with these rules and sites: the lowest limit, because it
// cannot tell disks apart. nil: there is none.
func pacedBy(rules []cgroupfs.Rule, sites []Site) *Paced {
	limits := map[blkdev.Number]limit.Limit{}
	var order []blkdev.Number
	note := func(dev blkdev.Number, l limit.Limit) {
		if _, known := limits[dev]; !known {
			order = append(order, dev)
		}
		limits[dev] = l
	}
	for _, r := range rules {
		note(r.Device, r.Limit)
	}
	for _, s := range sites {
		note(s.Device, s.Limit)
	}
	var p Paced
	for _, dev := range order {
		if n, bound := limits[dev].WBPS.Number(); bound {
			if len(p.Devices) == 0 || n < p.WBPS {
				p.WBPS = n
			}
			p.Devices = append(p.Devices, dev)
		}
	}
	if len(p.Devices) == 0 {
		return nil
	}
	return &p
}

// flat says why no rule of the group reaches a process; empty: the rules do, or there is no
// process.
func (g Group) flat() string {
	if g.Version != cgroupfs.V1 || g.Root || g.Own > 0 || len(g.Below) == 0 {
		return ""
	}
	return "on cgroup v1 a limit does not reach child groups, and all of the group's processes are there: " + g.Children()
}

// childrenShown bounds how many child groups are named.
const childrenShown = 3

// Children names child groups with processes, some of them.
func (g Group) Children() string {
	var names []string
	for _, b := range g.Below {
		if len(names) == childrenShown {
			return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(g.Below)-childrenShown)
		}
		names = append(names, b.Path)
	}
	return strings.Join(names, ", ")
}

// Rooted reports whether v1's root group has a limit on a device that is as strict. That limit
// applies to all writeback to the device.
func (g Group) Rooted(dev blkdev.Number, l limit.Limit) bool { return g.Bounds[dev].Covers(l) }

// ruleOn returns the rule of a device, unset if there is none.
func ruleOn(rules []cgroupfs.Rule, dev blkdev.Number) limit.Limit {
	for _, r := range rules {
		if r.Device == dev {
			return r.Limit
		}
	}
	return limit.Limit{}
}

// Binds reports whether a limit on writes is expected to apply to the group's writeback.
func (d Decision) Binds() bool {
	return slices.ContainsFunc(d.Places, func(e Expected) bool { return e.LimitsWrites() && e.Buffered.Mechanism == Writeback })
}
