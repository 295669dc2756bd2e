package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/durable"
)

const (
	// recordMost bounds a record, in bytes: the longest has a few hundred trees or places.
	recordMost = 1 << 20
	// topMode is the mode of the directory that all stores are in: whoever may use a volume
	// there must get through, and nobody needs its names.
	topMode = 0o711
	// storeLook is the pause between two tries to lock a store.
	storeLook = 5 * time.Millisecond
)

// A Store is a directory of records that outlive boots: small files that belong to one user. The
// directory it is in is shared by all stores (/var/lib/weir).
type Store struct {
	Dir  string
	Mode os.FileMode // of the directory
}

// Make makes the directory and those above it, and gives it and the shared one their
// modes, whoever made them first.
func (s Store) Make() error {
	top := filepath.Dir(s.Dir)
	err := os.MkdirAll(filepath.Dir(top), 0o755)
	if err == nil {
		err = makeOwn(top, topMode)
	}
	if err == nil {
		err = makeOwn(s.Dir, s.Mode)
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

// ErrLocked is the error of TryLock while another weir has the store.
var ErrLocked = errors.New("another weir is working on it")

// TryLock keeps other weirs from changing the records until unlock is called. A store that
// is locked must have a directory that nobody else can open.
func (s Store) TryLock() (unlock func(), err error) {
	dir, err := os.Open(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	_, err = again(func() (int, error) { return 0, unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err == nil {
		return func() { _ = dir.Close() }, nil
	}
	_ = dir.Close() // nothing was written
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, fmt.Errorf("lock %s: %w", s.Dir, err)
}

// Lock is TryLock that makes the directory, and waits until the context ends.
func (s Store) Lock(ctx context.Context) (unlock func(), err error) {
	if err := s.Make(); err != nil {
		return nil, err
	}
	for {
		unlock, err := s.TryLock()
		if !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(storeLook):
		}
	}
}

// Read reads one record.
func (s Store) Read(name string) ([]byte, error) { return readRecord(filepath.Join(s.Dir, name)) }

// List calls read for each record whose name ends so, without that end. One that cannot be
// read, or that read refuses, is left out: it is in the error, which joins them all. A
// directory that is not there has none.
func (s Store) List(suffix string, read func(name string, data []byte) error) error {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list records: %w", err)
	}
	var errs []error
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), suffix)
		if !is {
			continue
		}
		data, err := s.Read(e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just been removed, or renamed
		}
		if err == nil {
			err = read(name, data)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read %s: %w; move it away", filepath.Join(s.Dir, e.Name()), err))
		}
	}
	return errors.Join(errs...)
}

// Save writes a record: all of it or nothing, also if the machine stops half way. draft is
// the name that it has meanwhile, and keeps if that fails.
func (s Store) Save(name, draft string, v any) error {
	text, err := Text(v)
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(s.Dir, name), filepath.Join(s.Dir, draft), text, 0o600)
}

// SaveForBoot is Save for a record that means nothing after a boot. It waits for no disk. After a power
// cut the record may be void (durable.IsVoid).
func (s Store) SaveForBoot(name, draft string, v any) error {
	text, err := Text(v)
	if err != nil {
		return err
	}
	return durable.Swap(filepath.Join(s.Dir, name), filepath.Join(s.Dir, draft), text, 0o600)
}

// Text is what Save writes of a value.
func Text(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text) + "\n", err
}

// Rename gives a record another name.
func (s Store) Rename(from, to string) error {
	return durable.Rename(filepath.Join(s.Dir, from), filepath.Join(s.Dir, to))
}

// readRecord reads a file that is a record: a regular one, which belongs to this user or to root, and
// not long. Anything else at its place is an error, and is neither waited for nor followed.
func readRecord(path string) ([]byte, error) {
	fd, err := again(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
	if errors.Is(err, unix.ELOOP) {
		return nil, errors.New("it is a link, and no record")
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.New("it is no regular file, and no record")
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return nil, fmt.Errorf("it belongs to user %d, so it is no record of weir", st.Uid)
	}
	data, err := io.ReadAll(io.LimitReader(f, recordMost+1))
	if err == nil && len(data) > recordMost {
		err = fmt.Errorf("it is longer than %d bytes, and no record", recordMost)
	}
	return data, err
}
