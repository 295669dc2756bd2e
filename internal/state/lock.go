package state

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/process"
)

const (
	// lockPrefix begins the names of lock files.
	lockPrefix = "lock."
	// LockMost is how long a weir waits for another one that holds a lock. What is done
	// under one takes milliseconds, and some seconds where systemd is slow.
	LockMost = 30 * time.Second
	// lockLookMost is the longest pause between two tries.
	lockLookMost = 20 * time.Millisecond
)

// A Lock is held by one weir until it unlocks it, or dies: it is an flock(2) on a file
// that only the user of the directory can open.
type Lock struct {
	fd   int
	path string
}

// A BusyError says who has held a lock for longer than one waits.
type BusyError struct {
	What   string // what is locked
	Holder string // "weir set unit:x (process 4711)"
	Waited time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("lock %s: %s has held it for %s; wait until that has ended, or end it, and try again", e.What, e.Holder, e.Waited)
}

// Wait locks what a name stands for, once no other weir has it, and waits for at most so
// long; what says to people what that is.
func (d Dir) Wait(ctx context.Context, name, what string, most time.Duration) (*Lock, error) {
	if err := d.make(); err != nil {
		return nil, err
	}
	pause := time.Millisecond
	for began := time.Now(); ; {
		l, holder, err := d.try(name)
		if l != nil || err != nil {
			return l, err
		}
		if time.Since(began) > most {
			return nil, &BusyError{what, holder, most}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(2*pause, lockLookMost)
	}
}

// Try is Wait that does not wait: the lock is nil if another weir has it.
func (d Dir) Try(name string) (*Lock, error) {
	if err := d.make(); err != nil {
		return nil, err
	}
	l, _, err := d.try(name)
	return l, err
}

func (d Dir) lockFile(name string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // never fails
	return filepath.Join(d.path, lockPrefix+strconv.FormatUint(sum.Sum64(), 16))
}

// try locks a name's file, or says who has it.
func (d Dir) try(name string) (l *Lock, holder string, err error) {
	path := d.lockFile(name)
	for {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("lock: %w", &fs.PathError{Op: "open", Path: path, Err: err})
		}
		err = flock(fd)
		if errors.Is(err, unix.EWOULDBLOCK) {
			holder := holderOf(fd)
			return nil, holder, unix.Close(fd)
		}
		linked, statErr := isLinked(fd)
		if err = errors.Join(err, statErr); err != nil {
			_ = unix.Close(fd) // it is not locked
			return nil, "", fmt.Errorf("lock %s: %w", path, err)
		}
		if !linked { // its holder has removed it since
			_ = unix.Close(fd)
			continue
		}
		// Who waits is told the number. Without room for it there is a lock all the same.
		_, _ = unix.Pwrite(fd, []byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		return &Lock{fd, path}, "", nil
	}
}

func flock(fd int) error {
	for {
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// isLinked reports whether an open file has its name still.
func isLinked(fd int) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Nlink > 0, err
}

// holderOf says who holds a locked file, as far as it has written that.
func holderOf(fd int) string {
	var buf [32]byte
	n, err := unix.Pread(fd, buf[:], 0)
	if err != nil || n == 0 {
		return "another weir"
	}
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return "another weir"
	}
	return fmt.Sprintf("%s (process %d)", process.Command(pid), pid)
}

// Unlock lets the next one have the lock. Its file goes first, while nobody else can have
// locked it.
func (l *Lock) Unlock() {
	if l == nil {
		return
	}
	_ = unix.Unlink(l.path) // the next one does it
	_ = unix.Close(l.fd)
}

// SweepLocks removes the files of locks whose holders were killed.
func (d Dir) SweepLocks() error {
	paths, err := d.withPrefix(lockPrefix)
	if err != nil {
		return err
	}
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it has just been unlocked
		}
		if flock(fd) == nil {
			if linked, err := isLinked(fd); err == nil && linked {
				_ = unix.Unlink(path)
			}
		}
		_ = unix.Close(fd)
	}
	return nil
}
