package cgconfig

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/peek"
)

// Where libcgroup has its configuration: a file, and a directory of others.
const (
	MainFile = "/etc/cgconfig.conf"
	MoreDir  = "/etc/cgconfig.d"
)

// Bounds of the configuration: it is written by hand.
const (
	fileBytes = 1 << 20
	filesMost = 1000
)

// Files lists the files that libcgroup's own service reads, in the same order, on the host below
// root. If there is none, the list has the main file, which cannot be read then.
func Files(root string) ([]string, error) {
	main := filepath.Join(root, MainFile)
	entries, err := os.ReadDir(filepath.Join(root, MoreDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		return nil, fmt.Errorf("look for configurations: %w", err)
	}
	var more []string
	for _, e := range entries { // sorted by name
		name := filepath.Join(root, MoreDir, e.Name())
		if !strings.HasSuffix(name, ".conf") {
			continue
		}
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			continue // a FIFO is not waited for
		}
		more = append(more, name)
	}
	if len(more) > filesMost {
		return nil, fmt.Errorf("read %s: it has %d files; weir reads at most %d", filepath.Join(root, MoreDir), len(more), filesMost)
	}
	if _, err := os.Stat(main); errors.Is(err, fs.ErrNotExist) && len(more) > 0 {
		return more, nil
	}
	return append([]string{main}, more...), nil
}

// Read reads and parses a file. If it can be read and not parsed, the error is a *SyntaxError.
func Read(name string) (File, error) {
	text, err := readSmall(name, fileBytes)
	if err != nil {
		return File{}, err
	}
	sections, err := Parse(text)
	return File{name, sections}, err
}

// readSmall reads a file that is at most most bytes long: a regular one, and not what somebody may
// have put in its place.
func readSmall(file string, most int) (string, error) {
	if file != "/dev/stdin" && !strings.HasPrefix(file, "/dev/fd/") {
		text, err := peek.Regular(file, most)
		return string(text), err
	}
	f, err := os.Open(file) // the caller's own pipe: "<(COMMAND)"
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("it is longer than %d bytes", most)
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	return string(text), nil
}
