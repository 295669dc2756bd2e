package trace

import (
	"strings"
	"testing"
	"time"
)

// seen is writes of 1 ms each, and some that were not fully seen.
func seen(count, unseen uint64, least time.Duration) Snapshot {
	var s Snapshot
	s.After = 10 * time.Second
	s.Ops[Write].Histogram[bucketOf(uint64(time.Millisecond))] = Cell{Count: count, Parts: Split{BlkThrottle: count * uint64(time.Millisecond)}}
	s.Ops[Write].Unseen = Unseen{unseen, least}
	return s
}

// What was not fully seen is in no share, and a verdict says when it is too much.
func TestUnseen(t *testing.T) {
	for _, c := range []struct {
		name    string
		now     Snapshot
		partial bool
	}{
		{"all seen", seen(1000, 0, 0), false},
		{"few", seen(1000, 10, 10*time.Millisecond), false},
		{"many", seen(1000, 100, 0), true},
		{"few and long", seen(1000, 10, time.Second), true},
		{"nothing else", seen(0, 3, 0), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.now.Report(&Snapshot{}, []Kind{Write})
			if len(r.Ops) != 1 {
				t.Fatalf("operations %+v", r.Ops)
			}
			o, want := r.Ops[0], c.now.Ops[Write]
			if o.Unseen != want.Unseen {
				t.Errorf("not fully seen %+v, want %+v", o.Unseen, want.Unseen)
			}
			if o.Count != want.Histogram.Count() || o.Sum() != time.Duration(o.Count)*time.Millisecond {
				t.Errorf("%d operations of %s", o.Count, o.Sum())
			}
			if o.Verdict.Partial != c.partial {
				t.Errorf("partial %v, want %v", o.Verdict.Partial, c.partial)
			}
			for _, a := range r.Advise() {
				if strings.Contains(a.Text, "fully traced") != c.partial {
					t.Errorf("advice %q", a.Text)
				}
			}
		})
	}
}
