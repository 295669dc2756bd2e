package tempdir

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A Dir is a folder that belongs to this process.
type Dir struct {
	Path string
	lock *os.File
}

// Make makes a folder below parent whose name begins with prefix, and removes those
// of dead owners that are there. All that is below parent with this prefix must have
// been made so.
func Make(parent, prefix string) (*Dir, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, fmt.Errorf("make temporary folder: %w", err)
	}
	if err := sweep(parent, prefix); err != nil {
		return nil, fmt.Errorf("make temporary folder: %w", err)
	}
	for {
		path, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, fmt.Errorf("make temporary folder: %w", err)
		}
		// Until it is locked, another process may take it for a dead owner's.
		lock, err := own(path)
		if err != nil {
			return nil, fmt.Errorf("make temporary folder: %w", err)
		}
		if lock != nil {
			return &Dir{Path: path, lock: lock}, nil
		}
	}
}

// Remove removes the folder.
func (d *Dir) Remove() error {
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close())
}

// Keep gives the folder another name, for others to read, and it is temporary no more.
func (d *Dir) Keep(path string) error {
	return errors.Join(os.Chmod(d.Path, 0o755), os.Rename(d.Path, path), d.lock.Close())
}

// sweep removes what dead owners left. What cannot be removed is no reason to stop.
func sweep(parent, prefix string) error {
	paths, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		lock, err := own(path)
		if err == nil && lock != nil {
			err = errors.Join(os.RemoveAll(path), lock.Close())
		}
		if err != nil && !errors.Is(err, os.ErrPermission) { // another user's
			slog.Warn("temporary folder of a killed process stays", "folder", path, "error", err)
		}
	}
	return nil
}

// own locks the folder at path. It gives nothing if another has it, or if it went
// away, as it does when it is swept between its making and its locking.
func own(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && isAt(f, path) {
		return f, nil
	}
	_ = f.Close()
	if err == nil || errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

func isAt(f *os.File, path string) bool {
	locked, errLocked := f.Stat()
	there, errThere := os.Stat(path)
	return errLocked == nil && errThere == nil && os.SameFile(locked, there)
}
