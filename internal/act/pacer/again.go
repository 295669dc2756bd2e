package pacer

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A waiting job's group is gone, but its owner keeps its limit: systemd, for a unit that is
// stopped or restarted. The pacer will hold the next group of that name, at the rate of its
// rule then.
type waiting struct {
	held
	watch roster        // of no group: it is told of changes beside where the group was
	since time.Duration // when the group was first seen again, without a rule; 0: it is not there
	next  time.Duration
}

const (
	// waitAgain is how often the pacer looks for the group, if nothing reports a new one.
	waitAgain = time.Second
	// waitSoon is how often an existing group is checked until it has its rule, and waitMost
	// how long it may take to get one: systemd and runc write it before they start anything.
	waitSoon = 5 * time.Millisecond
	waitMost = 2 * time.Second
)

// await makes a job wait for its group. Meanwhile the record says that nothing is held.
func (s *server) await(h held, why string) error {
	h.job.Lapsed = why
	next, err := h.record.Replace(h.job)
	if next == nil {
		return errors.Join(err, h.record.Leave()) // for who comes next
	}
	h.record = next
	w := &waiting{held: h, next: clockNow()}
	if limited, err := h.job.Limited.Find(s.fs); err == nil {
		s.arrivals.watchBeside(&w.watch, limited)
	}
	if s.waiting == nil {
		s.waiting = make(map[Place]*waiting)
	}
	s.waiting[h.job.Limited] = w
	return err
}

// again reports whether a job waits for the next group of its name.
func (j Job) again() bool {
	return slices.ContainsFunc(j.KeptIn, func(file string) bool {
		_, err := os.Lstat(file)
		return err == nil
	})
}

// isAway is why a job lapses whose group is gone.
const isAway = "its group is gone; weir's pacer holds the next one of that name"

// forgo ends a wait.
func (s *server) forgo(limited Place) error {
	w := s.waiting[limited]
	if w == nil {
		return nil
	}
	delete(s.waiting, limited)
	s.arrivals.forget(&w.watch)
	return w.record.Done()
}

// tryWaiting takes up the waiting jobs whose groups exist again.
func (s *server) tryWaiting(now time.Duration) {
	for limited, w := range s.waiting {
		if now < w.next && !w.watch.arrived {
			continue
		}
		w.watch.arrived = false
		w.next = now + waitAgain
		g, err := limited.Find(s.fs)
		if err != nil {
			continue
		}
		there, err := g.Exists()
		if err == nil && !there && !w.job.again() {
			_ = s.forgo(limited) // it is as good as forgotten
			continue
		}
		if err != nil || !there {
			w.since = 0
			s.arrivals.watchBeside(&w.watch, g) // what is above it may be another one now
			continue
		}
		s.takeUp(w, g, now)
	}
}

// takeUp paces a group that exists again, once it has a rule. A group that gets none has lost
// its limit, and the pacer does not hold it.
func (s *server) takeUp(w *waiting, g cgroupfs.Group, now time.Duration) {
	rules, err := g.RulesIfAny()
	j, some := JobFor(g, rules)
	switch {
	case err == nil && some:
		j.Count, j.KeptIn = w.job.Count, w.job.KeptIn
		if err = s.add(j); err == nil {
			_ = s.forgo(j.Limited) // the record would be taken over, and found to be another's
			return
		}
		if cgroupfs.IsGone(err) || errors.Is(err, errLoading) {
			return
		}
		w.job.Lapsed = "weir's pacer cannot hold the group, and tries again (" + brief(err) + ")"
		if next, _ := w.record.Replace(w.job); next != nil { // else the record that there is stays
			w.record = next
		}
	case w.since == 0:
		w.since, w.next = now, now+waitSoon
	case now-w.since > waitMost:
		_ = s.forgo(w.job.Limited)
	default:
		w.next = now + waitSoon
	}
}

// dueWaiting is when to check the next of them.
func (s *server) dueWaiting(until time.Duration) time.Duration {
	for _, w := range s.waiting {
		if w.watch.arrived {
			return 0
		}
		until = min(until, w.next)
	}
	return until
}
