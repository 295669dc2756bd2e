package reconcile

import (
	"testing"
	"time"
)

func TestApplied(t *testing.T) {
	c := NewCore()
	for _, took := range []time.Duration{0, time.Millisecond, time.Millisecond + 1, 31 * time.Second} {
		c.Applied(took)
	}
	_, counts := c.Status()
	if a := counts.Applied; a.Count != 4 || a.Sum != 31*time.Second+2*time.Millisecond+1 || a.Within[0] != 2 || a.Within[1] != 1 || a.Within[len(a.Within)-1] != 0 || len(ApplyBounds()) != len(a.Within) {
		t.Errorf("%+v", a)
	}
}
