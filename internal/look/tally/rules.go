package tally

import (
	"slices"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// rulesLook is how often the rules are read.
const rulesLook = 500 * time.Millisecond

// rules notes which limits are not what they were at the start. A group that is gone had them to its end.
func (t *Tally) rules(at time.Time) {
	if t.ruled.IsZero() {
		return
	}
	t.ruled = at
	now, err := t.group.Rules()
	if err != nil {
		return
	}
	for i := range t.sum.Devices {
		d := &t.sum.Devices[i]
		is, was := on(now, d.Device), d.began
		d.rereads = d.rereads || differ(is.RBPS, was.RBPS) || differ(is.RIOPS, was.RIOPS)
		d.rewrites = d.rewrites || differ(is.WBPS, was.WBPS) || differ(is.WIOPS, was.WIOPS)
	}
}

// differ reports whether two rates bound differently: one that is unset bounds nothing either.
func differ(a, b limit.Rate) bool {
	n, bounded := a.Number()
	m, too := b.Number()
	return bounded != too || bounded && n != m
}

// on is the rule on a device.
func on(rules []cgroupfs.Rule, n blkdev.Number) limit.Limit {
	if i := slices.IndexFunc(rules, func(r cgroupfs.Rule) bool { return r.Device == n }); i >= 0 {
		return rules[i].Limit
	}
	return limit.Limit{}
}
