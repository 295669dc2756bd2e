package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Tidy removes the directory of a user other than root, if nothing is on record there and no
// weir holds a lock: to a user who was refused, weir leaves nothing. Root's is the host's, and
// stays.
func (d Dir) Tidy() error {
	if os.Getuid() == 0 {
		return nil
	}
	return d.tidy()
}

func (d Dir) tidy() error {
	all, err := d.withPrefix("")
	if err != nil || len(all) > 1 || len(all) == 1 && filepath.Base(all[0]) != locksName {
		return err
	}
	if len(all) == 1 {
		free, err := d.removeLocks()
		if err != nil || !free {
			return err
		}
	}
	err = os.Remove(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("remove the directory of records: %w", err)
	}
	return nil
}

// removeLocks removes the file of locks while it holds all of them. Who has opened it before
// finds out: see try.
func (d Dir) removeLocks() (free bool, err error) {
	fd, err := again(func() (int, error) {
		return unix.Open(d.locks(), unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if errors.Is(err, unix.ENOENT) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock: %w", &fs.PathError{Op: "open", Path: d.locks(), Err: err})
	}
	defer unix.Close(fd)
	_, err = again(func() (int, error) { // of no length: to the end of what there can be
		return 0, unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart})
	})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	if err == nil {
		err = os.Remove(d.locks())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("remove the locks: %w", err)
	}
	return true, nil
}

// runtimeDir is where a user's programs keep the files of one session, and false if this user
// has no such directory: after su(1), it may belong to another user.
func runtimeDir(root string) (path string, is bool) {
	run := os.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(run) { // the XDG Base Directory Specification has it passed over
		return "", false
	}
	path = filepath.Join(root, run)
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return "", false
	}
	return path, int(st.Uid) == os.Getuid()
}
