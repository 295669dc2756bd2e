// Package calibrate measures how fast the machine is that the lab runs on: what depends on
// the machine (guests at once, time-outs, rates) is taken from that, and not from how long
// something took on another one.
package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Machine is what was measured.
type Machine struct {
	Call       time.Duration // a system call that does nothing
	Append     time.Duration // 64 KiB appended to a file, in the page cache
	Start      time.Duration // a process started, and its end waited for
	Compute    time.Duration // a fixed piece of work of a processor alone
	Processors float64       // processor time a second that busy threads got, one on each processor
	Threads    int           // how many there were
	Order      []int         // their places among the processors that there are, that with the most time first
}

// reference is the machine whose times docs/RESULTS.md has, alone and idle. Its figures are
// a unit: nothing has to take as long, or as short.
var reference = Machine{
	Call: 110 * time.Nanosecond, Append: 6 * time.Microsecond, Start: 350 * time.Microsecond, Compute: 450 * time.Microsecond,
	Processors: 2, Threads: 2,
}

// Measure takes about a second, most of which it is busy on all processors. dir is a folder
// on the disk that the lab works on.
func Measure(dir string) (m Machine, err error) {
	var errs [2]error
	m.Call = call()
	m.Compute = Compute(60)
	m.Append, errs[0] = appending(dir)
	m.Start, errs[1] = start()
	if err := errors.Join(errs[:]...); err != nil {
		return m, fmt.Errorf("calibrate: %w", err)
	}
	m.share(shares(affinity()))
	return m, nil
}

// share takes over what each processor had.
func (m *Machine) share(got []float64) {
	m.Threads = len(got)
	for i, share := range got {
		m.Processors += share
		m.Order = append(m.Order, i)
	}
	slices.SortStableFunc(m.Order, func(a, b int) int { return cmp.Compare(got[b], got[a]) })
}

// Speed is how fast the machine's processors are, as a ratio to the reference: the mean of
// what was measured, each while nothing interrupted it.
func (m Machine) Speed() float64 {
	product := 1.0
	for _, pair := range [][2]time.Duration{
		{reference.Call, m.Call}, {reference.Append, m.Append}, {reference.Start, m.Start}, {reference.Compute, m.Compute},
	} {
		product *= pair[0].Seconds() / pair[1].Seconds()
	}
	return math.Pow(product, 1.0/4)
}

// Factor is how much of the reference the machine is: its speed, and how much of two
// processors can really be had. A quota and programs beside the lab count.
func (m Machine) Factor() float64 {
	return m.Speed() * min(m.Processors, reference.Processors) / reference.Processors
}

// slowest bounds what waits for a machine that is too busy for anything.
const slowest = 6

// Slow is how much longer than the reference the machine takes; at least 1. What waits for
// something waits so much longer before it gives up.
func (m Machine) Slow() float64 {
	if m.Threads == 0 {
		return 1 // nobody measured it
	}
	return min(max(1, 1/m.Factor()), slowest)
}

// enough is how much of a processor makes a guest fit: one that shares its processor
// with a program beside the lab gets half of it.
const enough = 0.7

// Guests is how many guests fit at once: one on each processor, of which no other program
// has much, and memory (in bytes, of which there is so much) for each.
func (m Machine) Guests(memory uint64) int {
	const each = 2 << 30
	byTime := int(math.Floor(m.Processors + 1 - enough))
	return max(1, min(byTime, m.Threads, int(memory/each)))
}

// Place is the processor of the i-th of so many guests at once: any, if there is one for
// each, else one of those that others leave the most of.
func (m Machine) Place(i, guests int) int {
	if guests >= m.Threads || i >= len(m.Order) {
		return i
	}
	return m.Order[i]
}

// Spare reports whether guests leave time for one that takes only what is left: not under
// a quota, of which it would take from the others.
func (m Machine) Spare() bool { return m.Processors > 0.85*float64(m.Threads) }

func (m Machine) String() string {
	return fmt.Sprintf("this machine is %.2f of the reference: a system call takes %d ns, an append of 64 KiB %.1f µs, a process %.2f ms, a computation %.1f ms; %.2f of %d processors can be had",
		m.Factor(), m.Call.Nanoseconds(), float64(m.Append.Nanoseconds())/1e3, m.Start.Seconds()*1e3, m.Compute.Seconds()*1e3, m.Processors, m.Threads)
}
