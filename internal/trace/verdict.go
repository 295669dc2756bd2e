package trace

import (
	"cmp"
	"slices"
)

// A Verdict is where the time of one kind of operation went, as far as it is worth a
// word.
type Verdict struct {
	// Of says which time the shares are of: "all", where the median operation spends half
	// of its time or more waiting, or "above_p50".
	Of string `json:"of"`
	// Causes are the parts that matter, the largest first; CPU is one only where nothing
	// else is. Empty: nothing was slow.
	Causes []Cause `json:"causes"`
	// Partial says that too many operations were not fully seen for the shares to be those of
	// all operations.
	Partial bool `json:"partial"`
}

// A Cause is a part with its share, from 0 to 1, of the verdict's time.
type Cause struct {
	Part  string  `json:"part"`
	Share float64 `json:"share"`

	part Part
}

const (
	// shareMin is from which share on a part is a cause.
	shareMin = 0.1
	// waitsMin is how much of a median operation waits make, for all time to be judged.
	waitsMin = 0.5
	// unseenMost is the share of operations, or of their time, that may be not fully seen.
	unseenMost = 0.05
)

// partial compares what was seen of operations with what is known to be missing.
func partial(count uint64, seconds float64, u UnseenReport) bool {
	return float64(u.Count) > unseenMost*float64(count+u.Count) || u.Seconds > unseenMost*(seconds+u.Seconds)
}

// judge looks at all the time where the usual operation waits, and else only at what
// slow ones take beyond it: there the work that all do would hide why they are slow.
func judge(h *Histogram, all, above Split) Verdict {
	v := Verdict{Of: "above_p50", Causes: []Cause{}}
	split := above
	if middle, _ := h.at(0.5); middle >= 0 && 1-h[middle].Parts.Share(CPU) >= waitsMin || above.Sum() == 0 {
		v.Of, split = "all", all
	}
	for p := range Parts {
		if share := split.Share(p); share >= shareMin {
			v.Causes = append(v.Causes, Cause{p.String(), share, p})
		}
	}
	slices.SortStableFunc(v.Causes, func(a, b Cause) int { return cmp.Compare(b.Share, a.Share) })
	return v
}
