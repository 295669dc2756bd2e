package pacer

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// Paced lists the groups that any pacer holds.
func Paced(dir state.Dir) ([]Job, error) {
	return state.All[Job](dir, recordKind)
}

// readable is Paced for whoever asks about one group: a damaged record, of which Sweep tells, is
// another's.
func readable(dir state.Dir) ([]Job, error) {
	jobs, err := Paced(dir)
	if state.IsDamaged(err) {
		err = nil
	}
	return jobs, err
}

// Holding lists the groups that are paced, but for those whose record is damaged. Groups of a dead
// pacer that no other has taken over have lapsed.
func Holding(dir state.Dir) ([]Job, error) {
	jobs, err := readable(dir)
	return lapsed(dir, jobs, err)
}

// HoldingOf is Holding of one group, which takes no longer where there are many.
func HoldingOf(dir state.Dir, limited Place) ([]Job, error) {
	jobs, err := readableOf(dir, limited)
	return lapsed(dir, jobs, err)
}

// readableOf is readable of one group.
func readableOf(dir state.Dir, limited Place) ([]Job, error) {
	jobs, err := state.AllOf[Job](dir, recordKind, limited.String())
	if state.IsDamaged(err) {
		err = nil
	}
	return slices.DeleteFunc(jobs, func(j Job) bool { return j.Limited != limited }), err
}

// ByPlace are jobs by the group that each is about, for who asks about many groups.
func ByPlace(jobs []Job) map[Place][]Job {
	of := make(map[Place][]Job, len(jobs))
	for _, j := range jobs {
		of[j.Limited] = append(of[j.Limited], j)
	}
	return of
}

// lapsed notes in jobs that no pacer holds them, if that is so.
func lapsed(dir state.Dir, jobs []Job, err error) ([]Job, error) {
	if len(jobs) == 0 || os.Geteuid() != 0 { // it is root's
		return jobs, err
	}
	for began := time.Now(); ; time.Sleep(startLook) { // one is started by whoever finds that there is none
		lock, failed := dir.Own(lockName)
		if failed != nil || lock == nil {
			return jobs, errors.Join(err, failed)
		}
		if lock.Unlock(); time.Since(began) > takeOverMax {
			break
		}
	}
	for i := range jobs {
		jobs[i].Lapsed = "weir's pacer does not run, and cannot be started"
	}
	return jobs, err
}

// A Standing says how weir's pacer is.
type Standing int

// How it can be.
const (
	Unneeded Standing = iota // none runs, and no group is held on record
	Running
	// Lost is a pacer that was killed with its guards while groups are held on record, or a guard is about to start another.
	Lost
)

// StandingOf says how the pacer is. Where one runs, the answer takes some microseconds.
func StandingOf(dir state.Dir) Standing {
	lock, err := dir.Own(lockName)
	if err != nil || lock == nil {
		return Running
	}
	lock.Unlock()
	if jobs, _ := Paced(dir); len(jobs) > 0 { // what cannot be read is nobody's to resume
		return Lost
	}
	return Unneeded
}

// AwaitNeed waits until a group is held on record, or the context ends.
func AwaitNeed(ctx context.Context, dir state.Dir) error { return dir.Await(ctx, recordKind) }

// Sweep resumes the groups of a dead pacer, and starts another pacer for them. It removes cells that
// are nobody's.
func Sweep(dir state.Dir, fs *cgroupfs.FS) error {
	if os.Geteuid() != 0 { // it is root's
		return nil
	}
	err := sweep(dir, fs)
	if mayStray(dir, fs) {
		err = errors.Join(err, removeStrays(dir, fs))
	}
	return err
}

func sweep(dir state.Dir, fs *cgroupfs.FS) error {
	key, some := keyOf(fs)
	if some {
		some, _ = key.Exists()
	}
	jobs, unread := Paced(dir) // what is read is not to wait for what is not
	if len(jobs) == 0 && !some {
		return unread
	}
	lock, err := lockOfDead(dir)
	if err != nil || lock == nil {
		return errors.Join(unread, err)
	}
	defer lock.Unlock()
	if len(jobs) == 0 {
		return errors.Join(unread, removeKey(fs))
	}
	left := false
	err = state.Sweep(dir, recordKind, func(j Job) error {
		g, err := j.Limited.Find(fs)
		if err != nil {
			return err
		}
		if there, err := g.Exists(); err != nil || !there && !j.again() {
			return errors.Join(err, j.Release(fs))
		}
		left = true
		if err := j.Thaw(fs); err != nil {
			return err
		}
		return state.ErrKeep
	})
	if !left {
		return err
	}
	lock.Unlock() // the pacer waits for it
	_, failed := start()
	return errors.Join(err, failed)
}

// dyingMost is how long a pacer may have its lock and no socket: it is being killed, or begins. On a busy
// machine a process that was killed has its locks for half a second.
const dyingMost = time.Second

// lockOfDead takes the lock of a dead pacer. It returns nil if there is one.
func lockOfDead(dir state.Dir) (*state.Lock, error) {
	for began := time.Now(); ; time.Sleep(startLook) {
		lock, err := dir.Own(lockName)
		if err != nil || lock != nil {
			return lock, err
		}
		conn, err := net.DialTimeout("unix", filepath.Join(dir.Path(), socketName), startMax)
		if err == nil {
			err = conn.Close()
		}
		if err == nil || !isDown(err) || time.Since(began) > dyingMost {
			return nil, nil
		}
	}
}
