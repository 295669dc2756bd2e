package reconcile

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// A target that has no plan any more, and could not be looked at, keeps its group from no other.
func TestWithoutAPlanNoGroupIsKept(t *testing.T) {
	lab.Unit(t)
	c := NewCore()
	c.Decide(begin, web(0, 10))
	c.Done(begin, "docker:1", nil)
	left := web(10, 10)
	left.Plan, left.Err = NoPlan, errors.New("no answer")
	if why := c.Decide(begin, left); why != None || c.targets[left.Key].State != Failed {
		t.Errorf("%q %+v", why, c.targets[left.Key])
	}
	unit := web(10, 20)
	unit.Key, unit.Name = "unit:docker-1.scope", "unit:docker-1.scope"
	if why := c.Decide(begin, unit); why != New {
		t.Errorf("%q %+v", why, c.targets[unit.Key])
	}
}

// Once the target has no plan any more that had a group, the one that was denied it is tried at once, and not minutes later.
func TestAFreedGroup(t *testing.T) {
	lab.Unit(t)
	c := NewCore("docker", "unit")
	unit := web(10, 10)
	unit.Key, unit.Name = "unit:docker-1.scope", "unit:docker-1.scope"
	c.Decide(begin, unit)
	c.Decide(begin, web(10, 20))
	c.Done(begin, "docker:1", nil)
	unit = web(20, 10)
	unit.Key, unit.Name = "unit:docker-1.scope", "unit:docker-1.scope"
	now := begin
	for range 8 { // each attempt that fails has the next one come later
		now = now.Add(time.Hour)
		if why := c.Decide(now, unit); why != None || c.targets[unit.Key].State != Failed {
			t.Fatalf("%q %+v", why, c.targets[unit.Key])
		}
	}
	if kinds := c.Freed(); len(kinds) != 0 {
		t.Errorf("%q", kinds)
	}
	c.Keep("docker", nil, nil)
	if kinds := c.Freed(); !slices.Equal(kinds, []string{"unit"}) || len(c.Freed()) != 0 {
		t.Errorf("%q", kinds)
	}
	if why := c.Decide(now.Add(time.Millisecond), unit); why == None {
		t.Errorf("%q %+v", why, c.targets[unit.Key])
	}
}

// The source of the target that was denied the group is told.
func TestAFreedGroupIsTold(t *testing.T) {
	unit := newStandIn("unit", "web")
	unit.with, unit.late = "docker", 100*time.Millisecond
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		time.Sleep(time.Hour)
		d, u := of("docker"), of("unit")
		d.inForce(t)
		u.set(func() {
			if len(u.puts) != 0 {
				t.Errorf("it has been set: %v", u.puts)
			}
		})
		d.set(func() { delete(d.now, "web") })
		d.changed("web")
		time.Sleep(time.Second)
		u.inForce(t)
	}, newStandIn("docker", "web"), unit)
}

// A target that could not be looked at, or must not be limited, while another one has its group is tried at once when that one
// leaves the group: the group may have been the reason.
func TestAFreedGroupOfATargetThatFails(t *testing.T) {
	lab.Unit(t)
	c := NewCore("docker", "unit")
	c.Decide(begin, web(0, 10))
	c.Done(begin, "docker:1", nil)
	unit := web(10, 20)
	unit.Key, unit.Name, unit.Err = "unit:docker-1.scope", "unit:docker-1.scope", errors.New("it is in the same cgroup")
	now := begin
	for range 8 {
		now = now.Add(time.Hour)
		c.Decide(now, unit)
	}
	c.Keep("docker", nil, nil)
	if kinds := c.Freed(); !slices.Equal(kinds, []string{"unit"}) {
		t.Errorf("%q", kinds)
	}
}
