package trace

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
)

const mib = 1 << 20

// reportOf is one in which a part has most of the time of writes.
func reportOf(part Part, e Evidence, behind ...BehindReport) *Report {
	r := &Report{Took: 10 * time.Second, Evidence: e, Behind: behind}
	r.Ops = []OpsReport{{Kind: Write, Verdict: Verdict{All: true, Causes: []Cause{{part, 0.9}}}}}
	r.Ops[0].Split[part] = 5e9
	return r
}

// What a cause is said to mean is what was read beside it.
func TestAdvise(t *testing.T) {
	atLimit := &Memory{Group: "/web", Max: 64 * mib, Used: 63 * mib, Cache: 60 * mib, Dirty: 5 * mib}
	unreached := &Dirty{Now: 3 * mib, most: 4 * mib, BackgroundAt: 1000 * mib, LimitAt: 2000 * mib}
	reached := &Dirty{Now: 3 * mib, Writeback: 1600 * mib, most: 1602 * mib, BackgroundAt: 1000 * mib, LimitAt: 2000 * mib}
	on := func(node string, k limit.Key) DeviceLimit {
		return DeviceLimit{Node: node, Limit: limit.Limit{}.With(k, limit.PerSecond(10_000_000))}
	}
	limits := []DeviceLimit{on("/dev/vdb", limit.WBPS)}
	reads := []DeviceLimit{on("/dev/mapper/write-cache", limit.RBPS)}
	both := []DeviceLimit{{Node: "/dev/read-only", Limit: limits[0].Limit.With(limit.RBPS, limit.PerSecond(5_000_000))}}
	held := BehindReport{Write: true, Requests: 1, ThrottleKnown: true, Throttle: 9 * time.Second, Device: time.Second}
	free := BehindReport{Write: true, Requests: 1, ThrottleKnown: true, Device: time.Second}
	for name, c := range map[string]struct {
		r         *Report
		want, not []string
	}{
		"memcg":               {reportOf(MemcgReclaim, Evidence{Memory: atLimit}), []string{"90 % of their time is memcg reclaim", "/web is at its memory limit (63 MiB of 64 MiB, of which 60 MiB is page cache)"}, []string{"freed"}},
		"memcg, now and then": {reportOf(MemcgReclaim, Evidence{}), []string{"reached now and then"}, nil},
		"dirty on the host":   {reportOf(DirtyThrottle, Evidence{Dirty: reached, Limits: limits}, free), []string{"1.56 GiB of the host's memory", "above 1.46 GiB"}, []string{"10 MB/s"}},
		"dirty, held behind":  {reportOf(DirtyThrottle, Evidence{Dirty: reached, Limits: limits}, held), []string{"The limit (write 10 MB/s on /dev/vdb) sets how fast the dirty data drains"}, nil},
		"dirty in the group":  {reportOf(DirtyThrottle, Evidence{Dirty: unreached, Memory: atLimit}), []string{"of which only a part may be dirty (5 MiB was)"}, []string{"host"}},
		"dirty on a disk":     {reportOf(DirtyThrottle, Evidence{Dirty: unreached}), []string{"the host's thresholds were not reached (4 MiB", "/sys/class/bdi"}, []string{"the kernel slows"}},
		"throttle":            {reportOf(BlkThrottle, Evidence{Limits: limits}), []string{"its I/O limit slows it (write 10 MB/s on /dev/vdb)"}, nil},
		"paced":               {reportOf(Frozen, Evidence{Paced: true, Limits: limits}), []string{"weir's pacer pauses it to hold its writes at the limit (write 10 MB/s on /dev/vdb)"}, nil},
		"frozen":              {reportOf(Frozen, Evidence{}), []string{"its cgroup is frozen"}, []string{"pacer"}},
		"flusher, held":       {reportOf(OtherIO, Evidence{Limits: limits}, held), []string{"90 % of their time waiting for blk-throttle (write 10 MB/s on /dev/vdb)"}, nil},
		"flusher, read limit": {reportOf(OtherIO, Evidence{Limits: reads}, held), []string{"blk-throttle"}, []string{"write-cache"}},
		"paced, both limits":  {reportOf(Frozen, Evidence{Paced: true, Limits: both}), []string{"(write 10 MB/s on /dev/read-only)"}, nil},
		"flusher":             {reportOf(OtherIO, Evidence{Limits: limits}, free), []string{"flushers"}, []string{"blk-throttle"}},
	} {
		advice := c.r.Advise()
		if len(advice) != 1 {
			t.Errorf("%s: %v", name, advice)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(advice[0].Text, want) {
				t.Errorf("%s: %q, want %q in it", name, advice[0].Text, want)
			}
		}
		for _, not := range c.not {
			if strings.Contains(advice[0].Text, not) {
				t.Errorf("%s: %q, with %q in it", name, advice[0].Text, not)
			}
		}
	}
}
