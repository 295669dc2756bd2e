package reconcile

import (
	"cmp"
	"strings"
	"time"
)

// The ids of containers have idWhole characters; idLeast of them are enough to tell them apart.
const (
	idWhole = 64
	idLeast = 12
)

// learn makes the entry of a target that was not known.
func (c *Core) learn(now time.Time, key string) *entry {
	e := &entry{Status: Status{Key: key, State: Differs, Since: now}}
	c.targets[key] = e
	return e
}

// forget forgets a target.
func (c *Core) forget(key string) {
	e := c.targets[key]
	if e == nil {
		return
	}
	c.release(e)
	delete(c.targets, key)
	delete(c.waiting, key)
}

// isOthers reports whether another target has the group that a target is to have.
func (c *Core) isOthers(t Target) bool {
	by := c.groups[t.Group]
	return t.Plan != NoPlan && by != "" && by != t.Key
}

// A limited group has the limits of a target in force.
type limited struct{ kind, name, group string }

// limited are the groups with limits in force, and the names by which their targets are looked at.
func (c *Core) limited() (all []limited) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for group, key := range c.groups {
		if e := c.targets[key]; e != nil && e.State == InForce {
			kind, name, _ := strings.Cut(key, ":")
			all = append(all, limited{kind, cmp.Or(e.id, name), group})
		}
	}
	return all
}

func isNamed(its, name string) bool {
	return its == name || len(name) >= idLeast && len(its) == idWhole && strings.HasPrefix(its, name)
}

// due are the names of the targets of a kind that are to be tried again by now. whole is true where a look at these alone does
// not do: what weir has set for a target that has no plan any more is found among its records.
func (c *Core) due(kind string, now time.Time) (names []string, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.waiting {
		name, is := strings.CutPrefix(key, kind+":")
		if is && !now.Before(e.Next) {
			names, whole = append(names, name), whole || e.Plan == NoPlan
		}
	}
	return names, whole || len(names) > namesMost
}

// plan says when a target is tried again; zero: on the next change.
func (c *Core) plan(e *entry, at time.Time) {
	if e.Next = at; at.IsZero() {
		delete(c.waiting, e.Key)
	} else {
		c.waiting[e.Key] = e
	}
}
