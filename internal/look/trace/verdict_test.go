package trace

import (
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	const few, many = 10 * time.Microsecond, 100 * time.Microsecond
	usual := Cell{Count: 90, Parts: Split{CPU: 90 * 10_000}}
	type cause struct {
		part Part
		from float64 // the least share
	}
	for _, c := range []struct {
		name  string
		cells map[time.Duration]Cell
		all   bool
		want  []cause
	}{
		{"slow ones wait", map[time.Duration]Cell{few: usual, many: {10, Split{CPU: 10 * 10_000, MemcgReclaim: 10 * 90_000}}}, false, []cause{{MemcgReclaim, 0.99}}},
		{"all wait", map[time.Duration]Cell{many: {100, Split{CPU: 100 * 10_000, DeviceTime: 100 * 90_000}}}, true, []cause{{DeviceTime, 0.89}, {CPU, 0.09}}},
		{"two causes", map[time.Duration]Cell{few: usual, many: {10, Split{BlkThrottle: 600_000, DeviceTime: 300_000, CPU: 100_000}}}, false, []cause{{BlkThrottle, 0.66}, {DeviceTime, 0.33}}},
		{"small ones are none", map[time.Duration]Cell{few: usual, many: {10, Split{Journal: 950_000, DirtyThrottle: 50_000}}}, false, []cause{{Journal, 0.94}}},
		{"nothing is slow", map[time.Duration]Cell{few: usual}, true, []cause{{CPU, 1}}},
		{"nothing", nil, true, nil},
	} {
		h := histogram(c.cells)
		v := judge(h, h.Split(), h.Above())
		if v.All != c.all {
			t.Errorf("%s: of all time: %v, want %v", c.name, v.All, c.all)
		}
		// Of the time on processors a verdict may say nothing where something else is.
		for len(v.Causes) > len(c.want) && v.Causes[len(v.Causes)-1].Part == CPU {
			v.Causes = v.Causes[:len(v.Causes)-1]
		}
		for i, want := range c.want {
			if i < len(v.Causes) && v.Causes[i].Part == want.part && v.Causes[i].Share >= want.from {
				continue
			}
			if want.part != CPU || i == 0 {
				t.Errorf("%s: cause %d of %+v, want %s with %.2f", c.name, i, v.Causes, want.part, want.from)
			}
		}
		if len(v.Causes) > len(c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, v.Causes, c.want)
		}
	}
}
