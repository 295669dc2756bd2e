package place

import (
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/kernel"
)

func TestRootBound(t *testing.T) {
	write := func(n uint64) limit.Limit { return limit.Limit{}.With(limit.WBPS, limit.PerSecond(n)) }
	ops := limit.Limit{}.With(limit.WIOPS, limit.PerSecond(100))
	strict := func(n uint64) *kernel.BDI { return &kernel.BDI{Strict: true, MaxBytes: n} }
	for _, c := range []struct {
		name          string
		bound         RootBound
		asked         limit.Limit
		covers, holds bool
	}{
		{"a volume", RootBound{write(10e6), strict(5e6)}, write(10e6), true, true},
		{"asked for more", RootBound{write(10e6), strict(5e6)}, write(20e6), true, true},
		{"asked for less", RootBound{write(10e6), strict(5e6)}, write(9e6), false, true},
		{"asked for operations", RootBound{write(10e6), strict(5e6)}, ops, false, true},
		{"asked for nothing", RootBound{write(10e6), strict(5e6)}, limit.Limit{}, true, true},
		{"slow", RootBound{write(1e6), strict(1 << 20)}, write(1e6), true, true},
		{"not strict", RootBound{write(10e6), &kernel.BDI{MaxBytes: 5e6}}, write(10e6), true, false},
		{"too much in memory", RootBound{write(10e6), strict(100e6)}, write(10e6), true, false},
		{"no bound", RootBound{write(10e6), nil}, write(10e6), true, false},
		{"only operations", RootBound{ops, strict(1e6)}, ops, true, false},
		{"no rule", RootBound{limit.Limit{}, strict(5e6)}, write(10e6), false, false},
		{"no rule, asked for nothing", RootBound{limit.Limit{}, strict(5e6)}, limit.Limit{}, false, false},
	} {
		if got := c.bound.Covers(c.asked); got != c.covers {
			t.Errorf("%s: covers %v", c.name, got)
		}
		if got := c.bound.HoldsWriters(); got != c.holds {
			t.Errorf("%s: holds writers %v", c.name, got)
		}
	}
}
