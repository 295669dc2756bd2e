package pacer

import (
	"container/heap"
	"errors"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/process"
)

// of finds the paced group of a place; nil if it is not paced.
func (s *server) of(limited Place) *paced {
	for p, h := range s.jobs {
		if h.job.Limited == limited {
			return p
		}
	}
	return nil
}

// add starts to pace a group, or changes its rate.
func (s *server) add(j Job) error {
	if err := j.check(); err != nil {
		return err
	}
	if j.Count == CountEscaped {
		// All that escapes at first is in doubt. What tells is loaded beside the watcher, as nobody is
		// to be paused for as long as that takes.
		_, err := s.escapes.get()
		if err != nil && s.elsewhere != nil && s.elsewhere() {
			s.over = true // who asks has no answer, and asks the next one
			return errLoading
		}
		if err == nil || errors.Is(err, errLoading) {
			_, parts := s.partial.get()
			if errors.Is(err, errLoading) || errors.Is(parts, errLoading) { // what is held goes on as it is
				return errLoading
			}
		}
	}
	j.Missed, j.Lapsed = "", ""
	record, err := s.dir.NewOf(recordKind, j.Limited.String(), j)
	if err != nil {
		return err
	}
	p := s.of(j.Limited)
	if p != nil {
		p.roster.places = nil // to find out whether it is the same group
	}
	// It was another group of that name, or cannot be read, or is counted in another way.
	var stops uint64
	if p != nil && (p.look(clockNow()) != nil || j.Count != CountWritten || s.jobs[p].job.Count != j.Count) {
		if p.roster.same() == nil {
			stops = p.stops
		}
		s.loop.remove(p)
		_ = s.drop(p) // it is begun anew
		p = nil
	}
	if p != nil {
		h := s.jobs[p]
		err := h.record.Done()
		h.job, h.record = j, record
		p.bucket = newBucket(j.WBPS, clockNow())
		p.meter.on(j)
		p.plan(clockNow())
		heap.Init(&s.loop.groups)
		return err
	}
	if p, err = s.begin(j); err != nil {
		return errors.Join(err, record.Done())
	}
	p.stops += stops
	if j.again() {
		s.arrivals.watchBeside(&p.roster, p.roster.limited)
	}
	s.jobs[p] = &held{job: j, record: record}
	heap.Push(&s.loop.groups, p)
	return nil
}

// begin pauses a group for the first time, after telling the guards about it.
func (s *server) begin(j Job) (*paced, error) {
	limited, err := j.Limited.Find(s.fs)
	if err != nil {
		return nil, err
	}
	meter, err := s.newMeter(j, limited)
	if err != nil {
		return nil, err
	}
	if err := j.repay(limited); err != nil {
		return nil, err
	}
	name := cgroupfs.CellName(limited)
	p := &paced{
		roster: roster{limited: limited, name: name, arrivals: s.arrivals},
		meter:  meter,
		cells:  cells{fs: s.fs, limited: limited, name: name, tell: s.tell, untell: s.untell},
	}
	p.cells.before = func() { s.haltBut(p) }
	p.roster.births, _ = process.OpenBirths() // without, groups are listed at each look
	if j.Cell.Path != "" {
		if p.cells.first, err = j.Cell.Find(s.fs); err == nil {
			p.cells.kept = clockNow() + firstFor
			_, err = p.cells.make(p.cells.first.Parent())
		}
	}
	if err == nil && j.Count == CountEscaped {
		err = p.cells.takeOver(j)
	}
	if err == nil {
		err = p.begin(j.WBPS)
	}
	if err != nil {
		return nil, errors.Join(err, s.end(p))
	}
	return p, nil
}

// end releases a group.
func (s *server) end(p *paced) error {
	s.repayOf(p)
	s.haltBut(p)
	p.meter.close() // that takes files, of which there may be none left
	err := p.cells.dissolve()
	p.cells.close()
	p.roster.close()
	return err
}

// drop releases a group and forgets it.
func (s *server) drop(p *paced) error {
	h := s.jobs[p]
	delete(s.jobs, p)
	if err := s.end(p); err != nil && !cgroupfs.IsGone(err) { // the guard and the record are for who comes next
		return errors.Join(err, h.record.Leave())
	}
	return h.record.Done()
}

// retryAfter is when a group that could not be read is tried again.
const retryAfter = 100 * time.Millisecond

// fail drops a group that is gone. If it cannot be read for another reason, its processes are
// resumed until the next try.
func (s *server) fail(p *paced, err error) {
	set := p.letGo()
	gone := cgroupfs.IsGone(err) || cgroupfs.IsGone(set) // something is: the group, or what was in it
	if gone && cgroupfs.IsGone(p.roster.same()) {
		s.loop.remove(p)
		if h := s.jobs[p]; h.job.again() {
			delete(s.jobs, p)
			_ = errors.Join(s.end(p), s.await(*h, isAway)) // the record says what there is to say
			return
		}
		_ = s.drop(p) // nobody is left to be told
		return
	}
	p.plan(clockNow() + retryAfter)
	heap.Init(&s.loop.groups)
}
