// Package svg draws what weir has measured into SVG files.
package svg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// Check refuses a file that could not be written when all is measured; none, "", can be. flag names
// the path in errors.
func Check(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fault.Misusef("%s %s: it is a directory; write a file's name", flag, path)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fault.Misusef("%s %s: %s is no directory; make it first", flag, path, dir)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSymlink && dir != "/dev" {
		return fault.Misusef("%s %s: it is a link; name the file itself", flag, path)
	}
	err := unix.Access(path, unix.W_OK)
	if errors.Is(err, unix.ENOENT) {
		err = unix.Access(dir, unix.W_OK)
	}
	if err != nil {
		return fmt.Errorf("write %s %s: %w", flag, path, err)
	}
	return nil
}

// write makes a file of a drawing.
func write(path string, draw func(io.Writer) error) error {
	var b bytes.Buffer
	if err := draw(&b); err != nil {
		return err
	}
	f, err := create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	return errors.Join(err, f.Close())
}

// create opens a file for a picture. In a directory of somebody else's, the name can be a link to a
// file that must not be written, or a FIFO that nobody reads. Links of /dev lead to the caller's
// own streams.
func create(path string) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC | unix.O_NONBLOCK
	if filepath.Dir(path) != "/dev" {
		flags |= unix.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0o644)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("write %s: it is a link; name the file itself", path)
	case errors.Is(err, unix.ENXIO):
		return nil, fmt.Errorf("write %s: it is a pipe that nobody reads", path)
	}
	return f, err
}
