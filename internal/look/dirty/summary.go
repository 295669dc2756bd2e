package dirty

// A Summary is what readings of one kind come to.
type Summary struct {
	Peak   Count   // of the reading whose sum was the largest
	Levels *Levels // of that reading; nil: not known, or none
	// Share is the peak's share of the limit; 0 without a limit.
	Share float64
	// Throttled is in how many readings writers were throttled, of those whose thresholds were
	// known: Judged.
	Throttled, Judged int
	Readings          int
}

// Host sums the host's readings up.
func Host(all []Reading) Summary {
	var s Summary
	for _, r := range all {
		s.add(r.Host, r.HostLevels)
	}
	return s
}

// Group sums the group's readings up; nil without any.
func Group(all []Reading) *Summary {
	var s Summary
	for _, r := range all {
		if r.Group != nil {
			s.add(*r.Group, r.OwnLevels)
		}
	}
	if s.Readings == 0 {
		return nil
	}
	return &s
}

func (s *Summary) add(c Count, l *Levels) {
	s.Readings++
	if l != nil {
		s.Judged++
		if c.Sum() > l.Throttle {
			s.Throttled++
		}
	}
	if s.Readings > 1 && c.Sum() <= s.Peak.Sum() {
		return
	}
	s.Peak, s.Levels, s.Share = c, l, 0
	if l != nil && l.Limit > 0 {
		s.Share = float64(c.Sum()) / float64(l.Limit)
	}
}
