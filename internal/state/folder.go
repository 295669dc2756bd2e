package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/durable"
)

const (
	// topMode is the mode of the directory that all folders are in: whoever may use a volume
	// there must get through, and nobody needs its names.
	topMode = 0o711
	// folderLook is the pause between two tries to lock a folder.
	folderLook = 5 * time.Millisecond
)

// A Folder is a directory of small files that outlive boots and belong to one user. The directory
// it is in is shared by all folders (/var/lib/weir).
type Folder struct {
	Dir  string
	Mode os.FileMode // of the directory; its files have the same one, without execution
}

// Make makes the directory and those above it, and gives it and the shared one their
// modes, whoever made them first.
func (f Folder) Make() error {
	top := filepath.Dir(f.Dir)
	err := os.MkdirAll(filepath.Dir(top), 0o755)
	if err == nil {
		err = makeOwn(top, topMode)
	}
	if err == nil {
		err = makeOwn(f.Dir, f.Mode)
	}
	if err != nil {
		return fmt.Errorf("make the directory of records: %w", err)
	}
	return nil
}

func makeOwn(path string, mode os.FileMode) error {
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is no directory; move it away", path)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d; move it away, or give it to user %d", path, st.Uid, os.Geteuid())
	case os.FileMode(st.Mode).Perm() == mode:
		return nil
	}
	return os.Chmod(path, mode)
}

// ErrLocked is the error of TryLock while another weir has the folder.
var ErrLocked = errors.New("another weir is working on it")

// TryLock keeps other weirs from changing the records until the lock is released. A folder that
// is locked must be one that nobody else can open.
func (f Folder) TryLock() (*Lock, error) {
	lock, err := lockFile(f.Dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil && lock == nil {
		err = fmt.Errorf("lock %s: %w", f.Dir, ErrLocked)
	}
	return lock, err
}

// Lock is TryLock that makes the directory, and waits until the context ends.
func (f Folder) Lock(ctx context.Context) (*Lock, error) {
	if err := f.Make(); err != nil {
		return nil, err
	}
	for {
		lock, err := f.TryLock()
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(folderLook):
		}
	}
}

// Path is where a file of the folder is.
func (f Folder) Path(name string) string { return filepath.Join(f.Dir, name) }

// Write gives a file a text: all of it or nothing, also if the machine stops half way. draft is
// the name that it has meanwhile, and keeps if that fails.
func (f Folder) Write(name, draft, text string) error {
	return durable.Replace(f.Path(name), f.Path(draft), text, f.fileMode())
}

func (f Folder) fileMode() os.FileMode { return f.Mode &^ 0o111 }

// Read reads a file. The error is a *DamagedError if it is none that weir could have written.
func (f Folder) Read(name string) ([]byte, error) { return read(f.Path(name)) }

// Remove removes files, also those that are not there.
func (f Folder) Remove(names ...string) error {
	for _, name := range names {
		if err := os.Remove(f.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
