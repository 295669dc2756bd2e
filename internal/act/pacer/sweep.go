package pacer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// Paced lists the groups that any pacer holds.
func Paced(dir state.Dir) ([]Job, error) {
	var jobs []Job
	err := dir.Each(recordKind, func(data []byte) error {
		var j Job
		if err := json.Unmarshal(data, &j); err != nil {
			return fmt.Errorf("read record of a paced group: %w", err)
		}
		jobs = append(jobs, j)
		return nil
	})
	return jobs, err
}

// Holding lists the groups that are paced, as Paced does. Groups of a dead pacer that no other
// has taken over have lapsed.
func Holding(dir state.Dir) ([]Job, error) {
	jobs, err := Paced(dir)
	if len(jobs) == 0 || os.Geteuid() != 0 { // it is root's
		return jobs, err
	}
	for began := time.Now(); ; time.Sleep(startLook) { // one is started by whoever finds that there is none
		lock, dead, failed := dir.Lock(lockName)
		if failed != nil || !dead {
			return jobs, errors.Join(err, failed)
		}
		if failed = lock.Close(); failed != nil || time.Since(began) > takeOverMax {
			break
		}
	}
	for i := range jobs {
		jobs[i].Lapsed = "weir's pacer does not run, and cannot be started"
	}
	return jobs, err
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
	defer lock.Close()
	if len(jobs) == 0 {
		return errors.Join(unread, removeKey(fs))
	}
	left := false
	err = dir.Sweep(recordKind, func(data []byte) error {
		var j Job
		if err := json.Unmarshal(data, &j); err != nil {
			return fmt.Errorf("read record of a paced group: %w", err)
		}
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
	return errors.Join(err, lock.Close(), start())
}

// dyingMost is how long a pacer may have its lock and no socket: it is being killed, or begins.
const dyingMost = 200 * time.Millisecond

// lockOfDead takes the lock of a dead pacer. It returns nil if there is one.
func lockOfDead(dir state.Dir) (*os.File, error) {
	for began := time.Now(); ; time.Sleep(startLook) {
		lock, dead, err := dir.Lock(lockName)
		if err != nil || dead {
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
