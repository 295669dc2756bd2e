package pacer

import (
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
	jobs, err := state.AllOf[Job](dir, recordKind, limited.String())
	if state.IsDamaged(err) {
		err = nil
	}
	return lapsed(dir, slices.DeleteFunc(jobs, func(j Job) bool { return j.Limited != limited }), err)
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

// IsLost reports whether groups are held on record and no pacer runs: it was killed with its guards, or a
// guard is about to start another. Where a pacer runs, the answer takes some microseconds.
func IsLost(dir state.Dir) bool {
	lock, err := dir.Own(lockName)
	if err != nil || lock == nil {
		return false
	}
	lock.Unlock()
	jobs, _ := Paced(dir) // what cannot be read is nobody's to resume
	return len(jobs) > 0
}

// Sweep resumes the groups of a dead pacer, and starts another pacer for them.
func Sweep(dir state.Dir, fs *cgroupfs.FS) error {
	if os.Geteuid() != 0 { // it is root's
		return nil
	}
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
