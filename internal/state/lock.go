package state

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/process"
)

const (
	// locksName is the one file of all locks. Only Tidy removes it: making and removing a file
	// for each lock is slow if /run is on a disk.
	locksName = "locks"
	// LockMost is how long a weir waits while one other weir has the lock. Work under a lock takes
	// milliseconds, and some seconds if systemd is slow.
	LockMost = 30 * time.Second
	// lockLookMost is the longest pause between two tries.
	lockLookMost = 20 * time.Millisecond
)

// A Lock is held by one weir until it is unlocked or the weir dies. It is a descriptor: with a lock
// on one byte (F_OFD_SETLK, fcntl(2)) of a file that only the user of the directory can open, or on a
// whole file or directory (flock(2)).
type Lock struct{ fd int }

// IsOn reports whether the file of a path is the one that the lock is on.
func (l *Lock) IsOn(path string) bool {
	var own, there unix.Stat_t
	return unix.Fstat(l.fd, &own) == nil && unix.Lstat(path, &there) == nil && own.Dev == there.Dev && own.Ino == there.Ino
}

// A BusyError says who has held a lock for too long.
type BusyError struct {
	What   string // what is locked
	Holder string // "weir set unit:x (process 4711)"
	Waited time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("lock %s: %s has held it for %s; wait until that process has ended, or end it, and try again", e.What, e.Holder, e.Waited)
}

// Wait locks the name, once no other weir has it locked, and waits for a limited time, or for as long as
// one weir after the other has it; what describes the lock for people.
func (d Dir) Wait(ctx context.Context, name, what string, most time.Duration) (*Lock, error) {
	return wait(ctx, what, most, func() (*Lock, error) { return d.try(name) }, func() string { return holderOf(d.locks(), byteOf(name)) })
}

// wait tries to lock until it has, asks twice meanwhile who holds the lock, and gives up if that is the
// same both times.
func wait(ctx context.Context, what string, most time.Duration, try func() (*Lock, error), holder func() string) (*Lock, error) {
	pause, had := time.Millisecond, ""
	for looked := time.Now(); ; {
		l, err := try()
		if l != nil || err != nil {
			return l, err
		}
		if now := time.Now(); now.Sub(looked) > most/2 {
			has := holder()
			if has == had {
				return nil, &BusyError{what, has, now.Sub(looked).Round(most / 100)}
			}
			had, looked = has, now
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(2*pause, lockLookMost)
	}
}

// Try is Wait without waiting: the lock is nil if another weir has it.
func (d Dir) Try(name string) (*Lock, error) { return d.try(name) }

func (d Dir) locks() string { return filepath.Join(d.path, locksName) }

// byteOf is the byte that represents a name.
func byteOf(name string) int64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // never fails
	return int64(sum.Sum64() >> 2)
}

// try locks a name's byte; the lock is nil if somebody has it.
func (d Dir) try(name string) (*Lock, error) {
	for range makeTries {
		l, err := d.tryOnce(byteOf(name))
		if !errors.Is(err, fs.ErrNotExist) {
			return l, err
		}
	}
	return nil, fmt.Errorf("lock %s: another weir keeps removing it", d.locks())
}

// tryOnce is try; fs.ErrNotExist says that the file was removed meanwhile.
func (d Dir) tryOnce(at int64) (*Lock, error) {
	if err := d.make(); err != nil {
		return nil, err
	}
	path := d.locks()
	fd, err := again(func() (int, error) {
		return unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return nil, fmt.Errorf("lock: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	_, err = again(func() (int, error) {
		return 0, unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1})
	})
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err == nil && st.Nlink > 0 {
		return &Lock{fd}, nil
	}
	_ = unix.Close(fd) // nothing was written
	switch {
	case err == nil:
		return nil, fs.ErrNotExist
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// makesLock are the flags with which lockFile makes a file that is there to be locked.
const makesLock = unix.O_RDWR | unix.O_CREAT

// lockFile locks a whole file, or a directory; the lock is nil if somebody has it.
func lockFile(path string, flags int) (*Lock, error) {
	fd, err := again(func() (int, error) {
		return unix.Open(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return nil, fmt.Errorf("lock: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	free, err := flock(fd, unix.LOCK_EX)
	if free && err == nil {
		return &Lock{fd}, nil
	}
	_ = unix.Close(fd) // nothing was written
	if err != nil {
		err = fmt.Errorf("lock %s: %w", path, err)
	}
	return nil, err
}

// flock locks an open file at once; free is false if somebody has it.
func flock(fd, how int) (free bool, err error) {
	_, err = again(func() (int, error) { return 0, unix.Flock(fd, how|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// isLocked reports whether somebody has locked a whole file.
func isLocked(path string) bool {
	fd, err := again(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	free, err := flock(fd, unix.LOCK_SH)
	return !free || err != nil
}

// again repeats a call that a signal interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// Unlock releases the lock, once.
func (l *Lock) Unlock() {
	if l != nil && l.fd >= 0 {
		_ = unix.Close(l.fd) // nothing was written
		l.fd = -1
	}
}

// holderOf says who has locked a byte of the file: the kernel lists a file's locks with the
// descriptors that they belong to (proc_pid_fdinfo(5)).
func holderOf(path string, at int64) string {
	processes, _ := filepath.Glob("/proc/[0-9]*/fd/*") // those that this user may look into
	for _, fd := range processes {
		if to, err := os.Readlink(fd); err != nil || to != path {
			continue
		}
		dir, number := filepath.Split(fd)
		info, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Clean(dir)), "fdinfo", number))
		if err != nil || !hasLock(string(info), at) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(fd, "/")[2])
		if err == nil {
			return fmt.Sprintf("%s (process %d)", process.Command(pid), pid)
		}
	}
	return "another weir"
}

// hasLock reports whether a descriptor's information lists a lock that begins at a byte:
// "lock:	1: OFDLCK ADVISORY  WRITE -1 00:1b:1234 77 77".
func hasLock(info string, at int64) bool {
	for line := range strings.Lines(info) {
		fields := strings.Fields(line)
		if len(fields) > 2 && fields[0] == "lock:" && fields[len(fields)-2] == strconv.FormatInt(at, 10) {
			return true
		}
	}
	return false
}
