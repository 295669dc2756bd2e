package prove

import (
	"sort"
	"time"
)

// A Point is a counter at one moment.
type Point struct {
	At    time.Duration // CLOCK_MONOTONIC
	Total float64       // bytes or operations since the counter began
}

// A Series is a counter over time: At grows strictly, Total never falls.
type Series []Point

// At returns the total at a moment, interpolated between the points around it. Before the first
// point it is the first total, after the last point the last.
func (s Series) At(t time.Duration) float64 {
	i := sort.Search(len(s), func(i int) bool { return s[i].At >= t })
	switch {
	case len(s) == 0:
		return 0
	case i == 0:
		return s[0].Total
	case i == len(s):
		return s[len(s)-1].Total
	}
	a, b := s[i-1], s[i]
	return a.Total + (b.Total-a.Total)*float64(t-a.At)/float64(b.At-a.At)
}

// Between returns by how much the total grew.
func (s Series) Between(from, to time.Duration) float64 { return s.At(to) - s.At(from) }

// largest returns the largest step that ends within a time.
func (s Series) largest(from, to time.Duration) (most float64) {
	for i := 1; i < len(s); i++ {
		if s[i].At >= from && s[i].At <= to {
			most = max(most, s[i].Total-s[i-1].Total)
		}
	}
	return most
}

// rateStep is the shortest time that a rate is drawn for. Over a few milliseconds a single
// request looks like hundreds of megabytes a second.
const rateStep = every * 9 / 10

// Rates returns the rate per second of the series over steps of rateStep or more, at each
// step's end, for a chart. The rest at the end belongs to the last step.
func (s Series) Rates() Series {
	var rates Series
	for from, i := 0, 1; i < len(s); i++ {
		left := s[len(s)-1].At - s[i].At
		if i < len(s)-1 && (s[i].At-s[from].At < rateStep || left < rateStep) {
			continue
		}
		if step := (s[i].At - s[from].At).Seconds(); step > 0 {
			rates = append(rates, Point{s[i].At, (s[i].Total - s[from].Total) / step})
		}
		from = i
	}
	return rates
}

// add appends a point, unless the clock stood still.
func (s Series) add(at time.Duration, total float64) Series {
	if n := len(s); n > 0 && s[n-1].At >= at {
		return s
	}
	return append(s, Point{at, total})
}
