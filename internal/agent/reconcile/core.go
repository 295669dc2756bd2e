package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/limit"
)

const (
	// FightDrifts in FightTime are a fight: two changes a second for a minute.
	FightDrifts = 120
	// FightTime is how long a fight lasts until weir gives way.
	FightTime = time.Minute
	// RestTime is how long a target is left alone then.
	RestTime = 10 * time.Minute
	// retryLeast and retryMost bound the time between attempts that fail, which doubles.
	retryLeast = time.Second
	retryMost  = 5 * time.Minute
)

// Counts are what a Core has counted since it was made.
type Counts struct {
	Drifts   uint64 // limits in force that somebody has changed
	Repaired uint64 // of those, how many weir has put back
	Fights   uint64 // how often weir has given way
	Failures uint64 // attempts that failed
	Missed   uint64 // what only a comparison found, and no event told of
	Applied  Applied
}

// A Core decides what is to be done. It has no clock: who asks says what time it is. Its methods
// may be called from several goroutines; none waits.
type Core struct {
	kinds []string // where two name the same group, the first counts

	mu      sync.Mutex
	targets map[string]*entry
	groups  map[string]string // path of a group → key of the target whose plan it has
	waiting map[string]*entry // that are to be tried again, by key
	freed   map[string]bool   // kinds with targets that were refused a group which nobody has any more
	counts  Counts
}

// An entry is what a Core remembers of a target.
type entry struct {
	Status
	id     string // of the target
	group  string
	denied bool   // another target had its group
	want   string // what it was to have when it was last in force; empty: never
	tries  int    // attempts in a row that failed
	drifts []time.Time
	doing  Why
	lacks  string // Target.Lacks
	told   string // the finding that News has told
}

// NewCore makes a Core that knows nothing. Where two kinds name the same group, the one that comes
// first in kinds counts; of others, the one that is looked at first.
func NewCore(kinds ...string) *Core {
	return &Core{kinds: kinds, targets: map[string]*entry{}, groups: map[string]string{}, waiting: map[string]*entry{}, freed: map[string]bool{}}
}

// Decide says whether something is to be done for a target, and why. Whoever does it calls Done
// after that.
func (c *Core) Decide(now time.Time, t Target) Why {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.targets[t.Key]
	if e == nil {
		if t.Plan == NoPlan && !t.Differs() && t.Err == nil {
			return None // nothing to remember
		}
		e = c.learn(now, t.Key)
	}
	e.Name, e.Plan, e.Group, e.id, e.lacks = t.Name, t.Plan, t.Group, t.ID, t.Lacks
	if t.Err == nil {
		t.Err = c.claim(now, e, t)
	} else {
		e.denied = c.isOthers(t) // that may be why
	}
	want := t.want()
	switch {
	case t.Err != nil:
		if t.Plan == NoPlan {
			c.release(e) // another target can have the group
		}
		e.turn(now, Failed, t.Err.Error())
		if !now.Before(e.Next) {
			c.again(now, e)
		}
		return None
	case !t.Differs():
		e.turn(now, InForce, t.Lacks)
		if e.want != want {
			e.Since = now // of these limits: others may have set them already
		}
		e.want, e.tries = want, 0
		c.plan(e, time.Time{})
		return None
	case now.Before(e.Next) && (e.State != Failed || e.want == want): // another plan is tried at once
		return None
	}
	c.plan(e, time.Time{})
	e.doing = New
	switch {
	case t.Begun: // somebody may have looked before that was noted: nobody has changed anything
	case e.State == InForce && e.want == want:
		if c.fights(now, e) {
			return None
		}
		e.doing = Drift
	case e.want != "" && e.want != want:
		e.doing, e.tries = Plan, 0
	case e.tries > 0 || e.State == Left:
		e.doing = Again
	}
	if e.State != Failed {
		e.turn(now, Differs, "its limits are not those of the plan yet")
	}
	e.want = want
	return e.doing
}

// claim gives a group to one target. Two kinds can name the same group: an earlier kind takes it over.
func (c *Core) claim(now time.Time, e *entry, t Target) error {
	if e.group != t.Group || t.Plan == NoPlan {
		c.release(e)
	}
	if e.denied = false; t.Group == "" || t.Plan == NoPlan {
		return nil
	}
	if by := c.groups[t.Group]; by != "" && by != t.Key {
		other := c.targets[by]
		if !c.before(t.Key, by) {
			e.denied = true
			return errSameGroup(other.Name, t.Group)
		}
		c.release(other)
		other.denied = true
		other.turn(now, Failed, errSameGroup(t.Name, t.Group).Error())
		c.again(now, other)
	}
	c.groups[t.Group], e.group = t.Key, t.Group
	return nil
}

// before reports whether a target's kind comes before another's.
func (c *Core) before(key, other string) bool {
	at := func(key string) int {
		kind, _, _ := strings.Cut(key, ":")
		if i := slices.Index(c.kinds, kind); i >= 0 {
			return i
		}
		return len(c.kinds)
	}
	return at(key) < at(other)
}

func errSameGroup(has, group string) error {
	return fmt.Errorf("it is in the same cgroup as %s (%s), which has a plan; write an assignment for one of them only", has, group)
}

// release takes a target's group from it. Targets that were denied this group are tried again at once: see Freed.
func (c *Core) release(e *entry) {
	if e.group != "" && c.groups[e.group] == e.Key {
		delete(c.groups, e.group)
		for key, other := range c.waiting {
			if other != e && other.denied && other.Group == e.group {
				c.plan(other, time.Time{})
				kind, _, _ := strings.Cut(key, ":")
				c.freed[kind] = true
			}
		}
	}
	e.group = ""
}

// Freed returns the kinds of targets that can have a group now which another target had, once.
func (c *Core) Freed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := slices.Sorted(maps.Keys(c.freed))
	clear(c.freed)
	return kinds
}

// fights counts a change of somebody else's, and gives way to one who does not stop.
func (c *Core) fights(now time.Time, e *entry) bool {
	c.counts.Drifts++
	e.Drifts++
	e.drifts = append(slices.DeleteFunc(e.drifts, func(at time.Time) bool { return now.Sub(at) > FightTime }), now)
	if len(e.drifts) < FightDrifts {
		return false
	}
	c.counts.Fights++
	e.drifts = nil
	e.turn(now, Left, fmt.Sprintf("something has changed its limits %d times within %v; weir leaves it alone for %v. Find the program that writes them, or take the target out of the plans", FightDrifts, FightTime, RestTime))
	c.plan(e, now.Add(RestTime))
	return true
}

// Limits reports whether a group has the limits of a plan, or is to have them.
func (c *Core) Limits(group string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[group] != ""
}

// Has reports whether limits are in force in a group, and are these, by their Now: whoever has written them has changed
// nothing.
func (c *Core) Has(group string, now []Rates) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.targets[c.groups[group]]
	if e == nil || e.State != InForce {
		return false
	}
	is := Target{Plan: e.Plan}
	for _, r := range now {
		is.Rates = append(is.Rates, Rates{Device: r.Device, Want: r.Now})
	}
	return is.want() == e.want
}

// Done takes the result of what Decide has asked for.
func (c *Core) Done(now time.Time, key string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.targets[key]
	if e == nil {
		return
	}
	if err == nil {
		if e.doing == Drift {
			c.counts.Repaired++
		}
		if e.Plan == NoPlan { // nothing of it is left to be kept
			c.forget(key)
			return
		}
		e.turn(now, InForce, e.lacks)
		e.tries = 0
		return
	}
	c.counts.Failures++
	e.turn(now, Failed, err.Error())
	c.again(now, e)
}

// again sets the time of the next attempt.
func (c *Core) again(now time.Time, e *entry) {
	e.tries++
	c.plan(e, now.Add(min(retryLeast<<min(e.tries-1, 16), retryMost)))
}

// News is why a target's limits, or some of them, are not as planned, if weir can do nothing about it now and that is
// news; empty: otherwise.
func (c *Core) News(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.targets[key]
	if e == nil || e.State == Differs || e.Finding == e.told {
		return ""
	}
	e.told = e.Finding
	return e.told
}

// LeavesAlone reports whether a target is left alone.
func (c *Core) LeavesAlone(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.targets[key]
	return e != nil && e.State == Left
}

// DriftsOf is how often somebody has changed a target's limits.
func (c *Core) DriftsOf(key string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.targets[key]; e != nil {
		return e.Drifts
	}
	return 0
}

// Missed counts what a comparison found and no event told of.
func (c *Core) Missed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Missed++
}

// Keep forgets the targets of a kind that are not among keys, because they have ended: of those that
// names name, as Ended takes them, or of all if names is nil.
func (c *Core) Keep(kind string, names, keys []string) {
	there := make(map[string]bool, len(keys)) // of thousands
	for _, key := range keys {
		there[key] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.targets {
		of, its, _ := strings.Cut(key, ":")
		if of != kind || there[key] {
			continue
		}
		if names == nil || slices.ContainsFunc(names, func(name string) bool { return isNamed(its, name) || e.id != "" && isNamed(e.id, name) }) {
			c.forget(key)
		}
	}
}

// Ended forgets a target that has ended, so that the next one of its name is a new one. The name
// may be the beginning of a container's id.
func (c *Core) Ended(kind, name string) { c.Keep(kind, []string{name}, nil) }

// Due is when a target of a kind is to be tried again; zero: none is.
func (c *Core) Due(kind string) (due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.waiting {
		if strings.HasPrefix(key, kind+":") && (due.IsZero() || e.Next.Before(due)) {
			due = e.Next
		}
	}
	return due
}

// Status lists all targets, by their names, and the counts.
func (c *Core) Status() ([]Status, Counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Status, 0, len(c.targets))
	for _, e := range c.targets {
		all = append(all, e.Status)
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key)) })
	return all, c.counts
}

// Counts are what was counted.
func (c *Core) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// InForce lists the targets whose limits are in force, in no order.
func (c *Core) InForce() (all []Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.targets {
		if e.State == InForce && e.Plan != NoPlan {
			all = append(all, e.Status)
		}
	}
	return all
}

func (e *entry) turn(now time.Time, to State, finding string) {
	if e.State != to {
		e.State, e.Since = to, now
	}
	if to == InForce && finding == "" {
		e.told = ""
	}
	e.Finding = finding
}

// Differs reports whether a target has not what it is to have.
func (t Target) Differs() bool {
	return t.Unpaced || slices.ContainsFunc(t.Rates, func(r Rates) bool {
		return slices.ContainsFunc(limit.Keys[:], func(k limit.Key) bool { return r.Now.Get(k) != r.Want.Get(k) })
	})
}

// want spells what a target is to have. Devices that it is to have no limit on do not count: they
// are named only as long as they have one.
func (t Target) want() string {
	var all []string
	for _, r := range t.Rates {
		if r.Want.Bounds() {
			all = append(all, fmt.Sprintf("%v %v", r.Device, r.Want))
		}
	}
	slices.Sort(all)
	return t.Plan + "\n" + strings.Join(all, "\n")
}
