package pacer

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// orphans are the groups of a dead pacer that this pacer could not take over yet.
type orphans struct {
	places []Place
	why    error // also that of records that cannot be read
	next   time.Duration
}

// orphanAgain is how often the pacer tries again to take them over.
const orphanAgain = time.Second

// adopt takes over the groups that a dead pacer held, if whether says so. A group that cannot
// be taken over does not delay the others. It does not end the pacer either, because the next
// pacer would end for the same reason.
func (s *server) adopt(whether func(Place) bool) {
	var left []Place
	var errs []error
	cells := sync.OnceValue(func() []cgroupfs.Group { return cellsOf(s.fs) })
	err := state.Sweep(s.dir, recordKind, func(j Job) error {
		if !whether(j.Limited) {
			if s.of(j.Limited) != nil || s.waiting[j.Limited] != nil { // somebody has set it since, by a record that is locked
				return nil
			}
			return state.ErrKeep
		}
		was := j.Lapsed
		err := s.renew(&j)
		if err == nil {
			err = s.add(j)
		}
		if cgroupfs.IsGone(err) {
			if err = j.Release(s.fs); err == nil && j.again() {
				err = s.awaitAdopted(j)
			}
		}
		if errors.Is(err, errLoading) {
			left = append(left, j.Limited)
			return state.ErrKeep
		}
		if err != nil {
			left = append(left, j.Limited)
			errs = append(errs, fmt.Errorf("pace cgroup %s again: %w", j.Limited.Path, err))
			return s.leaveOrphan(j, was, err)
		}
		if p := s.of(j.Limited); p != nil {
			p.forgive()
			p.cells.inherit(cells())
			s.jobs[p].resumed = true
		}
		return nil
	})
	s.orphans = orphans{left, errors.Join(append(errs, err)...), clockNow() + orphanAgain}
}

// inherit takes over the cells that a dead pacer has made, also those that are empty: they are removed as
// the others are. Nobody else would do it, and the owner of the group above could not remove that group.
func (c *cells) inherit(all []cgroupfs.Group) {
	within := c.limited // where its cells are
	if c.v1() {
		within = c.fs.With(Freezer).Root()
	}
	for _, own := range all {
		home := own.Parent()
		if own.Hierarchy() != within.Hierarchy() || !PlaceOf(within, "").Holds(PlaceOf(own, "")) || !own.In(c.name) || home.In(c.name) {
			continue
		}
		c.try(home, clockNow(), func() error {
			_, err := c.make(home)
			return err
		})
	}
}

// leaveRecords leaves all groups to the next pacer.
func (s *server) leaveRecords() {
	for _, h := range s.jobs {
		_ = h.record.Leave() // closing a file that was read has nothing to say
	}
	for _, w := range s.waiting {
		_ = w.record.Leave()
	}
}

// renew brings a job up to date whose group may be another one by now. One without a limit on
// writes is not the job's.
func (s *server) renew(j *Job) error {
	if !j.again() {
		return nil
	}
	g, err := j.Limited.Find(s.fs)
	if err != nil {
		return err
	}
	rules, err := g.RulesIfAny()
	if err != nil {
		return err
	}
	now, some := JobFor(g, rules)
	if !some {
		return fmt.Errorf("pace cgroup %s: its limit is gone: %w", j.Limited.Path, fs.ErrNotExist)
	}
	j.WBPS, j.Devices = now.WBPS, now.Devices
	return nil
}

// awaitAdopted has a job wait whose group a dead pacer has held, and that is gone.
func (s *server) awaitAdopted(j Job) error {
	record, err := s.dir.NewOf(recordKind, j.Limited.String(), j)
	if err != nil {
		return err
	}
	return s.await(held{job: j, record: record}, isAway)
}

// leaveOrphan notes in a group's record that the group could not be taken over.
func (s *server) leaveOrphan(j Job, was string, why error) error {
	j.Missed, j.Lapsed = "", "no process is paused and nothing is held until weir's pacer can take the group over ("+brief(why)+")"
	if j.Lapsed == was {
		return state.ErrKeep
	}
	record, err := s.dir.NewOf(recordKind, j.Limited.String(), j)
	if err != nil || record.Leave() != nil {
		return state.ErrKeep // the one that is there is as good
	}
	return nil // which removes that one
}

// brief is an error on one line.
func brief(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// tryOrphans tries again to take over the orphans, unless somebody has set their limits since.
func (s *server) tryOrphans(now time.Duration) {
	if len(s.orphans.places) == 0 || now < s.orphans.next {
		return
	}
	again := slices.DeleteFunc(s.orphans.places, func(p Place) bool { return s.of(p) != nil || s.waiting[p] != nil })
	s.adopt(func(p Place) bool { return slices.Contains(again, p) })
}

// disown releases a group that could not be taken over.
func (s *server) disown(limited Place) error {
	if !slices.Contains(s.orphans.places, limited) {
		return nil
	}
	s.orphans.places = slices.DeleteFunc(s.orphans.places, func(p Place) bool { return p == limited })
	var errs []error
	_ = state.Sweep(s.dir, recordKind, func(j Job) error { // what is wrong with other records is known: see adopt
		if j.Limited != limited {
			return state.ErrKeep
		}
		err := j.Release(s.fs)
		if errs = append(errs, err); err != nil {
			return state.ErrKeep
		}
		return nil
	})
	return errors.Join(errs...)
}

// note is what the asker should know: about the accuracy, and about processes that are not
// held.
func (s *server) note(q ask) string {
	notes := []string{s.thread.note}
	if s.orphans.why != nil {
		notes = append(notes, "the pacer cannot take over what another pacer held: "+brief(s.orphans.why))
	}
	if q.Add != nil {
		if p := s.of(q.Add.Limited); p != nil {
			notes = append(notes, p.cells.lapse())
		}
	}
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}

// noteEvery is how often the records are updated.
const noteEvery = 500 * time.Millisecond

// noteMissed writes into the records which processes the pacer cannot pause, and what it does not count.
func (s *server) noteMissed(now time.Duration) {
	if now-s.noted < noteEvery {
		return
	}
	s.noted = now
	for p, h := range s.jobs {
		why := s.missedOf(p)
		if why == h.job.Missed {
			continue
		}
		h.job.Missed = why
		if next, _ := h.record.Replace(h.job); next != nil { // else the record that there is stays
			h.record = next
		}
	}
}

// missedOf says what of a group is not held; empty: all is.
func (s *server) missedOf(p *paced) string {
	whys := []string{p.cells.lapse()}
	if _, is := p.meter.(*written); is { // of others nothing is counted by what processes have written
		whys = append(whys, s.exits.missed)
	}
	return strings.Join(slices.DeleteFunc(whys, func(why string) bool { return why == "" }), "; ")
}
