package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/look/watch"
)

// A Reader reads what a Recorder has kept, also while it goes on. Close ends its use.
type Reader struct {
	rings []*ring // the finest first
}

// Open opens the files in dir. A level that is not there is left out.
func Open(dir string) (*Reader, error) {
	r := &Reader{}
	for _, l := range Levels() {
		one, err := open(filepath.Join(dir, l.nameOf()), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.rings = append(r.rings, one)
	}
	if len(r.rings) == 0 {
		return nil, fault.With(&fault.Unsupported{Feature: "read the history", Reason: "there is none in " + dir}, fault.Remedy{Do: fault.Record, Target: dir})
	}
	return r, nil
}

// Close closes the files.
func (r *Reader) Close() error {
	var errs []error
	for _, one := range r.rings {
		errs = append(errs, one.f.Close())
	}
	return errors.Join(errs...)
}

// frames calls do with the frames of a ring from one time to another, both included, in the order
// in which they were written, until do returns false. want says which series are read; nil: all.
func (r *ring) frames(ctx context.Context, from, to time.Time, want func(def) bool, do func(frame) bool) error {
	all, err := r.blocks()
	if err != nil {
		return err
	}
	buf := make([]byte, r.Block)
	for i, b := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b.began.After(to) || endsBefore(all, i, from) {
			continue
		}
		d := newDecoder(b.began, want)
		more := true
		_, err := r.records(b, buf, func(text []byte) bool {
			f, err := d.frame(text)
			if err != nil {
				return false
			}
			if !f.at.Before(from) && !f.at.After(to) {
				more = do(f)
			}
			return more
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// endsBefore reports whether the next block tells that one has nothing from a time on. It does not where the
// clock was set back in between.
func endsBefore(all []block, i int, from time.Time) bool {
	return i+1 < len(all) && all[i+1].began.Before(from) && !all[i+1].began.Before(all[i].began)
}

// reach is the first time from from on that a ring has something of: from itself, if a frame is about it; zero: it
// has nothing.
func (r *ring) reach(from time.Time) (first time.Time, err error) {
	all, err := r.blocks()
	if err != nil {
		return first, err
	}
	buf := make([]byte, r.Block)
	for i, b := range all {
		at := b.began
		if endsBefore(all, i, from) {
			continue
		}
		if !b.began.After(from) {
			if at, err = r.firstIn(b, buf, from); err != nil {
				return first, err
			}
		}
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first, nil
}

// firstIn is the time of the first frame of a block that is not before from, or from, if that frame is about it;
// zero: the block ends before.
func (r *ring) firstIn(b block, buf []byte, from time.Time) (first time.Time, err error) {
	d := newDecoder(b.began, func(def) bool { return false })
	_, err = r.records(b, buf, func(text []byte) bool {
		f, err := d.step(text)
		if err != nil || f.at.Before(from) {
			return err == nil
		}
		if first = f.at; !f.at.Add(-f.window).After(from) {
			first = from
		}
		return false
	})
	return first, err
}

// ringFrom is the finest that goes back to a time; else the one that goes back furthest after that. What it
// has of long before, as of a clock that was wrong at boot, does not count.
func (r *Reader) ringFrom(from time.Time) (*ring, error) {
	var best *ring
	var reach time.Time
	for _, one := range r.rings {
		first, err := one.reach(from)
		if err != nil {
			return nil, err
		}
		if first.IsZero() {
			continue
		}
		if !first.After(from) {
			return one, nil
		}
		// A finer one that goes back nearly as far is better: the coarser ones begin later by
		// up to their step.
		if best == nil || first.Add(one.Step).Before(reach) {
			best, reach = one, first
		}
	}
	return best, nil
}

const format = "2006-01-02 15:04:05"

// SeriesMost bounds the points of one answer.
const SeriesMost = 200_000

// At finds what all groups did around a time, as finely as it is known. What is expected to hold
// limits is not known of the past.
func (r *Reader) At(ctx context.Context, when time.Time) (*watch.Snapshot, error) {
	for _, one := range r.rings {
		var found *watch.Snapshot
		err := one.frames(ctx, when, when.Add(2*one.Step), nil, func(f frame) bool {
			found = f.snapshot()
			return false
		})
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, fault.With(&NothingError{"nothing was recorded at " + when.Format(format)}, fault.Remedy{Do: fault.OtherTime})
}

// Series finds what a target, or the group of a path, did from one time to another.
func (r *Reader) Series(ctx context.Context, target string, from, to time.Time) (watch.Series, error) {
	s := watch.Series{}
	one, err := r.ringFrom(from)
	if err != nil || one == nil {
		return s, errors.Join(err, nothing(target, from, to))
	}
	s.Step = one.Step
	of := func(d def) bool { return d.target == target || d.path != "" && "cgroup:"+d.path == target }
	err = one.frames(ctx, from, to, of, func(f frame) bool {
		for _, g := range f.snapshot().Groups {
			s.Target, s.Cgroup = g.Target, g.Path
			for _, d := range g.Devices {
				s.Points = append(s.Points, watch.Point{At: f.at, Window: f.window, Device: d, Pressure: g.Pressure, Memory: g.Memory})
			}
		}
		return len(s.Points) < SeriesMost
	})
	if err == nil && len(s.Points) == 0 {
		err = nothing(target, from, to)
	}
	if len(s.Points) >= SeriesMost {
		err = fmt.Errorf("read history: more than %d points; ask for less time", SeriesMost)
	}
	slices.SortStableFunc(s.Points, func(a, b watch.Point) int { return a.At.Compare(b.At) })
	return s, err
}

// A NothingError says that nothing was recorded of what was asked for.
type NothingError struct{ what string }

func (e *NothingError) Error() string { return "read history: " + e.what }

func nothing(target string, from, to time.Time) error {
	return fault.With(&NothingError{fmt.Sprintf("nothing of %s from %s to %s", target, from.Format(format), to.Format(format))}, fault.Remedy{Do: fault.OlderTime})
}
