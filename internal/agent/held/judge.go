package held

import (
	"cmp"
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
	targets map[string]target // by key
}

// A target is the group that was measured, and what was measured of each rate.
type target struct {
	group string
	rates map[rate]*measured
}

// NewJudge makes a Judge that knows nothing.
func NewJudge() *Judge { return &Judge{targets: map[string]target{}} }

// A rate is one of a device's four.
type rate struct {
	device blkdev.Number
	key    limit.Key
}

// What was measured of one rate.
type measured struct {
	Limit
	last  reading // of the look before
	begin reading // of the window; zero: the target is not at its limit
}

type reading struct {
	at    time.Time
	total uint64
}

func (r reading) until(now reading) (perSec float64) {
	return float64(now.total-r.total) / now.at.Sub(r.at).Seconds()
}

// Look takes a snapshot, and the targets whose limits are in force. What it knew of others it
// forgets. busy says that a target is near a limit, so that it is worth looking again soon.
func (j *Judge) Look(s *watch.Snapshot, all []Target) (busy bool) {
	groups := make(map[string]*watch.Group, len(s.Groups))
	for _, g := range s.Groups {
		groups[g.Path] = g
	}
	now := make(map[string]target, len(all))
	for _, t := range all {
		g := groups[t.Group]
		if g == nil {
			continue
		}
		was, is := j.targets[t.Key].rates, map[rate]*measured{}
		if j.targets[t.Key].group != t.Group {
			was = nil // another group, of a container of the same name, say: nothing was measured of it
		}
		for _, d := range g.Devices {
			for _, k := range limit.Keys {
				n, bound := d.Limit.Get(k).Number()
				if !bound || n == 0 {
					continue
				}
				m := was[rate{d.Number, k}]
				if m == nil || m.PerSec != n { // another rule: nothing was measured of it
					m = &measured{Limit: Limit{Device: d.Number, Key: k, PerSec: n, State: NotTold}}
				}
				m.Node = d.Node
				busy = m.look(s.At, d, g.Paced) || busy
				is[rate{d.Number, k}] = m
			}
		}
		if len(is) > 0 {
			now[t.Key] = target{t.Group, is}
		}
	}
	j.targets = now
	return busy
}

// look takes one reading.
func (m *measured) look(at time.Time, d watch.Device, paced *watch.Paced) (busy bool) {
	m.Unheld = false
	if m.Why = uncharged(d, m.Key, paced); m.Why != "" {
		_, all := d.Holders(m.Key)
		m.Unheld = d.Expected != nil && !all
	}
	is := reading{at, totalOf(d.Total, m.Key)}
	last := m.last
	m.last = is
	if last.at.IsZero() || !at.After(last.at) || is.total < last.total {
		m.begin = reading{}
		return false
	}
	share := last.until(is) / float64(m.PerSec)
	if share < atLeast || at.Sub(last.at) > gapMost {
		m.begin = reading{}
		return share >= busyLeast
	}
	if m.begin.at.IsZero() {
		m.begin = last
	}
	if over := at.Sub(m.begin.at); over >= WindowLeast {
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
	state := Held
	switch {
	case mean > overMost*float64(m.PerSec):
		state, m.Why = NotHeld, ""
	case m.Why != "":
		m.State, m.Since = NotTold, time.Time{}
		return
	}
	if m.State != state {
		m.Since = m.begin.at
		if state == Held && m.State == NotHeld {
			m.Since = now.at // the windows overlap: until now it was not
		}
	}
	m.State, m.Rate, m.From, m.To = state, mean, m.begin.at, now.at
}

// uncharged says why what the kernel charges to a group is not all that its limit is for; empty: it is.
func uncharged(d watch.Device, k limit.Key, paced *watch.Paced) string {
	e := d.Expected
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

// notYet says why nothing is told of a limit that could be measured.
const notYet = "it was not at its limit long enough for a measurement"

// Of is what is told of a target.
func (j *Judge) Of(key string) Verdict {
	v := Verdict{State: NotTold}
	for _, m := range j.targets[key].rates {
		l := m.Limit
		if l.State == NotTold && l.Why == "" {
			l.Why = notYet
		}
		if l.State != NotTold {
			l.Why = ""
		}
		v.add(l)
	}
	slices.SortFunc(v.Limits, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.Device.Major, b.Device.Major), cmp.Compare(a.Device.Minor, b.Device.Minor), cmp.Compare(a.Key, b.Key))
	})
	return v
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
