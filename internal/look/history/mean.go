package history

import (
	"math"
	"time"
)

// A mean is what points were on average over a step, which begins at a multiple of it, or until take.
type mean struct {
	step  time.Duration
	began time.Time // of the step; zero: nothing was added
	at    time.Time // of the last points
	over  time.Duration
	sums  []total
	place map[series]int // in sums
}

// A total is one series over a step.
type total struct {
	series
	kind  kind                // of the series
	sums  [valuesMost]float64 // of values × seconds; of a level, the last one
	known time.Duration       // in which its rates were known
}

// add adds points. When they are the first of the next step, it returns those of the step before;
// nil: not yet.
func (m *mean) add(at time.Time, window time.Duration, points []point) (end time.Time, over time.Duration, done []point) {
	began := at.Add(-1).Truncate(m.step) // what ends with a step is of it
	if !m.began.Equal(began) {
		if m.over > 0 {
			end, over, done = m.take()
		}
		m.began = began
	}
	m.sum(at, window, points)
	return end, over, done
}

// take ends a mean, and begins the next one.
func (m *mean) take() (end time.Time, over time.Duration, done []point) {
	end, over, done = m.at, m.over, m.points()
	clear(m.place)
	*m = mean{step: m.step, place: m.place, sums: m.sums[:0]}
	return end, over, done
}

// sum adds points, whichever step they are of.
func (m *mean) sum(at time.Time, window time.Duration, points []point) {
	m.at, m.over = at, m.over+window
	next := 0 // where the next one mostly is
	for i := range points {
		p := &points[i]
		place := next
		if place >= len(m.sums) || m.sums[place].series != p.series {
			var is bool
			if place, is = m.place[p.series]; !is {
				place = len(m.sums)
				m.place[p.series] = place
				m.sums = append(m.sums, total{series: p.series, kind: p.series.Value().kind})
			}
		}
		next = place + 1
		s := &m.sums[place]
		if p.unknown {
			continue
		}
		s.known += window
		for i, v := range p.values {
			if s.kind.lasts(i) {
				s.sums[i] = float64(v)
			} else {
				s.sums[i] += float64(v) * window.Seconds()
			}
		}
	}
}

// points are the means.
func (m *mean) points() []point {
	points := make([]point, 0, len(m.sums))
	for i := range m.sums {
		s := &m.sums[i]
		p := point{series: s.series, unknown: s.known == 0}
		over := m.over                // a group without a limit is not among the points while it does nothing
		if s.Value().limit.Bounds() { // it is, and the limit may have been another one for a part of the step
			over = s.known
		}
		for i := range p.values {
			switch {
			case s.kind.lasts(i):
				p.values[i] = uint64(s.sums[i])
			case over > 0:
				p.values[i] = uint64(math.Round(s.sums[i] / over.Seconds()))
			}
		}
		points = append(points, p)
	}
	return points
}

// lasts reports whether a value is a level, of which the last one counts, and no rate.
func (k kind) lasts(i int) bool {
	switch k {
	case ofGroup:
		return i == dirty || i == writeback || i == pacedWBPS
	case ofHost:
		return i == watched
	}
	return false
}
