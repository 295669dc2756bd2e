package reconcile

import "time"

const (
	// ResyncTime is how often everything is compared, in case that events were missed.
	ResyncTime = 5 * time.Minute
	// ResyncMost is how often that is where comparisons find nothing: with each of these the time until
	// the next one doubles. To compare 2,000 containers takes 1.5 s of a processor, which each five
	// minutes is ten times what an agent at rest takes for all else.
	ResyncMost = 40 * time.Minute
)

// comparing is when all targets of a source are compared next without an event.
type comparing struct {
	at    time.Time
	every time.Duration
}

func newComparing(now time.Time) comparing { return comparing{now.Add(ResyncTime), ResyncTime} }

// looked notes that a look at everything began at a time. told says that an event asked for it; calm, that
// it succeeded and found nothing that no event had told of.
func (c *comparing) looked(began time.Time, told, calm bool) {
	switch due := !told && !began.Before(c.at); {
	case due && calm:
		c.every = min(2*c.every, ResyncMost)
	case due, told: // else only attempts that had failed were due
		c.every = ResyncTime
	}
	c.at = began.Add(c.every)
}

// isSilent reports whether events of a source that came once do not come now, or nobody tells of any.
func (l *Loop) isSilent(s *source) bool {
	if l.Silent != nil && l.Silent() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.here && !s.how.Follows
}
