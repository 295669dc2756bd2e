package trace

import (
	"cmp"
	"slices"
	"time"
)

// A Verdict says where the time of one kind of operation went, if that is worth mentioning.
type Verdict struct {
	// All says that the shares refer to all time, because the median operation spends half of its
	// time or more waiting. Otherwise they refer to the time above p50.
	All bool
	// Causes are the parts that matter, the largest first. CPU is one only if there is no
	// other. Empty: nothing was slow.
	Causes []Cause
	// Partial says that too many operations were not fully traced for the shares to be right
	// for all operations.
	Partial bool
}

// A Cause is a part with its share, from 0 to 1, of the verdict's time.
type Cause struct {
	Part  Part
	Share float64
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
func partial(count uint64, took time.Duration, u Unseen) bool {
	return float64(u.Count) > unseenMost*float64(count+u.Count) || float64(u.Time) > unseenMost*float64(took+u.Time)
}

// judge judges all time if a usual operation waits. Otherwise it judges only the extra time of
// slow operations: there the work that all operations do would hide why some are slow.
func judge(h *Histogram, all, above Split) Verdict {
	var v Verdict
	split := above
	if middle, _ := h.at(0.5); middle >= 0 && 1-h[middle].Parts.Share(CPU) >= waitsMin || above.Sum() == 0 {
		v.All, split = true, all
	}
	for p := range Parts {
		if share := split.Share(p); share >= shareMin {
			v.Causes = append(v.Causes, Cause{p, share})
		}
	}
	slices.SortStableFunc(v.Causes, func(a, b Cause) int { return cmp.Compare(b.Share, a.Share) })
	return v
}
