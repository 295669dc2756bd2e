package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/state"
)

// Dir is where history is kept unless told otherwise.
const Dir = "/var/lib/weir/history"

// syncEvery is how often the finest level is brought to the disk: a power cut loses at most that
// of it. The others are brought there with each frame.
const syncEvery = 10 * time.Second

// Levels are what a Recorder keeps. The sizes are enough for 2,000 groups with limits, of which all
// do I/O each second of the 10 minutes, 500 in each 10 s of the day, and 150 in each minute of the
// 30 days. Where more do, the oldest goes earlier.
func Levels() []Level {
	return []Level{
		{Step: time.Second, Block: 2 << 20, Blocks: 16},
		{Step: 10 * time.Second, Block: 2 << 20, Blocks: 50},
		{Step: time.Minute, Block: 2 << 20, Blocks: 72},
	}
}

// Size is how many bytes the files of levels take, always.
func Size(levels []Level) (all int64) {
	for _, l := range levels {
		all += l.size()
	}
	return all
}

// nameOf is a level's file.
func (l Level) nameOf() string { return fmt.Sprintf("%ds.weirhist", int(l.Step/time.Second)) }

// A Recorder keeps snapshots. Its methods are for one goroutine.
type Recorder struct {
	dir     string
	levels  []Level
	writers []*writer // none: the files were lost, and Add opens them anew
	means   []*mean   // of the writers but the first
	unlock  func()
	synced  time.Time // or when files that were lost could not be opened anew
	lost    error     // why they could not; nil: they were not lost, or not tried yet
	last    time.Time
	beside  mean    // what others have read since the last snapshot that was kept
	points  []point // room for the next ones
}

// Record makes the files that are missing in dir, and goes on with those that are there, also with
// what a weird that was killed has left. Only one program can: others get state.ErrLocked.
func Record(dir string, levels []Level) (*Recorder, error) {
	r := &Recorder{dir: dir, levels: levels, unlock: func() {}, beside: mean{place: map[series]int{}}}
	for _, l := range levels[1:] {
		r.means = append(r.means, &mean{step: l.Step, place: map[series]int{}})
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// open opens the files, and makes those that are missing.
func (r *Recorder) open() (err error) {
	folder := state.Folder{Dir: r.dir, Mode: 0o750}
	if r.dir == Dir {
		err = folder.Make()
	} else {
		err = os.MkdirAll(r.dir, folder.Mode)
	}
	if err != nil {
		return err
	}
	lock, err := folder.TryLock()
	if err != nil {
		return err
	}
	r.unlock = lock.Unlock
	for _, l := range r.levels {
		path := filepath.Join(r.dir, l.nameOf())
		w, err := resume(path)
		if errors.Is(err, fs.ErrNotExist) {
			if err = create(path, l); err == nil {
				w, err = resume(path)
			}
		}
		if err != nil {
			return errors.Join(err, r.Close())
		}
		r.writers = append(r.writers, w)
	}
	return nil
}

// Beside takes a snapshot that somebody else has asked for between two that are kept: it becomes a part of the next one,
// whose window begins with it. So what is kept is the same, whoever else reads.
func (r *Recorder) Beside(s *watch.Snapshot) {
	if at, is := r.isNext(s); is {
		r.points = pointsOf(s, r.points)
		r.beside.sum(at, s.Window, r.points)
	}
}

// isNext reports whether a snapshot is not older than the one before, and when it was.
func (r *Recorder) isNext(s *watch.Snapshot) (at time.Time, is bool) {
	at = s.At.Round(0) // by the host's clock alone, which may be set back; Go compares by another one that is not
	if s.Window <= 0 || !at.After(r.last) && r.last.Sub(at) < time.Minute {
		return at, false
	}
	r.last = at
	return at, true
}

// Add keeps a snapshot, if it is not older than the one before. After an error the next one can be
// kept.
func (r *Recorder) Add(s *watch.Snapshot) error {
	at, is := r.isNext(s)
	if !is {
		return nil
	}
	if len(r.writers) == 0 {
		if wait := s.At.Sub(r.synced); 0 <= wait && wait < syncEvery && r.lost != nil {
			return r.lost // to ask for room each second would take it from others
		}
		r.synced = s.At
		if r.lost = r.open(); r.lost != nil {
			return r.lost
		}
	}
	r.points = pointsOf(s, r.points)
	window, points := s.Window, r.points
	if r.beside.over > 0 {
		r.beside.sum(at, window, points)
		_, window, points = r.beside.take()
	}
	errs := []error{r.writers[0].append(at, window, points)}
	for i, m := range r.means {
		if at, window, mean := m.add(at, window, points); mean != nil {
			w := r.writers[i+1]
			err := w.append(at, window, mean)
			if err == nil {
				err = w.sync()
			}
			errs = append(errs, err)
		}
	}
	if d := s.At.Sub(r.synced); d < 0 || d >= syncEvery {
		r.synced = s.At
		errs = append(errs, r.writers[0].sync(), r.look())
	}
	return errors.Join(errs...)
}

// Close ends recording. What a coarser level has not seen whole is lost.
func (r *Recorder) Close() error {
	var errs []error
	for _, w := range r.writers {
		errs = append(errs, w.sync(), w.f.Close())
	}
	r.writers = nil
	r.unlock()
	r.unlock = func() {}
	return errors.Join(errs...)
}

// look closes the files if one is no longer where readers look for it, or was cut: what is recorded there would be
// lost, and nobody would know. Add opens them anew.
func (r *Recorder) look() error {
	for i, w := range r.writers {
		f, is := w.f.(*os.File)
		if !is {
			continue
		}
		path := filepath.Join(r.dir, r.levels[i].nameOf())
		if whole, err := w.isWhole(f, path); err != nil || !whole {
			return errors.Join(err, fmt.Errorf("%s was removed, exchanged or cut", path), r.Close())
		}
	}
	return nil
}
