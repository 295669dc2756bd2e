package trace

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Share is how much of some time went to one part, or to several small ones.
type Share struct {
	Part    Part   // Parts: the small ones together
	Title   string // for people
	Share   float64
	Percent int // rounded; those of one time add up to 100
}

// restShare: a part with a smaller share counts as one of the small ones.
const restShare = 0.005

// restTitle names the small parts.
const restTitle = "the rest"

// Shares returns the parts of the time that the verdict is about, the largest first, and that
// time. None if there is no time.
func (o OpsReport) Shares() (all []Share, of time.Duration) {
	split := o.AboveP50
	if o.Verdict.All {
		split = o.Split
	}
	return split.Shares(), split.Time()
}

// Shares returns the parts of a time, the largest first. None if there is no time.
func (s Split) Shares() (all []Share) {
	if s.Sum() == 0 {
		return nil
	}
	rest := 0.0
	for p := range Parts {
		if share := s.Share(p); share > restShare {
			all = append(all, Share{Part: p, Title: p.Title(), Share: share})
		} else {
			rest += share
		}
	}
	slices.SortStableFunc(all, func(a, b Share) int { return cmp.Compare(b.Share, a.Share) })
	if rest > 0 {
		all = append(all, Share{Part: Parts, Title: restTitle, Share: rest})
	}
	percents(all)
	return all
}

// percents rounds shares so that they add up to 100: it rounds each down, and then those up
// that lost most.
func percents(all []Share) {
	left := 100
	order := make([]int, len(all))
	for i := range all {
		all[i].Percent = int(math.Floor(100*all[i].Share + 1e-9))
		left -= all[i].Percent
		order[i] = i
	}
	lost := func(i int) float64 { return 100*all[i].Share - float64(all[i].Percent) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lost(b), lost(a)) })
	for _, i := range order[:min(max(left, 0), len(order))] {
		all[i].Percent++
	}
}

// largest is the largest part of a split; Other if there is no time.
func (s Split) largest() Part {
	most := Other
	for p := range Parts {
		if s[p] > s[most] {
			most = p
		}
	}
	return most
}
