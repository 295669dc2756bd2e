package trace

import (
	"math/rand/v2"
	"testing"
)

func TestShares(t *testing.T) {
	all := Split{CPU: 1000, MemcgReclaim: 83_000, RunQueue: 12_004, DeviceTime: 400, Other: 3596}.Shares()
	want := []Share{{MemcgReclaim, "memcg reclaim", 0.83, 83}, {RunQueue, "run queue", 0.12004, 12}, {Other, "other", 0.03596, 4},
		{CPU, "page cache, CPU", 0.01, 1}, {Parts, "the rest", 0.004, 0}}
	if len(all) != len(want) {
		t.Fatalf("%v, want %v", all, want)
	}
	for i, s := range all {
		if s.Part != want[i].Part || s.Title != want[i].Title || s.Percent != want[i].Percent {
			t.Errorf("%d: %v, want %v", i, s, want[i])
		}
	}
	if all := (Split{}).Shares(); all != nil {
		t.Errorf("of no time: %v", all)
	}
}

// What a person reads adds up, whatever the shares are.
func TestPercentsAddUp(t *testing.T) {
	for range 2000 {
		var split Split
		for p := range Parts {
			if rand.IntN(2) == 0 {
				split[p] = uint64(1e9 * rand.ExpFloat64())
			}
		}
		all := split.Shares()
		percents, shares := 0, 0.0
		for _, s := range all {
			percents += s.Percent
			shares += s.Share
			if off := float64(s.Percent) - 100*s.Share; off < -1 || off > 1 {
				t.Fatalf("%v is written as %d %%", s.Share, s.Percent)
			}
		}
		if split.Sum() > 0 && (percents != 100 || shares < 0.999999 || shares > 1.000001) {
			t.Fatalf("%v: %d %%, %v", split, percents, shares)
		}
	}
}

func TestSharesFollowTheVerdict(t *testing.T) {
	o := OpsReport{Split: Split{CPU: 3}, AboveP50: Split{DeviceTime: 1}}
	for of, want := range map[bool]Share{true: {Part: CPU, Share: 3}, false: {Part: DeviceTime, Share: 1}} {
		o.Verdict.All = of
		if all, sum := o.Shares(); len(all) != 1 || all[0].Part != want.Part || float64(sum) != want.Share {
			t.Errorf("of all time, %v: %v of %s", of, all, sum)
		}
	}
}
