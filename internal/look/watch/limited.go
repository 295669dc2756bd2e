package watch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A Usage is a rule with what the group does under it.
type Usage struct {
	Device blkdev.Number
	Limit  limit.Limit
	Rates  Rates
	// Counted is false if the controller has no counter for the device: nothing has
	// been charged, or (v1) no group ever had a rule on it.
	Counted bool
}

// Rates are per second, over the window.
type Rates struct {
	RBPS  float64 `json:"rbps"`
	WBPS  float64 `json:"wbps"`
	RIOPS float64 `json:"riops"`
	WIOPS float64 `json:"wiops"`
}

// Get returns one of the four.
func (r Rates) Get(k limit.Key) float64 {
	return [...]float64{limit.RBPS: r.RBPS, limit.WBPS: r.WBPS, limit.RIOPS: r.RIOPS, limit.WIOPS: r.WIOPS}[k]
}

// A Limited is a group with its rules.
type Limited struct {
	Group  cgroupfs.Group
	Usages []Usage
	Unread error           // why its counters cannot be read
	before []cgroupfs.Stat // the first reading, and when it was
	at     time.Time
}

// Find returns the groups below top, it included, that have at least one rule. A
// group that cannot have rules, such as v2's root, has none. One below top that cannot be read is left
// out with those below it: unread has an error for each.
func Find(top cgroupfs.Group) (found []Limited, unread []error, err error) {
	err = top.Explore(func(g cgroupfs.Group) error {
		never, err := g.NeverHadRules()
		if never {
			return nil
		}
		var l Limited
		if err == nil {
			l, err = Of(g)
		}
		if err == nil && len(l.Usages) > 0 {
			found = append(found, l)
		}
		if fault.IsUnsupported(err) {
			return nil
		}
		return err
	}, func(_ cgroupfs.Group, err error) { unread = append(unread, err) })
	return found, unread, err
}

// Of reads the rules of one group.
func Of(g cgroupfs.Group) (Limited, error) {
	rules, err := g.RulesIfAny()
	if err != nil {
		return Limited{}, err
	}
	l := Limited{Group: g}
	for _, r := range rules {
		l.Usages = append(l.Usages, Usage{Device: r.Device, Limit: r.Limit})
	}
	return l, nil
}

// Measure waits for the window and fills in the rates of all groups. A group that
// ends meanwhile keeps no rates, nor does one whose counters cannot be read, which has the error.
func Measure(ctx context.Context, groups []Limited, window time.Duration) error {
	began := time.Now()
	for i := range groups {
		groups[i].before = groups[i].stats()
		groups[i].at = time.Now()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(window - time.Since(began)):
	}
	for i := range groups {
		after := groups[i].stats()
		if groups[i].Unread == nil {
			groups[i].rate(after, time.Since(groups[i].at).Seconds())
		}
	}
	return nil
}

// stats reads the counters; none of a group that has ended.
func (l *Limited) stats() []cgroupfs.Stat {
	stats, err := l.Group.Stats()
	if err != nil && !cgroupfs.IsGone(err) {
		l.Unread = fmt.Errorf("read counters: %w", err)
	}
	return stats
}

func (l *Limited) rate(after []cgroupfs.Stat, seconds float64) {
	for i := range l.Usages {
		u := &l.Usages[i]
		now, counted := of(after, u.Device)
		was, _ := of(l.before, u.Device)
		u.Counted = counted
		u.Rates = Rates{
			RBPS:  perSecond(now.ReadBytes, was.ReadBytes, seconds),
			WBPS:  perSecond(now.WrittenBytes, was.WrittenBytes, seconds),
			RIOPS: perSecond(now.Reads, was.Reads, seconds),
			WIOPS: perSecond(now.Writes, was.Writes, seconds),
		}
	}
}

func of(stats []cgroupfs.Stat, dev blkdev.Number) (cgroupfs.Stat, bool) {
	if i := slices.IndexFunc(stats, func(s cgroupfs.Stat) bool { return s.Device == dev }); i >= 0 {
		return stats[i], true
	}
	return cgroupfs.Stat{}, false
}

func perSecond(now, was uint64, seconds float64) float64 {
	if now < was {
		return 0 // the counters were reset
	}
	return float64(now-was) / seconds
}
