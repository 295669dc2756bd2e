package reconcile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

var begin = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func rate(n uint64) limit.Limit {
	if n == 0 {
		return limit.None
	}
	return limit.None.Overlay(limit.Limit{}.With(limit.WBPS, limit.PerSecond(n)))
}

func web(now, want uint64) Target {
	return Target{Key: "docker:1", Name: "docker:web", Group: "/docker/1", Plan: "small",
		Rates: []Rates{{Device: blkdev.Number{Major: 8}, Now: rate(now), Want: rate(want)}}}
}

func (c *Core) only(t *testing.T) Status {
	t.Helper()
	all, _ := c.Status()
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	return all[0]
}

func TestDecides(t *testing.T) {
	lab.Unit(t)
	c, now := NewCore(), begin
	step := func(of Target, want Why, state State) {
		t.Helper()
		now = now.Add(time.Second)
		if got := c.Decide(now, of); got != want {
			t.Fatalf("%+v: %q, want %q", of, got, want)
		}
		if want != None {
			c.Done(now, of.Key, nil)
		}
		if s := c.only(t); s.State != state {
			t.Fatalf("%+v, want %s", s, state)
		}
	}
	step(web(0, 10), New, InForce)
	since := now
	step(web(10, 10), None, InForce)
	if s := c.only(t); !s.Since.Equal(since) || s.Drifts != 0 {
		t.Errorf("%+v", s)
	}
	step(web(5, 10), Drift, InForce)
	step(web(10, 20), Plan, InForce)
	step(web(20, 20), None, InForce)
	unpaced := web(20, 20)
	unpaced.Unpaced = true
	step(unpaced, Drift, InForce)
	without := web(20, 0)
	without.Plan = NoPlan
	if why := c.Decide(now, without); why != Plan {
		t.Errorf("%q", why)
	}
	if s, counts := c.only(t), c.counts; s.Drifts != 2 || counts != (Counts{Drifts: 2, Repaired: 2}) {
		t.Errorf("%+v %+v", s, counts)
	}
	c.Keep("unit", nil, nil)
	c.only(t)
	c.Keep("docker", nil, nil)
	if all, _ := c.Status(); len(all) != 0 || len(c.groups) != 0 {
		t.Errorf("%+v %v", all, c.groups)
	}
	none := web(0, 0)
	none.Plan = NoPlan
	if c.Decide(now, none) != None || len(c.targets) != 0 {
		t.Error("a target without a plan is remembered")
	}
}

// What was in force when weir came is no drift, and a device that loses its limit is no new plan.
func TestDriftIsOfWhatWasInForce(t *testing.T) {
	lab.Unit(t)
	c := NewCore()
	if why := c.Decide(begin, web(10, 10)); why != None {
		t.Fatal(why)
	}
	more := web(10, 10)
	more.Rates = append(more.Rates, Rates{Device: blkdev.Number{Major: 9}, Now: rate(7), Want: rate(0)})
	if why := c.Decide(begin, more); why != Drift {
		t.Errorf("a limit on another disk: %q", why)
	}
}

// A plan whose new limits somebody else has set already: they are in force since that was seen, not
// since those before them were.
func TestSince(t *testing.T) {
	lab.Unit(t)
	c := NewCore()
	c.Decide(begin, web(10, 10))
	c.Decide(begin.Add(time.Minute), web(10, 10))
	if s := c.only(t); s.State != InForce || !s.Since.Equal(begin) {
		t.Errorf("%+v", s)
	}
	c.Decide(begin.Add(time.Hour), web(5, 5))
	if s := c.only(t); s.State != InForce || !s.Since.Equal(begin.Add(time.Hour)) {
		t.Errorf("%+v", s)
	}
}

func TestTriesAgain(t *testing.T) {
	lab.Unit(t)
	c, now := NewCore(), begin
	wait := time.Second
	for i := range 12 {
		want := Again
		if i == 0 {
			want = New
		}
		if got := c.Decide(now, web(0, 10)); got != want {
			t.Fatalf("attempt %d: %q", i, got)
		}
		c.Done(now, "docker:1", errors.New("no such device"))
		s := c.only(t)
		if s.State != Failed || s.Finding != "no such device" || s.Next.Sub(now) != wait || c.Due("docker") != s.Next || !c.Due("unit").IsZero() {
			t.Fatalf("%+v, want to wait %v", s, wait)
		}
		if got := c.Decide(s.Next.Add(-1), web(0, 10)); got != None {
			t.Fatalf("too early: %q", got)
		}
		if i == 5 { // another plan does not wait
			now = now.Add(time.Millisecond)
			if got := c.Decide(now, web(0, 99)); got != Plan {
				t.Fatalf("another plan: %q", got)
			}
			c.Done(now, "docker:1", errors.New("no such device"))
			if got := c.Decide(c.only(t).Next, web(0, 10)); got != Plan {
				t.Fatalf("the first plan: %q", got)
			}
			c.Done(now, "docker:1", errors.New("no such device"))
			now, wait = c.only(t).Next, 2*time.Second
			continue
		}
		now, wait = s.Next, min(2*wait, retryMost)
	}
	if c.Decide(now, web(0, 10)) != Again {
		t.Fatal("not again")
	}
	c.Done(now, "docker:1", nil)
	if s := c.only(t); s.State != InForce || s.Finding != "" || !c.Due("docker").IsZero() || c.counts.Failures != 14 {
		t.Errorf("%+v", s)
	}
}

// A target that cannot be looked at is looked at again, without an event.
func TestLooksAgain(t *testing.T) {
	lab.Unit(t)
	c, bad := NewCore(), web(0, 10)
	bad.Err = errors.New("io.max makes no sense")
	for i, wait := range []time.Duration{1, 2, 4, 8} {
		now := begin.Add(time.Duration(i) * time.Hour)
		if why := c.Decide(now, bad); why != None || c.Due("docker") != now.Add(wait*time.Second) {
			t.Errorf("%q, %v", why, c.only(t))
		}
		if c.Decide(now.Add(time.Millisecond), bad); c.Due("docker") != now.Add(wait*time.Second) {
			t.Error("an event puts it off")
		}
	}
	if why := c.Decide(begin.Add(9*time.Hour), web(0, 10)); why != Again {
		t.Error(why)
	}
}

// An owner that changes the limits twice a second for a minute is left alone, and no other one.
func TestGivesWay(t *testing.T) {
	lab.Unit(t)
	for _, f := range []struct {
		every time.Duration
		fight bool
	}{{500 * time.Millisecond, true}, {100 * time.Millisecond, true}, {510 * time.Millisecond, false}, {10 * time.Second, false}} {
		c, now := NewCore(), begin
		c.Decide(now, web(10, 10))
		changes := 0
		for ; now.Before(begin.Add(5 * time.Minute)); now = now.Add(f.every) {
			changes++
			if c.Decide(now, web(1, 10)) != Drift {
				break
			}
			c.Done(now, "docker:1", nil)
		}
		s := c.only(t)
		if !f.fight {
			if s.State != InForce || c.counts.Fights != 0 || s.Drifts != uint64(changes) {
				t.Errorf("every %v: %+v", f.every, s)
			}
			continue
		}
		if s.State != Left || s.Finding == "" || changes != FightDrifts || s.Next != now.Add(RestTime) || c.counts.Fights != 1 {
			t.Fatalf("every %v: %+v after %d", f.every, s, changes)
		}
		if why := c.Decide(now.Add(RestTime-1), web(1, 10)); why != None {
			t.Errorf("%q before the rest is over", why)
		}
		if why := c.Decide(s.Next, web(1, 10)); why != Again {
			t.Errorf("%q after the rest", why)
		}
		c.Done(s.Next, "docker:1", nil)
		if s := c.only(t); s.State != InForce {
			t.Errorf("%+v", s)
		}
	}
}

// What keeps a target from its plan is told once, and again when it is another reason.
func TestNews(t *testing.T) {
	lab.Unit(t)
	c, of := NewCore(), web(10, 10)
	for i, step := range []struct{ err, news string }{{"", ""}, {"no disk", "no disk"}, {"no disk", ""}, {"no rights", "no rights"}, {"", ""}, {"no rights", "no rights"}} {
		of.Err = nil
		if step.err != "" {
			of.Err = errors.New(step.err)
		}
		c.Decide(begin, of)
		if got := c.News(of.Key); got != step.news {
			t.Errorf("step %d: %q, want %q", i, got, step.news)
		}
	}
	if got := c.News("docker:unknown"); got != "" {
		t.Error(got)
	}
}

func TestOneGroupHasOnePlan(t *testing.T) {
	lab.Unit(t)
	c := NewCore()
	unit := web(10, 20)
	unit.Key, unit.Name = "unit:docker-1.scope", "unit:docker-1.scope"
	if c.Decide(begin, web(0, 10)) != New {
		t.Fatal("not new")
	}
	c.Done(begin, "docker:1", nil)
	if why := c.Decide(begin, unit); why != None || c.targets[unit.Key].State != Failed {
		t.Errorf("%q %+v", why, c.targets[unit.Key])
	}
	c.Keep("docker", nil, nil)
	if why := c.Decide(begin, unit); why != Again {
		t.Errorf("after the first has ended: %q", why)
	}
}

// An earlier kind takes the group over, whichever is looked at first.
func TestAnEarlierKindTakesTheGroup(t *testing.T) {
	lab.Unit(t)
	c := NewCore("docker", "unit")
	unit := web(0, 20)
	unit.Key, unit.Name = "unit:docker-1.scope", "unit:docker-1.scope"
	if why := c.Decide(begin, unit); why != New {
		t.Fatal(why)
	}
	if why := c.Decide(begin, web(0, 10)); why != New {
		t.Fatalf("%q", why)
	}
	if s := c.targets[unit.Key]; s.State != Failed || !strings.Contains(s.Finding, "docker:web") || c.News(unit.Key) == "" || c.Due("unit").IsZero() {
		t.Errorf("%+v", s)
	}
	c.Done(begin, unit.Key, nil) // it was on its way
	c.Done(begin, "docker:1", nil)
	unit.Rates[0].Now = rate(10)
	if why := c.Decide(begin.Add(time.Minute), unit); why != None || c.targets[unit.Key].State != Failed {
		t.Errorf("%q %+v", why, c.targets[unit.Key])
	}
	if why := c.Decide(begin, web(10, 10)); why != None || c.targets["docker:1"].State != InForce {
		t.Errorf("%q %+v", why, c.targets["docker:1"])
	}
}

func TestEndedIsForgotten(t *testing.T) {
	lab.Unit(t)
	c, whole := NewCore(), strings.Repeat("0123456789abcdef", 4)
	for _, key := range []string{"docker:" + whole, "unit:a.service", "unit:a.service2"} {
		of := web(0, 10)
		of.Key, of.Group = key, "/"+key
		c.Decide(begin, of)
	}
	for _, name := range []string{"0123", "unit", "a.service2"} {
		c.Ended("docker", name)
	}
	c.Ended("unit", "a.service")
	if len(c.targets) != 2 || c.targets["unit:a.service"] != nil || len(c.groups) != 2 {
		t.Errorf("%v %v", c.targets, c.groups)
	}
	c.Ended("docker", whole[:12])
	if len(c.targets) != 1 {
		t.Errorf("%v", c.targets)
	}
	// Of pods and of containers in them the tree knows the id alone, which need not be part of a key.
	for key, id := range map[string]string{"pod:prod/web-0": "8f14e45f-ceea", "pod:prod/web-1": "c9f0f895-fb98", "containerd:k8s.io/" + whole: whole} {
		of := web(0, 10)
		of.Key, of.ID, of.Group = key, id, "/"+key
		c.Decide(begin, of)
	}
	c.Ended("pod", "8f14e45f-ceea")
	c.Keep("containerd", []string{whole}, nil)
	if len(c.targets) != 2 || c.targets["pod:prod/web-1"] == nil {
		t.Errorf("%v", c.targets)
	}
}

// Whatever happens, one who does as the Core says comes to what is wanted, once the others stop.
func TestComesToWhatIsWanted(t *testing.T) {
	lab.Unit(t)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		c, clock := NewCore(), begin
		now, want := [4]uint64{}, [4]uint64{}
		look := func(i int, fails bool) {
			of := Target{Key: fmt.Sprint("docker:", i), Plan: "small", Group: fmt.Sprint("/", i), Rates: []Rates{{Device: blkdev.Number{Major: 8}, Now: rate(now[i]), Want: rate(want[i])}}}
			switch why := c.Decide(clock, of); {
			case why == None:
			case fails:
				c.Done(clock, of.Key, errors.New("no"))
			default:
				now[i] = want[i]
				c.Done(clock, of.Key, nil)
			}
		}
		for range 2000 {
			i := r.IntN(4)
			clock = clock.Add(time.Duration(r.IntN(int(time.Second))))
			switch r.IntN(6) {
			case 0:
				want[i] = uint64(1 + r.IntN(3))
			case 1, 2:
				now[i] = uint64(r.IntN(4))
			}
			look(i, r.IntN(4) == 0)
		}
		for i := range 4 {
			clock = clock.Add(RestTime + retryMost)
			look(i, false)
		}
		if now != want {
			t.Fatalf("seed %d: %v, want %v", seed, now, want)
		}
		all, counts := c.Status()
		for _, s := range all {
			if s.State != InForce {
				t.Errorf("seed %d: %+v", seed, s)
			}
		}
		if counts.Repaired > counts.Drifts {
			t.Errorf("%+v", counts)
		}
	}
}

// A target that has no plan any more, and whose limits are taken away, is not one of those in force.
func TestATargetWithoutAPlanIsForgotten(t *testing.T) {
	lab.Unit(t)
	c, of := NewCore(), web(0, 10)
	c.Decide(begin, of)
	c.Done(begin, of.Key, nil)
	of.Plan, of.Rates = NoPlan, web(10, 0).Rates
	if why := c.Decide(begin, of); why != Plan {
		t.Fatal(why)
	}
	c.Done(begin, of.Key, errors.New("no"))
	if s := c.only(t); s.State != Failed {
		t.Errorf("%+v", s)
	}
	if why := c.Decide(begin.Add(time.Hour), of); why != Again {
		t.Fatal(why)
	}
	c.Done(begin, of.Key, nil)
	if all, _ := c.Status(); len(all) != 0 || len(c.groups) != 0 {
		t.Errorf("%+v %v", all, c.groups)
	}
}
