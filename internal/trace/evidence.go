package trace

import (
	"cmp"
	"os"
	"slices"
)

var pageBytes = os.Getpagesize()

func sortCauses(all []Cause) {
	slices.SortStableFunc(all, func(a, b Cause) int { return cmp.Compare(b.Share, a.Share) })
}

// Evidence x
type Evidence struct{}

// Advice x
type Advice struct {
	Code string `json:"code"`
	Text string `json:"text"`
}
