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
	return os.WriteFile(path, b.Bytes(), 0o644)
}
