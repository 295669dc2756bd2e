package tally

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A played tally is of a command under 10 MB/s whose counters a test moves.
type played struct {
	*Tally
	v1   bool
	now  time.Time
	seen escape.Reading
	told uint64 // of what has escaped, by a watcher
}

func play(v1, told bool) *played {
	p := &played{now: time.Unix(1000, 0), v1: v1}
	p.Tally = &Tally{at: p.now, sum: Sum{Told: told, Devices: []Device{{Rule: Rule{Device: disk, Limit: limit.Limit{WBPS: limit.PerSecond(10 * megabyte)}}}}}}
	p.watcher = p
	p.seen.Stats = []cgroupfs.Stat{{Device: disk}}
	return p
}

func (p *played) Add(cgroupfs.Group, uint64) error { return nil }
func (p *played) Remove(uint64) error              { return nil }
func (p *played) Escaped(uint64) (map[blkdev.Number]uint64, error) {
	return map[blkdev.Number]uint64{disk: p.told}, nil
}
func (p *played) Files(uint64, *cgroupfs.Hierarchy) ([]escape.File, error) { return nil, nil }

// does is what a command does in a time, evenly.
type does struct {
	lasts                                   time.Duration
	written, charged, escaped, cut          uint64
	paused, halted, uncharges, large, waits bool
}

// a look each 50 ms.
func (p *played) does(d does) {
	const every = 50 * time.Millisecond
	looks := uint64(max(1, d.lasts/every))
	for range looks {
		r := p.seen
		r.Stats = []cgroupfs.Stat{r.Stats[0]}
		r.Written += d.written / looks
		r.Stats[0].WrittenBytes += d.charged / looks
		if r.Stats[0].Writes += (d.charged/looks + megabyte - 1) / megabyte; d.large {
			r.Stats[0].Writes = p.seen.Stats[0].Writes + 1
		}
		p.told += d.escaped / looks
		if r.Escaped += d.escaped / looks; d.uncharges {
			r.Escaped -= min(r.Escaped, d.charged/looks)
		}
		r.Escaped, r.Cancelled = r.Escaped-d.cut/looks, r.Cancelled+d.cut/looks
		p.now = p.now.Add(min(every, d.lasts))
		m := moment{before: p.at, now: p.now, read: p.now, since: p.at, wrote: r.Written > p.sum.Written, queues: p.v1, halted: d.halted || d.paused}
		m.waits = d.waits
		if d.paused {
			m.paused = p.now.Sub(p.at)
		}
		p.take(m, r)
		p.seen = r
	}
}

func (p *played) verdict() Verdict {
	if p.sum.Told {
		p.sum.Devices[0].Escaped = p.told
	}
	return p.sum.Writes(p.sum.Devices[0])
}

// Time in which a command does something else is no time in which the limit would have let it write.
func TestIdleTimeIsNoCredit(t *testing.T) {
	const second = time.Second
	late := does{lasts: second / 20, written: 4096, escaped: 4096}
	burst := does{lasts: second / 5, written: 300 * megabyte, escaped: 300 * megabyte}
	for name, c := range map[string]struct {
		v1, told bool
		does     []does
		want     State
		took     time.Duration // in which it wrote, to within a tenth of a second
	}{
		"past it at once, and a byte a minute later, v1":      {v1: true, does: []does{burst, {lasts: time.Minute}, late}, want: NotHeld, took: second / 4},
		"the same, seen on v2":                                {told: true, does: []does{burst, {lasts: time.Minute}, late}, want: NotHeld, took: second / 4},
		"first a byte, and past it a minute later":            {v1: true, does: []does{late, {lasts: time.Minute}, burst}, want: NotHeld, took: second / 4},
		"some of it was of a file that is gone":               {does: []does{burst, {lasts: time.Minute}, {lasts: second / 20, written: 4096, escaped: 4096, cut: 50 * megabyte}}, want: NotHeld, took: second / 4},
		"in the middle":                                       {told: true, does: []does{late, {lasts: time.Minute}, burst, {lasts: time.Minute}, late}, want: NotHeld, took: second * 3 / 10},
		"charged at once, and then it waits in the queue, v1": {v1: true, does: []does{{lasts: second / 20, written: 64 * megabyte, charged: 64 * megabyte}, {lasts: 6400 * time.Millisecond}, {lasts: second / 20, written: 4096, charged: 4096}}, want: Held, took: 6500 * time.Millisecond},
		"waits, and looks past it until it is charged":        {does: []does{{lasts: second / 20, written: 64 * megabyte, escaped: 64 * megabyte}, {lasts: 3 * second}, {lasts: 6400 * time.Millisecond, charged: 64 * megabyte, uncharges: true}}, want: Held, took: 9500 * time.Millisecond},
		"waits while the disk stalls":                         {does: []does{{lasts: second / 20, written: 64 * megabyte, escaped: 64 * megabyte}, {lasts: 3 * second}, {lasts: second / 20, charged: 30 * megabyte, uncharges: true}, {lasts: 3400 * time.Millisecond, charged: 34 * megabyte, uncharges: true}}, want: Held, took: 6500 * time.Millisecond},
		"in writeback while the disk stalls":                  {told: true, does: []does{{lasts: second, written: 64 * megabyte, charged: 10 * megabyte}, {lasts: 3 * second, waits: true}, {lasts: second / 20, charged: 30 * megabyte}}, want: Held, took: 4 * second},
		"past it at once, and paused for that":                {told: true, does: []does{{lasts: second / 5, written: 30 * megabyte, escaped: 30 * megabyte}, {lasts: 3 * second, paused: true}, {lasts: time.Minute}, late}, want: Held, took: 3300 * time.Millisecond},
		"the same, paused by its owner":                       {told: true, does: []does{{lasts: second / 5, written: 30 * megabyte, escaped: 30 * megabyte}, {lasts: 30 * second, halted: true}, late}, want: Held, took: 30 * second},
		"a little each few seconds":                           {told: true, does: []does{{lasts: second / 20, written: megabyte, charged: megabyte}, {lasts: 5 * second}, {lasts: second / 20, written: megabyte, charged: megabyte}, {lasts: 5 * second}, {lasts: second / 20, written: megabyte, charged: megabyte}}, want: Held, took: second / 4},
		"one large request after the other":                   {told: true, does: []does{{lasts: second / 20, written: 80 * megabyte, charged: 8 * megabyte, large: true}, {lasts: 800 * time.Millisecond}, {lasts: second / 20, charged: 8 * megabyte, large: true}, {lasts: 800 * time.Millisecond}, {lasts: second / 20, charged: 8 * megabyte, large: true}}, want: Held, took: 1700 * time.Millisecond},
		"made dirty slowly, and written back at once":         {does: []does{{lasts: 20 * second, written: 100 * megabyte}, {lasts: 5 * second}, {lasts: second / 2, written: 4096, escaped: 100 * megabyte}}, want: Held, took: 20 * second},
		"slowly, with short rests":                            {told: true, does: []does{{lasts: second / 2, written: 5 * megabyte, escaped: 5 * megabyte}, {lasts: second / 2}, {lasts: second / 2, written: 5 * megabyte, escaped: 5 * megabyte}}, want: Held, took: 1500 * time.Millisecond},
	} {
		p := play(c.v1, c.told)
		for _, d := range c.does {
			p.does(d)
		}
		v := p.verdict()
		if off := (v.Took - c.took).Abs(); v.State != c.want || off > second/10+c.took/20 || (v.Burst != nil) != (c.want == NotHeld) {
			t.Errorf("%s: %+v (%+v), want %s in %s", name, v, v.Burst, c.want, c.took)
		}
	}
}

// lines are lines of a log, one each second.
func lines(n int) (all []does) {
	for range n {
		all = append(all, does{lasts: time.Second / 20, written: 4096, charged: 4096}, does{lasts: time.Second * 19 / 20})
	}
	return all
}

// The throttle saves nothing up while less is written than it lets through: a line of a log each second
// is no credit for a burst, before it or after it. Bursts that were held, or paid for, stay held.
func TestALittleIsNoCredit(t *testing.T) {
	const second = time.Second
	burst := does{lasts: second / 5, written: 300 * megabyte, escaped: 300 * megabyte}
	charged := does{lasts: second / 5, written: 300 * megabyte, charged: 300 * megabyte}
	paid := []does{{lasts: second / 5, written: 30 * megabyte, escaped: 30 * megabyte}, {lasts: 3 * second, paused: true}}
	slowly := []does{{lasts: 60 * second, written: 300 * megabyte, charged: 300 * megabyte}}
	stalls := []does{{lasts: second, written: 64 * megabyte, charged: 10 * megabyte}, {lasts: 3 * second, waits: true}, {lasts: second / 20, charged: 30 * megabyte}}
	at := []does{{lasts: second / 5, written: 300 * megabyte}, {lasts: 30 * second, charged: 300 * megabyte}}
	queued := []does{{lasts: second / 20, written: 64 * megabyte, charged: 64 * megabyte}, {lasts: 6400 * time.Millisecond}}
	for name, c := range map[string]struct {
		v1, told bool
		does     []does
		want     State
		took     time.Duration
	}{
		"before it, v1":                      {v1: true, does: append(lines(60), burst), want: NotHeld, took: 60 * second},
		"before it, seen on v2":              {told: true, does: append(lines(60), burst), want: NotHeld, took: 60 * second},
		"before it, not seen":                {does: append(lines(60), burst), want: NotHeld, took: 60 * second},
		"after it":                           {told: true, does: append([]does{burst}, lines(60)...), want: NotHeld, took: 60 * second},
		"before and after it":                {told: true, does: slices.Concat(lines(60), []does{burst}, lines(60)), want: NotHeld, took: 120 * second},
		"the kernel has charged it, and let": {told: true, does: append(lines(60), charged), want: NotHeld, took: 60 * second},
		"half of the limit, and past it":     {told: true, does: append(slices.Clone(slowly), burst), want: NotHeld, took: 60 * second},
		"half of the limit, and at it":       {told: true, does: slices.Concat(slowly, at), want: Held, took: 90 * second},
		"at the limit":                       {told: true, does: slices.Concat(lines(60), at, lines(60)), want: Held, took: 150 * second},
		"at the limit, not seen":             {does: slices.Concat(lines(60), at, lines(60)), want: Held, took: 150 * second},
		"paused for it":                      {told: true, does: slices.Concat(lines(60), paid, lines(60)), want: Held, took: 123 * second},
		"paused for it, v1":                  {v1: true, does: slices.Concat(lines(60), paid, lines(60)), want: Held, took: 123 * second},
		"charged, and queued, v1":            {v1: true, does: slices.Concat(lines(60), queued, lines(60)), want: Held, took: 127 * second},
		"while the disk stalls":              {told: true, does: slices.Concat(lines(60), stalls, lines(60)), want: Held, took: 124 * second},
		"seen to escape later":               {does: slices.Concat([]does{{lasts: second / 5, written: 300 * megabyte}}, lines(10), []does{{lasts: second / 5, written: 4096, escaped: 300 * megabyte}}), want: NotHeld, took: 10 * second},
		"slow, and seen to escape later":     {does: []does{{lasts: 60 * second, written: 300 * megabyte}, {lasts: second / 5, written: 4096, escaped: 300 * megabyte}}, want: Held, took: 60 * second},
		"for three hours":                    {told: true, does: append(lines(10800), burst), want: NotHeld, took: 10800 * second},
		"for three hours after it":           {told: true, does: append([]does{burst}, lines(10800)...), want: NotHeld, took: 10800 * second},
	} {
		p := play(c.v1, c.told)
		for _, d := range c.does {
			p.does(d)
		}
		v := p.verdict()
		if off := (v.Took - c.took).Abs(); v.State != c.want || off > second+c.took/20 || (v.Burst != nil) != (c.want == NotHeld) {
			t.Errorf("%s: %+v (%+v), want %s in %s", name, v, v.Burst, c.want, c.took)
		}
		if n := len(p.sum.Devices[0].Writing.done); n > stintsMost {
			t.Errorf("%s: %d stints are kept", name, n)
		}
	}
}

// Where stints become one because there are too many, what went past the limit stays apart.
func TestCondense(t *testing.T) {
	p := play(false, true)
	burst := does{lasts: time.Second / 5, written: 300 * megabyte, escaped: 300 * megabyte}
	for _, d := range slices.Concat(lines(60), []does{burst}, lines(60)) {
		p.does(d)
	}
	c := &p.sum.Devices[0].Writing
	for n := len(c.done); ; n = len(c.done) {
		if c.condense(); len(c.done) == n {
			break
		}
	}
	if v := p.verdict(); len(c.done) > 4 || v.State != NotHeld || v.Burst == nil || v.Burst.Took > 5*time.Second || v.Took < 115*time.Second {
		t.Errorf("%d stints, %+v (%+v)", len(c.done), v, v.Burst)
	}
}

// What went past the limit is told apart from the rest.
func TestBurst(t *testing.T) {
	p := play(false, true)
	p.does(does{lasts: 10 * time.Second, written: 100 * megabyte, charged: 100 * megabyte})
	p.does(does{lasts: 10 * time.Second})
	p.does(does{lasts: time.Second / 10, written: 20 * megabyte, escaped: 20 * megabyte})
	if v := p.verdict(); v.State != NotHeld || v.Burst == nil || v.Burst.Bytes != 20*megabyte || v.Burst.Took > time.Second/5 || v.Bytes != 120*megabyte {
		t.Errorf("%+v, %+v", v, v.Burst)
	}
}

// What the kernel has counted and nobody has written can have been in any stint, and is no credit for more.
func TestWithoutInStints(t *testing.T) {
	for name, c := range map[string]struct {
		spare uint64
		want  State
	}{"none": {0, NotHeld}, "a byte": {1, NotHeld}, "not enough": {10 * megabyte, NotHeld}, "most of it": {30 * megabyte, Held}} {
		for _, told := range []bool{false, true} {
			p := play(false, told)
			for range 2 {
				p.does(does{lasts: time.Second / 5, written: 20 * megabyte, escaped: 20 * megabyte})
				p.does(does{lasts: 10 * time.Second})
			}
			p.sum.Without(c.spare)
			if v := p.verdict(); v.State != c.want || v.Took > 6*time.Second {
				t.Errorf("%s, told %v: %+v, %+v", name, told, v, v.Burst)
			}
		}
	}
}
