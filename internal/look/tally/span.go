package tally

import "time"

// A Span is the time in which a counter grew, to within a look or two; zero if it did not grow.
type Span struct{ First, Last time.Time }

// Duration is how long that was.
func (s Span) Duration() time.Duration { return s.Last.Sub(s.First) }

// grew records that a counter grew between two looks.
func (s *Span) grew(before, now time.Time) {
	if s.First.IsZero() {
		s.First = before
	}
	s.Last = now
}

// with is the span from the beginning of the first of two to the end of the last.
func (s Span) with(other Span) Span {
	if s.First.IsZero() {
		return other
	}
	if other.First.IsZero() {
		return s
	}
	if other.First.Before(s.First) {
		s.First = other.First
	}
	if other.Last.After(s.Last) {
		s.Last = other.Last
	}
	return s
}
