package latency

import (
	"math"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/trace"
)

// A Summary is a run in figures. Quantiles are exact: every write counts.
type Summary struct {
	Count                          int
	Elapsed                        time.Duration // from the first write's beginning to the last one's end
	Mean, P50, P90, P99, P999, Max time.Duration
}

// BytesPerSec is the rate of a run.
func (s Summary) BytesPerSec() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Count) * Block / s.Elapsed.Seconds()
}

// Summary adds a run up.
func (r Run) Summary() Summary { return summarise(r.Writes) }

func summarise(writes []load.Timing) (s Summary) {
	if s.Count = len(writes); s.Count == 0 {
		return s
	}
	var all []time.Duration
	var sum time.Duration
	for _, w := range writes {
		all, sum = append(all, w.Took), sum+w.Took
	}
	slices.Sort(all)
	last := writes[len(writes)-1]
	s.Elapsed = time.Duration(last.At-writes[0].At) + last.Took
	s.Mean = sum / time.Duration(s.Count)
	s.P50, s.P90, s.P99, s.P999, s.Max = quantile(all, 0.5), quantile(all, 0.9), quantile(all, 0.99), quantile(all, 0.999), all[len(all)-1]
	return s
}

// quantile is the smallest value that a share q of sorted ones does not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}

// SlotsMost is how many stretches a run is cut into for a drawing or a document.
const SlotsMost = 96

// A Slot is a stretch of the copy.
type Slot struct {
	From, To      time.Duration // since the first write began
	Bytes         int64         // written at its end, since the beginning
	P50, P99, Max time.Duration
}

// Slots cuts the copy into at most n stretches of as many writes each, so that each says
// as much as the next.
func (r Run) Slots(n int) []Slot {
	var all []Slot
	if n = min(n, len(r.Writes)); n == 0 {
		return all
	}
	first := r.Writes[0].At
	for i := range n {
		from, to := len(r.Writes)*i/n, len(r.Writes)*(i+1)/n
		s := summarise(r.Writes[from:to])
		began := time.Duration(r.Writes[from].At - first)
		all = append(all, Slot{From: began, To: began + s.Elapsed, Bytes: int64(to) * Block, P50: s.P50, P99: s.P99, Max: s.Max})
	}
	return all
}

// A SplitSlot is where the time of writes went for a while.
type SplitSlot struct {
	From, To time.Duration // since the first write began
	Writes   uint64        // that ended in it
	Split    trace.Split
}

// SplitSlots returns the trace's times by part, in at most n stretches of time. A write's time
// counts where the write ends; a stretch in which no write ends is merged with the next.
func (r Run) SplitSlots(n int) []SplitSlot {
	var all []SplitSlot
	if len(r.Writes) == 0 || len(r.Splits) < 2 || n <= 0 {
		return all
	}
	first, took := r.Writes[0].At, r.Summary().Elapsed
	before := r.Splits[0]
	for i, m := range r.Splits[1:] {
		at := time.Duration(m.At - first)
		due := at >= took*time.Duration(len(all)+1)/time.Duration(n) || i == len(r.Splits)-2
		if m.Writes == before.Writes || !due {
			continue
		}
		from := time.Duration(0)
		if k := len(all); k > 0 {
			from = all[k-1].To
		}
		all = append(all, SplitSlot{From: from, To: min(max(at, from), took), Writes: m.Writes - before.Writes, Split: m.Split.Minus(before.Split)})
		before = m
	}
	return all
}
