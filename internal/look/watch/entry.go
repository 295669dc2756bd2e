package watch

import (
	"slices"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
)

// An entry is what a Watcher knows of one group.
type entry struct {
	named
	files *cgroupfs.Counters // nil: they are opened for each reading
	id    uint64             // on v1: of the group that files are of
	round uint64             // in which the group was last seen
	leaf  bool               // it had no child groups when they were last looked for
	turn  uint64             // in which of leafEvery rounds they are looked for

	watch    int32 // of inotify; noWatch: nobody tells of its rules, and of groups below it
	followed bool  // watch was asked for
	stirred  bool  // its rules were written
	above    *entry

	// Child groups, which are counted rather than listed on v1 without a watch (Watcher.children):
	below   []named
	listed  bool // they are known, and none was gone since
	counted bool // they were counted when they were last looked for

	// On v1, what sums.go needs:
	kids    []*entry // of below; nil: they are not known
	sum     *cgroupfs.OpenStats
	sumless bool   // the kernel has no sum
	total   uint64 // bytes of the group and of those below it, as they were last read
	size    int    // how many groups that are
	hot     uint64 // up to which round it is read each time
	sure    bool   // all of these groups are known and watched

	stats []cgroupfs.Stat
	rates []*Rates  // of stats
	still bool      // none of the rates is another than 0
	read  time.Time // when the counters were read
	seen  time.Time // up to when they are known: an idle group's are those of before
	whole time.Time // when v1's operations were last read
	moved bool      // the counters have changed since the reading before
	acted time.Time // when they were last seen to change

	detailed time.Time // when pressure and memory were read
	unread   error     // why they, or the rules, could not be read then
	ruled    time.Time // when the rules were
	rules    []cgroupfs.Rule
	pressure *Pressure
	memory   *Memory

	paced     *Paced
	paused    *Paused
	known     Known
	described time.Time
	asked     []cgroupfs.Rule // the rules that known is about
	stale     bool            // the pacer has begun or ended

	made *Group // what the others add up to; nil: it has to be made again
}

// take notes a reading.
func (e *entry) take(stats []cgroupfs.Stat, now time.Time) {
	first := e.read.IsZero()
	if e.moved = first || !slices.Equal(stats, e.stats); e.moved {
		e.acted = now
	}
	between := now.Sub(e.seen)
	if !e.moved && between > 0 {
		e.read = now
		e.rest(now)
		return
	}
	rates := make([]*Rates, len(stats))
	for i, s := range stats {
		if first || between <= 0 {
			continue
		}
		// A device that is new in the list had counters of 0 before.
		was, _ := of(e.stats, s.Device)
		rates[i] = ratesOf(s, was, between)
	}
	if e.moved || !sameRates(rates, e.rates) {
		e.made = nil
	}
	e.stats, e.rates, e.still = stats, rates, false
	e.read, e.seen = now, now
}

// rest notes that the counters are known not to have changed.
func (e *entry) rest(now time.Time) {
	e.moved, e.seen = false, now
	if e.still {
		return
	}
	e.still = true
	for i, r := range e.rates {
		if r == nil || *r != (Rates{}) {
			e.rates[i], e.made = &Rates{}, nil
		}
	}
}

func sameRates(a, b []*Rates) bool {
	return slices.EqualFunc(a, b, same[Rates])
}

// detail reads the group's rules, pressure and memory.
func (e *entry) detail(memory *cgroupfs.Hierarchy, now time.Time) error {
	between := now.Sub(e.detailed)
	e.detailed = now
	if err := e.readRules(now); err != nil {
		return err
	}
	if err := e.readPressure(between); err != nil {
		return err
	}
	return e.readMemory(memory)
}

// readRules reads the rules, unless nobody has written them since.
func (e *entry) readRules(now time.Time) error {
	if e.watch != noWatch && !e.stirred && !e.ruled.IsZero() && now.Sub(e.ruled) < rulesEvery {
		return nil
	}
	stirred := e.stirred
	e.stirred = false // before they are read
	var rules []cgroupfs.Rule
	var err error
	never := e.at.Hierarchy().Version == cgroupfs.V1 && len(e.stats) == 0 && !stirred // see Group.NeverHadRules
	if !never {
		rules, err = e.at.RulesIfAny()
	}
	if err != nil && !fault.IsUnsupported(err) {
		e.stirred = stirred
		return err
	}
	if e.ruled = now; !slices.Equal(rules, e.rules) {
		e.rules, e.made = rules, nil
	}
	return nil
}

func (e *entry) readPressure(between time.Duration) error {
	p, there, err := e.at.Pressure()
	if err != nil {
		return err
	}
	var was *cgroupfs.Pressure
	if e.pressure != nil {
		was = &e.pressure.Total
	}
	var now *Pressure
	if there {
		now = pressureOf(p, was, between)
	}
	if !same(now, e.pressure) {
		e.pressure, e.made = now, nil
	}
	return nil
}

// readMemory reads what waits to be written. On v1 it is that of the group of the same path.
func (e *entry) readMemory(memory *cgroupfs.Hierarchy) error {
	now, err := memoryOf(e.at, memory)
	if !same(now, e.memory) {
		e.memory, e.made = now, nil
	}
	return err
}

func memoryOf(g cgroupfs.Group, memory *cgroupfs.Hierarchy) (*Memory, error) {
	if memory == nil {
		return nil, nil
	}
	if memory != g.Hierarchy() {
		var err error
		if g, err = memory.Group(g.Path()); err != nil {
			return nil, nil // that part of the tree is not mounted
		}
	}
	dirty, writeback, there, err := g.FileDirty()
	if !there {
		return nil, err
	}
	return &Memory{dirty, writeback}, err
}

// same reports whether two are both nil, or the same.
func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// pacedBy notes what the pacer holds of the group; the zero Paced: nothing.
func (e *entry) pacedBy(p Paced) {
	var now *Paced
	if p != (Paced{}) {
		now = &p
	}
	if same(now, e.paced) {
		return
	}
	e.paced, e.made, e.stale = now, nil, true
}

// pausedFor notes for how long the pacer has paused the group; nil: it does not say.
func (e *entry) pausedFor(p *Paused) {
	if !same(p, e.paused) {
		e.paused, e.made = p, nil
	}
}

// unknown reports whether to ask who the group is, and what is expected to hold its limits.
func (e *entry) unknown(now time.Time) bool {
	if e.described.IsZero() {
		return true
	}
	every := describeEvery
	if e.acted.Before(e.described) {
		every = restedEvery
	}
	return !sameRules(e.rules, e.asked) || len(e.rules) > 0 && (e.stale || now.Sub(e.described) >= every)
}

// sameRules reports whether rules are the same, as those are that are mostly compared: one and the same slice.
func sameRules(a, b []cgroupfs.Rule) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// limited is what is asked about.
func (e *entry) limited() Limited {
	l := Limited{Group: e.at}
	for _, r := range e.rules {
		l.Usages = append(l.Usages, Usage{Device: r.Device, Limit: r.Limit})
	}
	return l
}

// describe notes the answer.
func (e *entry) describe(k Known, now time.Time) {
	e.known, e.described, e.asked, e.stale, e.made = k, now, e.rules, false, nil
}

// group makes what a snapshot shows; nil: the group has no I/O and no limit. disk tells the name of a
// device, and what is below it.
func (e *entry) group(disk func(blkdev.Number) (node string, below []blkdev.Number)) *Group {
	if len(e.stats) == 0 && len(e.rules) == 0 {
		return nil
	}
	if e.made != nil {
		return e.made
	}
	g := &Group{Path: e.path, Target: e.known.Target, Owner: e.known.Owner, InPod: e.known.InPod, Pressure: e.pressure, Memory: e.memory, Paced: e.paced, Paused: e.paused}
	if g.Target == "" {
		g.Target = "cgroup:" + g.Path
	}
	for i, s := range e.stats {
		d := Device{Number: s.Device, Total: s, Counted: true}
		if e.rates[i] != nil {
			rates := *e.rates[i]
			d.Rates = &rates
		}
		g.Devices = append(g.Devices, d)
	}
	for _, r := range e.rules {
		i := slices.IndexFunc(g.Devices, func(d Device) bool { return d.Number == r.Device })
		if i < 0 {
			i = len(g.Devices)
			g.Devices = append(g.Devices, Device{Number: r.Device})
		}
		g.Devices[i].Limit = r.Limit
		if at := slices.IndexFunc(e.known.Expected, func(x *place.Expected) bool { return x.Device.Number == r.Device }); at >= 0 && ruleIn(e.asked, r) {
			g.Devices[i].Expected = e.known.Expected[at]
		}
	}
	for i := range g.Devices {
		g.Devices[i].Node, g.Devices[i].Below = disk(g.Devices[i].Number)
	}
	slices.SortFunc(g.Devices, func(a, b Device) int { return compareNumbers(a.Number, b.Number) })
	e.made = g
	return g
}

// ruleIn reports whether a rule is one of those that were asked about.
func ruleIn(rules []cgroupfs.Rule, r cgroupfs.Rule) bool {
	return slices.ContainsFunc(rules, func(o cgroupfs.Rule) bool { return o == r && o.Limit != (limit.Limit{}) })
}

// idOf is the identity of the group that has an entry's path now, on v1, where another group can have
// been renamed; 0 on v2.
func (w *Watcher) idOf(e *entry) (uint64, error) {
	if w.o.IO.Version != cgroupfs.V1 {
		return 0, nil
	}
	return e.at.ID()
}
