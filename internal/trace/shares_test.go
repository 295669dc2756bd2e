package trace

import (
	"math/rand/v2"
	"testing"
)

func TestSharesOf(t *testing.T) {
	all, seconds := SharesOf(map[string]float64{"cpu": 1, "memcg_reclaim": 83, "run_queue": 12.004, "device": 0.4, "queue": 0, "other": 3.596})
	if seconds < 99.999 || seconds > 100.001 {
		t.Errorf("all is %v s", seconds)
	}
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
	if all, seconds := SharesOf(map[string]float64{"cpu": 0}); all != nil || seconds != 0 {
		t.Errorf("of no time: %v, %v s", all, seconds)
	}
}

// What a person reads adds up, whatever the shares are.
func TestPercentsAddUp(t *testing.T) {
	for range 2000 {
		split := map[string]float64{}
		for p := range Parts {
			if rand.IntN(2) == 0 {
				split[p.String()] = rand.ExpFloat64()
			}
		}
		all, seconds := SharesOf(split)
		percents, shares := 0, 0.0
		for _, s := range all {
			percents += s.Percent
			shares += s.Share
			if off := float64(s.Percent) - 100*s.Share; off < -1 || off > 1 {
				t.Fatalf("%v is written as %d %%", s.Share, s.Percent)
			}
		}
		if seconds > 0 && (percents != 100 || shares < 0.999999 || shares > 1.000001) {
			t.Fatalf("%v: %d %%, %v", split, percents, shares)
		}
	}
}

func TestSharesFollowTheVerdict(t *testing.T) {
	o := OpsReport{Split: map[string]float64{"cpu": 3}, AboveP50: map[string]float64{"device": 1}}
	for of, want := range map[string]Part{"all": CPU, "above_p50": DeviceTime} {
		o.Verdict.Of = of
		if all, _ := o.Shares(); len(all) != 1 || all[0].Part != want {
			t.Errorf("of %s: %v", of, all)
		}
	}
}

func TestTitleOf(t *testing.T) {
	for name, want := range map[string]string{"memcg_reclaim": "memcg reclaim", "new": "new"} {
		if got := TitleOf(name); got != want {
			t.Errorf("TitleOf(%s) = %q, want %q", name, got, want)
		}
	}
}
