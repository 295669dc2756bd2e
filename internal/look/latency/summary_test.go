package latency

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/trace"
)

// writesOf makes writes that follow each other without a pause.
func writesOf(took ...time.Duration) []load.Timing {
	var all []load.Timing
	at := int64(1000)
	for _, t := range took {
		all = append(all, load.Timing{At: at, Took: t})
		at += int64(t)
	}
	return all
}

// rising is writes of 1 to n microseconds.
func rising(n int) []load.Timing {
	var took []time.Duration
	for i := range n {
		took = append(took, time.Duration(i+1)*time.Microsecond)
	}
	return writesOf(took...)
}

func TestSummaryIsExact(t *testing.T) {
	s := Run{Writes: rising(1000)}.Summary()
	want := Summary{Count: 1000, Elapsed: 500500 * time.Microsecond, Mean: 500500 * time.Nanosecond, P50: 500 * time.Microsecond,
		P90: 900 * time.Microsecond, P99: 990 * time.Microsecond, P999: 999 * time.Microsecond, Max: time.Millisecond}
	if s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	if rate := s.BytesPerSec(); rate < 130e6 || rate > 131e6 { // 1000 × 64 KiB in half a second
		t.Errorf("rate %g", rate)
	}
	if s := (Run{}).Summary(); s != (Summary{}) || s.BytesPerSec() != 0 {
		t.Errorf("nothing is %+v", s)
	}
	if s := (Run{Writes: rising(1)}).Summary(); s.P50 != time.Microsecond || s.P999 != time.Microsecond {
		t.Errorf("one write is %+v", s)
	}
}

func TestSlotsHaveAllWrites(t *testing.T) {
	r := Run{Writes: rising(10)}
	slots := r.Slots(3)
	if len(slots) != 3 || slots[2].Bytes != 10*Block || slots[2].Max != 10*time.Microsecond || slots[0].From != 0 || slots[2].To != r.Summary().Elapsed {
		t.Errorf("%+v", slots)
	}
	for i := 1; i < len(slots); i++ {
		if slots[i].From != slots[i-1].To || slots[i].Bytes <= slots[i-1].Bytes {
			t.Errorf("slot %d, %+v, does not follow %+v", i, slots[i], slots[i-1])
		}
	}
	if n := len(r.Slots(100)); n != 10 {
		t.Errorf("%d slots of 10 writes", n)
	}
	if r.Slots(0) != nil || (Run{}).Slots(3) != nil {
		t.Error("slots of nothing")
	}
}

func TestSplitSlotsAddUp(t *testing.T) {
	r := Run{Writes: writesOf(time.Second, time.Second, time.Second, time.Second)}
	var split trace.Split
	for i := range 41 { // ten a second; a write ends each second
		if i%10 == 0 && i > 0 {
			split[trace.MemcgReclaim] += uint64(i) * 1e6
			split[trace.CPU] += 1e6
		}
		r.Splits = append(r.Splits, Moment{At: 1000 + int64(i)*1e8, Writes: uint64(i / 10), Split: split})
	}
	for _, n := range []int{1, 3, 4, 100} {
		slots := r.SplitSlots(n)
		if len(slots) == 0 || len(slots) > min(n, 4) || slots[0].From != 0 || slots[len(slots)-1].To != 4*time.Second {
			t.Fatalf("in %d: %+v", n, slots)
		}
		var sum trace.Split
		var writes uint64
		for _, s := range slots {
			sum, writes = sum.Plus(s.Split), writes+s.Writes
		}
		if sum != split || writes != 4 {
			t.Errorf("in %d: %d writes, %v; want 4, %v", n, writes, sum, split)
		}
	}
	if (Run{Writes: r.Writes}).SplitSlots(3) != nil {
		t.Error("a split without a trace")
	}
}

func TestEverySecondKeepsTheLast(t *testing.T) {
	for n := 1; n < 9; n++ {
		var all []Moment
		for i := range n {
			all = append(all, Moment{At: int64(i)})
		}
		kept := everySecond(all)
		if len(kept) != n/2+1 || kept[0].At != 0 || kept[len(kept)-1].At != int64(n-1) {
			t.Errorf("of %d: %v", n, kept)
		}
	}
}

func TestWords(t *testing.T) {
	text := func(d time.Duration) string { return d.String() }
	free, bound := Run{Writes: writesOf(10, 10, 10)}, Run{Memory: 1 << 30, Writes: writesOf(10, 10, 90)}
	bound.Trace = &trace.Report{Ops: []trace.OpsReport{{Verdict: trace.Verdict{Causes: []trace.Cause{{Part: trace.MemcgReclaim, Share: 0.83}}}}},
		Reclaim: trace.Reclaim{MemcgCalls: 7, MemcgBytes: 5e6}}
	direct := Run{Memory: 1 << 30, Direct: true, Writes: writesOf(50, 50, 50)}
	said := strings.Join(Words([]Run{free, bound, direct}, text), "\n")
	for _, want := range []string{"p50 10ns, p99 10ns without a memory limit; p50 10ns, p99 90ns with 1 GiB", "with 1 GiB, of the time above p50, 83 % is memcg reclaim",
		"free 5.00 MB of page cache themselves, in 7 calls", "(197 kB here)", "direct I/O under the same limit: p50 50ns (buffered: 10ns), p99 50ns (buffered: 90ns)"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
	if said := strings.Join(Words([]Run{free, {Memory: 1 << 30, Writes: free.Writes}}, text), "\n"); !strings.Contains(said, "no difference") || strings.Contains(said, "to end this") {
		t.Errorf("of two alike:\n%s", said)
	}
	if said := Words([]Run{free, {Memory: 1 << 30, Stopped: "it was killed"}}, text); len(said) != 1 || said[0] != "memory 1 GiB: after 0 writes it was killed" {
		t.Errorf("of one that came to nothing: %q", said)
	}
}
