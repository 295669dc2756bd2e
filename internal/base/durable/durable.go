// Package durable writes small files that outlive a power cut: the old text or the new one,
// and never a part.
package durable

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Replace gives a file a text. The draft, which is in the same directory, is where the text
// is written first; it is left there if that fails.
func Replace(path, draft, text string, mode os.FileMode) error {
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return Rename(draft, path)
}

// Swap is Replace for what means nothing after a boot: a process that reads sees the old text or the
// new one. After a power cut the file may be empty, or full of zeros (IsVoid). It waits for no disk, and
// for another Swap of the same draft.
func Swap(path, draft, text string, mode os.FileMode) error {
	f, err := own(draft, mode)
	if err != nil {
		return err
	}
	defer f.Close() // which lets the next one in
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return os.Rename(draft, path)
}

// swapsMost bounds how often a draft is opened that others rename meanwhile.
const swapsMost = 1000

// own opens a draft that nobody else writes to. Whoever has opened one that was renamed before it was
// locked takes another.
func own(draft string, mode os.FileMode) (*os.File, error) {
	for range swapsMost {
		f, err := os.OpenFile(draft, os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, mode)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		var its, there unix.Stat_t
		if err == nil {
			err = unix.Fstat(int(f.Fd()), &its)
		}
		if err != nil {
			return nil, errors.Join(&os.PathError{Op: "lock", Path: draft, Err: err}, f.Close())
		}
		if unix.Lstat(draft, &there) == nil && its.Ino == there.Ino {
			return f, nil
		}
		_ = f.Close() // nothing was written
	}
	return nil, &os.PathError{Op: "lock", Path: draft, Err: unix.EAGAIN}
}

// IsVoid reports whether a text is what a power cut may leave of a file that Swap wrote.
func IsVoid(text []byte) bool { return len(bytes.Trim(text, "\x00")) == 0 }

// Rename gives a file another name in its directory.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return Sync(filepath.Dir(to))
}

// Sync brings a directory's names to the disk.
func Sync(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
