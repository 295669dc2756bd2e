package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/cli"
)

// checkSVG refuses a file that cannot be written when all is measured.
func checkSVG(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return cli.Usagef("--svg %s: it is a directory; write a file's name", path)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return cli.Usagef("--svg %s: %s is no directory; make it first", path, dir)
	}
	err := unix.Access(path, unix.W_OK)
	if errors.Is(err, unix.ENOENT) {
		err = unix.Access(dir, unix.W_OK)
	}
	if err != nil {
		return fmt.Errorf("write --svg %s: %w", path, err)
	}
	return nil
}
