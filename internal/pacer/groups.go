package pacer

import (
	"container/heap"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/process"
)

// of finds the group of a place; nil if it is not paced.
func (s *server) of(limited Place) *paced {
	for p, h := range s.jobs {
		if h.job.Limited == limited {
			return p
		}
	}
	return nil
}

// add begins to pace a group, or paces it at another rate.
func (s *server) add(j Job) error {
	if err := j.check(); err != nil {
		return err
	}
	record, err := s.dir.New(recordKind, j)
	if err != nil {
		return err
	}
	p := s.of(j.Limited)
	if p != nil && p.look(clockNow()) != nil { // it was another group of that name, or cannot be read
		s.loop.remove(p)
		_ = s.drop(p) // it is begun anew
		p = nil
	}
	if p != nil {
		h := s.jobs[p]
		err := h.record.Done()
		h.job, h.record = j, record
		p.bucket = newBucket(j.WBPS, clockNow())
		p.meter.devices = slices.Clone(j.Devices)
		p.due = clockNow()
		heap.Init(&s.loop.groups)
		return err
	}
	if p, err = s.begin(j); err != nil {
		return errors.Join(err, record.Done())
	}
	s.jobs[p] = &held{j, record}
	heap.Push(&s.loop.groups, p)
	return nil
}

// begin stops a group for the first time, once the guard knows of it.
func (s *server) begin(j Job) (*paced, error) {
	limited, err := j.Limited.Find(s.fs)
	if err != nil {
		return nil, err
	}
	stopped, err := j.Stopped.Find(s.fs)
	if err != nil {
		return nil, err
	}
	if j.Own {
		if err := stopped.Create(); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("make cgroup: %w", err)
		}
	}
	brake, err := stopped.Brake()
	if err != nil {
		return nil, err
	}
	p := &paced{meter: meter{limited: limited, stopped: stopped, devices: slices.Clone(j.Devices)}, brake: brake}
	p.meter.mayJoin = func(pid int) bool {
		g, err := s.fs.OfProcess(stopped.Hierarchy(), pid)
		return err == nil && g == stopped.Parent()
	}
	p.meter.births, _ = process.OpenBirths() // without, groups are listed at each look
	if err := s.tell(p); err != nil {
		p.meter.close()
		return nil, errors.Join(err, brake.Close())
	}
	if err := p.begin(j.WBPS); err != nil {
		p.meter.close()
		return nil, errors.Join(err, j.Release(s.fs), brake.Close())
	}
	return p, nil
}

// drop lets a group go, and forgets it.
func (s *server) drop(p *paced) error {
	h := s.jobs[p]
	delete(s.jobs, p)
	thaw := p.brake.Set(false)
	err := h.job.Release(s.fs)
	p.meter.close()
	if thaw != nil && !cgroupfs.IsGone(thaw) { // the guard and the record are for who comes next
		return errors.Join(thaw, err, p.brake.Close(), h.record.Leave())
	}
	file, _ := p.meter.stopped.ThawWrite()
	return errors.Join(err, s.guard.release(file), p.brake.Close(), h.record.Done())
}

// retryAfter is when a group that could not be looked at is tried again.
const retryAfter = 100 * time.Millisecond

// fail takes a group off that is gone. One that cannot be looked at for another reason is
// let go until the next try.
func (s *server) fail(p *paced, err error) {
	if set := p.set(false); cgroupfs.IsGone(err) || cgroupfs.IsGone(set) {
		s.loop.remove(p)
		_ = s.drop(p) // nobody is left to be told
		return
	}
	p.due = clockNow() + retryAfter
	s.loop.fix()
}
