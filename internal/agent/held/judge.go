package held

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
)

// A Judge remembers what was measured of each target. One goroutine at a time may use it.
type Judge struct {
	targets map[string]*target // by key
	row     []placed           // in the order in which they were asked for in the look before
	looks   uint64
	last    time.Time // of the look before
}

// A target is the group that was measured, and what was measured of each of its rates that has a limit.
type target struct {
	group string
	rates []measured // in the order of the group's devices and their rates
	seen  uint64     // in which look

	is      *watch.Group // as it was then
	resting bool         // it was the same twice: since then only the time of rates' last readings is another one
}

// A placed target is known by its place among those that are asked for: to look it up by its key takes a while for thousands.
type placed struct {
	key    string
	target *target
}

// NewJudge makes a Judge that knows nothing.
func NewJudge() *Judge { return &Judge{targets: map[string]*target{}} }

// What was measured of one rate.
type measured struct {
	Limit
	last  reading // of the look before
	begin reading // of the window; zero: the target is not at its limit
	large bool    // the last window was too short for requests of that size

	expected *place.Expected // to hold the limit, in the last look
	paced    *watch.Paced
}

type reading struct {
	at    time.Time
	total uint64
	ops   uint64 // operations in the same direction
}

func (r reading) until(now reading) (perSec float64) {
	return float64(now.total-r.total) / now.at.Sub(r.at).Seconds()
}

// Look takes a snapshot, and the targets whose limits are in force, each once. What it knew of others it
// forgets. busy says that a target is near a limit, so that it is worth looking again soon.
func (j *Judge) Look(s *watch.Snapshot, all []Target) (busy bool) {
	j.looks++
	groups, kept := groupsOf{Snapshot: s}, 0
	j.row = append(j.row, make([]placed, max(0, len(all)-len(j.row)))...)
	for i, t := range all {
		at := &j.row[i]
		if at.key != t.Key { // else it was asked for at the same place before, as most are
			*at = placed{t.Key, j.targets[t.Key]}
		}
		was, g := at.target, t.Is
		if g == nil {
			g = groups.find(t.Group)
		}
		if g == nil || (was == nil || was.is != g) && !g.Limited() {
			*at = placed{}
			continue
		}
		if was == nil || was.group != t.Group { // else another group, of a container of the same name, say: nothing was measured of it
			was = &target{group: t.Group}
			j.targets[t.Key], at.target = was, was
		}
		was.seen, kept = j.looks, kept+1
		busy = was.next(j.last, s.At, g) || busy
	}
	clear(j.row[len(all):])
	j.row = j.row[:len(all)]
	j.last = s.At
	if kept < len(j.targets) {
		maps.DeleteFunc(j.targets, func(_ string, t *target) bool { return t.seen != j.looks })
	}
	return busy
}

// groupsOf finds groups of a snapshot: at once where they are asked for in its order.
type groupsOf struct {
	*watch.Snapshot
	next   int                     // after the one that was found last
	byPath map[string]*watch.Group // nil: all were asked for in their order
}

func (s *groupsOf) find(path string) *watch.Group {
	for ; s.byPath == nil && s.next < len(s.Groups); s.next++ {
		if g := s.Groups[s.next]; g.Path == path {
			s.next++
			return g
		}
	}
	if s.byPath == nil {
		s.byPath = make(map[string]*watch.Group, len(s.Groups))
		for _, g := range s.Groups {
			s.byPath[g.Path] = g
		}
	}
	return s.byPath[path]
}

// next is look, for as little as it takes: of thousands of groups most have done nothing since the look
// before, and are the same in both snapshots.
func (t *target) next(last, at time.Time, g *watch.Group) (busy bool) {
	same := t.is == g && at.After(last)
	if same && t.resting {
		return false
	}
	if t.resting {
		for i := range t.rates {
			t.rates[i].last.at = last
		}
	}
	t.is, t.resting = g, same
	return t.look(at, g)
}

// look takes a reading of each rate that has a limit, and forgets the others.
func (t *target) look(at time.Time, g *watch.Group) (busy bool) {
	n := 0
	for i := range g.Devices {
		d := &g.Devices[i]
		for _, k := range limit.Keys {
			perSec, bound := d.Limit.Get(k).Number()
			if !bound || perSec == 0 {
				continue
			}
			m := t.rate(n, d.Number, k, perSec)
			m.Node = d.Node
			m.expect(d.Expected, g.Paced)
			busy = m.look(reading{at, totalOf(d.Total, k), totalOf(d.Total, opsOf(k))}) || busy
			n++
		}
	}
	clear(t.rates[n:]) // so that nothing else is kept for them
	t.rates = t.rates[:n]
	return busy
}

// rate makes the rate of a device the n-th one, which it mostly is.
func (t *target) rate(n int, device blkdev.Number, k limit.Key, perSec uint64) *measured {
	at := n + slices.IndexFunc(t.rates[n:], func(m measured) bool { return m.Device == device && m.Key == k })
	if at < n { // it is new
		at = len(t.rates)
		t.rates = append(t.rates, measured{})
	}
	m := &t.rates[n]
	*m, t.rates[at] = t.rates[at], *m
	if m.PerSec != perSec { // another rule: nothing was measured of it
		*m = measured{Limit: Limit{Device: device, Key: k, PerSec: perSec, State: NotTold}}
	}
	return m
}

// expect notes what is expected to hold the limit from now on. Once the kernel charges some of its I/O to others, the
// target can do more than it is charged for: that it was held before tells nothing of that.
func (m *measured) expect(e *place.Expected, paced *watch.Paced) {
	if m.expected == e && m.paced == paced {
		return
	}
	was := m.isUncharged()
	m.expected, m.paced = e, paced
	switch is := m.isUncharged(); {
	case is && m.State == Held:
		m.State, m.Since = NotTold, time.Time{}
	case was && !is:
		m.begin = reading{} // a window from before misses what others were charged for
	}
}

// isUncharged reports whether it is known that the kernel charges some of the I/O to others.
func (m *measured) isUncharged() bool {
	return m.expected != nil && uncharged(m.expected, m.Key, m.paced) != ""
}

// look takes one reading.
func (m *measured) look(is reading) (busy bool) {
	last := m.last
	m.last = is
	if last.at.IsZero() || !is.at.After(last.at) || is.total < last.total {
		m.begin = reading{}
		return false
	}
	share := last.until(is) / float64(m.PerSec)
	next := last.request(is) / (float64(m.PerSec) * is.at.Sub(last.at).Seconds()) // a large one may pass just after the look
	if share+next < atLeast || is.at.Sub(last.at) > gapMost {
		m.begin = reading{}
		return share >= busyLeast
	}
	if m.begin.at.IsZero() {
		m.begin = last
	}
	if over := is.at.Sub(m.begin.at); over >= WindowLeast {
		m.judge(is)
		if over >= windowMost {
			m.begin = is
		}
	}
	return true
}

// judge ends a measurement. Of a limit of whose I/O the kernel charges some to others it is none,
// unless what it charges is too much already.
func (m *measured) judge(now reading) {
	mean := m.begin.until(now)
	state, over := Held, mean > overMost*float64(m.PerSec)
	m.large = over && float64(now.total-m.begin.total) <= m.most(now)
	switch {
	case over && !m.large:
		state = NotHeld
	case uncharged(m.expected, m.Key, m.paced) != "":
		m.State, m.Since = NotTold, time.Time{}
		return
	case m.large, mean < atLeast*float64(m.PerSec):
		return // a longer window may tell
	}
	if m.State != state {
		m.Since = m.begin.at
		if state == Held && m.State == NotHeld {
			m.Since = now.at // the windows overlap: until now it was not
		}
	}
	m.State, m.Rate, m.From, m.To = state, mean, m.begin.at, now.at
}

// most is what a held target can do from the beginning of the window: what it has saved up while it
// paused, and a request at each end, which passes as a whole.
func (m *measured) most(now reading) float64 {
	return float64(m.PerSec)*(now.at.Sub(m.begin.at)+saved).Seconds() + 2*m.begin.request(now)
}

// request is the mean size of a request between two readings, in what they count; 0: not known.
func (r reading) request(now reading) float64 {
	if now.ops <= r.ops {
		return 0
	}
	return float64(now.total-r.total) / float64(now.ops-r.ops)
}

// uncharged says why what the kernel charges to a group is not all that its limit is for; empty: it is.
func uncharged(e *place.Expected, k limit.Key, paced *watch.Paced) string {
	if e == nil {
		return "weir does not know yet what is expected to hold the limit"
	}
	paths := []struct {
		name string
		by   place.By
	}{{"reads", e.Read}}
	if !k.IsRead() {
		paths[0].name, paths[0].by = "direct writes", e.Direct
		paths = append(paths, []struct {
			name string
			by   place.By
		}{{"synchronous writes", e.Sync}, {"buffered writes", e.Buffered}, {"mapped writes", e.Mapped}}...)
	}
	for _, p := range paths {
		switch p.by.Mechanism {
		case place.Throttle, place.Writeback:
		case place.Nothing:
			return "nothing holds its " + p.name + ": " + cmp.Or(p.by.Why, "weir knows no reason")
		default:
			return "the kernel does not charge its " + p.name + " to its cgroup, so that weir cannot measure them there; weir prove measures them"
		}
	}
	switch {
	case k.IsRead() || e.Foreign == nil:
	case e.Foreign.Mechanism == place.Nothing:
		return "nothing holds its writes to files of other cgroups: " + cmp.Or(e.Foreign.Why, "weir knows no reason")
	case paced != nil && paced.Lapsed != "":
		return "weir's pacer does not hold its writes to files of other cgroups: " + paced.Lapsed
	case paced != nil && paced.Missed != "":
		return "weir's pacer does not hold all of its writes to files of other cgroups: " + paced.Missed
	}
	return ""
}

func totalOf(s cgroupfs.Stat, k limit.Key) uint64 {
	switch k {
	case limit.RBPS:
		return s.ReadBytes
	case limit.WBPS:
		return s.WrittenBytes
	case limit.RIOPS:
		return s.Reads
	}
	return s.Writes
}

// opsOf is the rate of the same direction that counts operations.
func opsOf(k limit.Key) limit.Key {
	if k.IsRead() {
		return limit.RIOPS
	}
	return limit.WIOPS
}

// notYet says why nothing is told of a limit that could be measured.
const notYet = "it was not at its limit long enough for a measurement"

// tooLarge says the same of one that was measured.
const tooLarge = "it was not at its limit long enough for a measurement with requests as large as its own"

// Of is what is told of a target.
func (j *Judge) Of(key string) Verdict {
	v := Verdict{State: NotTold}
	if t := j.targets[key]; t != nil {
		for i := range t.rates {
			v.add(t.rates[i].told())
		}
	}
	slices.SortFunc(v.Limits, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.Device.Major, b.Device.Major), cmp.Compare(a.Device.Minor, b.Device.Minor), cmp.Compare(a.Key, b.Key))
	})
	return v
}

// told is what was measured of a rate last, and why nothing was.
func (m *measured) told() Limit {
	l := m.Limit
	if why := uncharged(m.expected, m.Key, m.paced); why != "" {
		d := watch.Device{Limit: limit.None.With(m.Key, limit.PerSecond(m.PerSec)), Expected: m.expected}
		_, all := d.Holders(m.Key)
		l.Why, l.Unheld = why, m.expected != nil && !all
	}
	switch {
	case l.State != NotTold:
		l.Why = ""
	case l.Why == "" && m.large:
		l.Why = tooLarge
	case l.Why == "":
		l.Why = notYet
	}
	return l
}

func (v *Verdict) add(l Limit) {
	v.Limits = append(v.Limits, l)
	switch {
	case l.State == NotTold:
	case v.State == NotTold, v.State == Held && l.State == NotHeld:
		v.State, v.Since = l.State, l.Since
	case v.State == l.State && l.Since.Before(v.Since):
		v.Since = l.Since
	}
}

// After is what is told of limits that are in force since a time: what was measured before that was
// measured of other limits, or of none.
func (v Verdict) After(at time.Time) Verdict {
	is := Verdict{State: NotTold}
	for _, l := range v.Limits {
		if l.State != NotTold && l.From.Before(at) {
			l = Limit{Device: l.Device, Node: l.Node, Key: l.Key, PerSec: l.PerSec, State: NotTold, Why: notYet}
		}
		is.add(l)
	}
	return is
}
