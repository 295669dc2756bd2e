package reconcile

import (
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// A target that lacks something has its limits, and is said not to have all: once, and not any more once it has it.
func TestLacks(t *testing.T) {
	lab.Unit(t)
	c, of := NewCore(), web(0, 10)
	of.Lacks = "no volume data"
	if why := c.Decide(begin, of); why != New {
		t.Fatalf("%q", why)
	}
	c.Done(begin, of.Key, nil)
	for i, step := range []struct{ lacks, news string }{{"no volume data", "no volume data"}, {"no volume data", ""}, {"", ""}, {"no volume data", "no volume data"}} {
		if s := c.only(t); i == 0 && s.Finding != of.Lacks {
			t.Errorf("%+v", s)
		}
		of = web(10, 10)
		of.Lacks = step.lacks
		if why := c.Decide(begin, of); why != None {
			t.Errorf("step %d: %q", i, why)
		}
		if s, news := c.only(t), c.News(of.Key); s.State != InForce || s.Finding != step.lacks || news != step.news {
			t.Errorf("step %d: %+v, news %q", i, s, news)
		}
	}
	if why := c.Decide(begin.Add(time.Second), web(5, 10)); why != Drift { // what it has is kept all the same
		t.Errorf("%q", why)
	}
}
