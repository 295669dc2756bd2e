package place

import (
	"github.com/weir-io/weir/internal/kernel"
	"github.com/weir-io/weir/internal/limit"
)

// A RootBound is what binds all writes to a device on cgroup v1, whoever's they are: the root
// group's rule, which their writeback is charged to, and the bound of the device's dirty pages,
// which holds the writers back. A volume has both.
type RootBound struct {
	Rule limit.Limit
	BDI  *kernel.BDI // nil: none
}

// Covers reports whether the rule binds all rates of writing that l does, as tightly; where
// l has none, whether it binds any.
func (b RootBound) Covers(l limit.Limit) bool {
	some := false
	for _, k := range []limit.Key{limit.WBPS, limit.WIOPS} {
		most, there := b.Rule.Get(k).Number()
		if n, asked := l.Get(k).Number(); asked && (!there || most > n) {
			return false
		}
		some = some || there
	}
	return some
}

// LeastDirty is what may always wait in memory for a device, in bytes: with less than a few
// requests the disk waits for the writer.
const LeastDirty = 1 << 20

// HoldsWriters reports whether no more waits in memory than the rule lets through in about a
// second, so that who writes is held as the device is.
func (b RootBound) HoldsWriters() bool {
	n, bytes := b.Rule.Get(limit.WBPS).Number()
	return bytes && b.BDI != nil && b.BDI.Strict && b.BDI.MaxBytes <= max(n, LeastDirty*5/4)
}
