package trace

import (
	"cmp"
	"slices"
)

// A Verdict says where the time of one kind of operation went, if that is worth mentioning.
type Verdict struct {
	// Of says which time the shares refer to: "all", if the median operation spends half of its
	// time or more waiting, or "above_p50".
	Of string `json:"of"`
	// Causes are the parts that matter, the largest first. CPU is one only if there is no
	// other. Empty: nothing was slow.
	Causes []Cause `json:"causes"`
	// Partial says that too many operations were not fully traced for the shares to be right
	// for all operations.
	Partial bool `json:"partial"`
}

// A Cause is a part with its share, from 0 to 1, of the verdict's time.
type Cause struct {
	Part  string  `json:"part"`
	Share float64 `json:"share"`

	part Part
}

const (
	// shareMin: a part with at least this share is a cause.
	shareMin = 0.1
	// waitsMin: if waits take at least this share of a median operation, all time is judged.
	waitsMin = 0.5
	// unseenMost is the largest share of operations, or of their time, that may be not fully
	// traced.
	unseenMost = 0.05
)

// partial compares the operations that were traced with those known to be missing.
func partial(count uint64, seconds float64, u UnseenReport) bool {
	return float64(u.Count) > unseenMost*float64(count+u.Count) || u.Seconds > unseenMost*(seconds+u.Seconds)
}

// judge judges all time if a usual operation waits. Otherwise it judges only the extra time of
// slow operations: there the work that all operations do would hide why some are slow.
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
