package place

import (
	"errors"
	"os"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/state"
)

// A Host is where the facts of a decision are read.
type Host struct {
	Root  string
	FS    *cgroupfs.FS
	State state.Dir
	// Jobs are what weir's pacer holds, for who has read them once for many groups; nil: they are read for each.
	Jobs map[pacer.Place][]pacer.Job
	once *once // see ForMany; nil: it is read each time
	// NoBPF is why weir has no BPF programs here; nil, or an answer of nil: it has.
	NoBPF func() error
}

// once is what a Host has read that is the same for all groups.
type once struct {
	release *kernel.Release // nil: it is still to be read
	asked   bool            // about BPF
	unseen  error
	bounds  map[blkdev.Number]RootBound // what limits all writes to devices on v1
}

// ForMany is a Host that decides about many groups now: it reads once what is the same for all.
func (h Host) ForMany() Host {
	h.once = &once{bounds: map[blkdev.Number]RootBound{}}
	return h
}

// release reads the kernel's version.
func (h Host) release() (kernel.Release, error) {
	if h.once != nil && h.once.release != nil {
		return *h.once.release, nil
	}
	release, err := kernel.New(h.Root).Release()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return release, err
	}
	if h.once != nil {
		h.once.release = &release
	}
	return release, nil
}

// unseen is Unseen for a version of cgroups. v1 has no escapes: it charges all writeback to the root
// group.
func (h Host) unseen(v cgroupfs.Version) error {
	switch {
	case v == cgroupfs.V1:
		return nil
	case h.once == nil:
		return h.Unseen()
	case !h.once.asked:
		h.once.asked, h.once.unseen = true, h.Unseen()
	}
	return h.once.unseen
}

// Decide reads what is known of a group, and decides. toMake says that the group does not exist
// yet.
func (h Host) Decide(g cgroupfs.Group, toMake bool, all []Placed, how limit.Hold) (Decision, error) {
	return h.decide(g, toMake, all, how, g.RulesIfAny)
}

// DecideWith is Decide of a group that is there, and whose rules were read just now.
func (h Host) DecideWith(g cgroupfs.Group, rules []cgroupfs.Rule, all []Placed, how limit.Hold) (Decision, error) {
	return h.decide(g, false, all, how, func() ([]cgroupfs.Rule, error) { return rules, nil })
}

// decide is Decide with rules that are known, or are to be read.
func (h Host) decide(g cgroupfs.Group, toMake bool, all []Placed, how limit.Hold, rules func() ([]cgroupfs.Rule, error)) (Decision, error) {
	if _, err := g.NoThrottle(); err != nil && len(all) > 0 {
		return Decision{}, err
	}
	var devices []blkdev.Number
	for _, p := range all {
		devices = append(devices, p.Device.Number)
	}
	facts, err := h.group(g, toMake, devices, rules)
	if err != nil {
		return Decision{}, err
	}
	return Decide(facts, all, how)
}

// Group reads what is known of a group, and of devices for it.
func (h Host) Group(g cgroupfs.Group, toMake bool, devices []blkdev.Number) (Group, error) {
	return h.group(g, toMake, devices, g.RulesIfAny)
}

func (h Host) group(g cgroupfs.Group, toMake bool, devices []blkdev.Number, rules func() ([]cgroupfs.Rule, error)) (Group, error) {
	release, err := h.release()
	if err != nil {
		return Group{}, err
	}
	facts := Group{Controller: ControllerOf(g, release), Path: g.Path(), Bounds: map[blkdev.Number]RootBound{}, NoPacer: h.NoPacer(g), Unseen: h.unseen(g.Hierarchy().Version)}
	for _, dev := range devices {
		facts.Bounds[dev] = h.rootBound(g.Hierarchy(), dev)
	}
	if toMake {
		return facts, nil
	}
	facts.Late = g.LacksIO()
	facts.Rules, err = rules()
	if err != nil && !fault.IsUnsupported(err) && !cgroupfs.IsGone(err) { // that is for whoever sets one to say
		return facts, err
	}
	held, err := h.Paced(g)
	if err != nil {
		return facts, err
	}
	facts.Paced, facts.Escapes = held.Written, held.Escapes
	return facts, facts.readProcesses(g)
}

// readProcesses reads which processes the group's rules reach.
func (facts *Group) readProcesses(g cgroupfs.Group) error {
	if facts.Version != cgroupfs.V1 || facts.Root {
		return nil // v2's rules reach the groups below too
	}
	return g.Walk(func(at cgroupfs.Group) error {
		pids, err := at.Processes()
		switch {
		case at == g:
			facts.Own = len(pids)
		case len(pids) > 0:
			facts.Below = append(facts.Below, Below{at.Path(), len(pids)})
		}
		if cgroupfs.IsGone(err) {
			return nil
		}
		return err
	})
}

// rootBound returns what limits all writes to a device on v1; nothing on v2, or if it cannot be
// read.
func (h Host) rootBound(hierarchy *cgroupfs.Hierarchy, dev blkdev.Number) (bound RootBound) {
	if hierarchy.Version != cgroupfs.V1 {
		return bound
	}
	if h.once != nil {
		if known, is := h.once.bounds[dev]; is {
			return known
		}
		defer func() { h.once.bounds[dev] = bound }()
	}
	rule, err := hierarchy.Root().Rule(dev)
	if err != nil {
		return bound
	}
	bound.Rule = rule
	if _, bytes := rule.WBPS.Number(); !bytes { // then what waits in memory is not bound by it
		return bound
	}
	if bdi, there, err := kernel.New(h.Root).BDI(dev); err == nil && there {
		bound.BDI = &bdi
	}
	return bound
}

// A Held is what weir's pacer holds of a group: of all that it writes through the page cache,
// or of what the kernel charges to other groups, with its own.
type Held struct {
	Written, Escapes *Paced
	Lapsed           string // why it holds nothing, though it was asked to; empty: it does, or was not
}

// Paced reads what weir's pacer holds of a group.
func (h Host) Paced(g cgroupfs.Group) (is Held, err error) {
	if h.Root != "/" {
		return is, nil
	}
	jobs, err := h.jobsOf(g)
	if err != nil {
		return is, err
	}
	for _, j := range jobs {
		p := &Paced{j.WBPS, j.Devices, h.State.Path(), j.Missed}
		switch {
		case j.Lapsed != "":
			is.Lapsed = j.Lapsed
		case j.Count == pacer.CountEscaped:
			return Held{Escapes: p}, nil
		default:
			return Held{Written: p}, nil
		}
	}
	return is, nil
}

// IsAsked reports whether weir's pacer was asked to hold something of a group, and whether or not it does.
func (h Host) IsAsked(g cgroupfs.Group) (bool, error) {
	jobs, err := h.jobsOf(g)
	return len(jobs) > 0, err
}

func (h Host) jobsOf(g cgroupfs.Group) ([]pacer.Job, error) {
	limited := pacer.PlaceOf(g, "blkio")
	if h.Jobs != nil {
		return h.Jobs[limited], nil
	}
	return pacer.HoldingOf(h.State, limited)
}

// Unseen is why BPF cannot see what the kernel charges to other groups; nil: it can.
func (h Host) Unseen() error {
	if err := escape.Hindrance(h.FS); err != nil || h.NoBPF == nil {
		return err
	}
	return h.NoBPF()
}

// NoPacer returns why the pacer cannot hold a group; nil: it can.
func (h Host) NoPacer(g cgroupfs.Group) error {
	switch {
	case h.Root != "/":
		return fault.With(&fault.Unsupported{Feature: "pace groups of " + h.Root, Reason: "the pacer runs on this host"}, fault.Remedy{Do: fault.AskHost})
	case os.Geteuid() != 0:
		return errors.New("pace: permission denied (the pacer pauses processes and counts what they write; run weir as root)")
	case g.IsRoot():
		return errors.New("pace: the root group cannot be paused; name a group below it")
	case g.Hierarchy().Version == cgroupfs.V1 && h.FS.With(pacer.Freezer) == nil:
		return pacer.NoFreezer()
	}
	return nil
}
