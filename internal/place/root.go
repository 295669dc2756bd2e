package place

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/kernel"
)

// A RootBound is what limits all writes to a device on cgroup v1, of all groups: the root
// group's rule, to which their writeback is charged, and the bound on the device's dirty pages,
// which holds the writers back. A volume has both.
type RootBound struct {
	Rule limit.Limit
	BDI  *kernel.BDI // nil: none, or the rule has no bytes
}

// Covers reports whether the rule limits all write rates of l as strictly; if l has none,
// whether it limits any.
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

// LeastDirty is how much may always wait in memory for a device, in bytes: with less than a few
// requests the disk would wait for the writer.
const LeastDirty = 1 << 20

// HoldsWriters reports whether no more waits in memory than the rule lets through in about a
// second, so that writers are held as the device is.
func (b RootBound) HoldsWriters() bool {
	n, bytes := b.Rule.Get(limit.WBPS).Number()
	return bytes && b.BDI != nil && b.BDI.Strict && b.BDI.MaxBytes <= max(n, LeastDirty*5/4)
}
