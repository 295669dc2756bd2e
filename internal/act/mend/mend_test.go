package mend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/inode"
)

// byStat tells files apart by stat(2).
type byStat struct{}

func (byStat) OfPaths(_ context.Context, paths []string) ([]inode.File, error) {
	var files []inode.File
	for _, p := range paths {
		var st unix.Stat_t
		if err := unix.Stat(p, &st); err != nil {
			return nil, &fs.PathError{Op: "stat", Path: p, Err: err}
		}
		files = append(files, inode.File{Path: p, Inode: st.Ino})
	}
	return files, nil
}

// What a process has open is kept by a handle whatever becomes of its name; once
// something else is there it is not taken.
func TestOpen(t *testing.T) {
	m := Mender{Owners: byStat{}}
	file := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files, err := byStat{}.OfPaths(t.Context(), []string{file})
	if err != nil {
		t.Fatal(err)
	}
	found := files[0]
	if h, err := m.open(t.Context(), found); err != nil || h.Close() != nil {
		t.Error(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := m.open(t.Context(), found); !errors.Is(err, errOther) {
		t.Errorf("removed: %v", err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.open(t.Context(), found); !errors.Is(err, errOther) {
		t.Errorf("replaced: %v", err)
	}
	found.PID, found.FD = os.Getpid(), int(f.Fd())
	if h, err := m.open(t.Context(), found); err != nil || h.Close() != nil {
		t.Errorf("by its handle: %v", err)
	}
	f.Close()
	if _, err := m.open(t.Context(), found); !errors.Is(err, errOther) {
		t.Errorf("closed: %v", err)
	}
}

// No reason speaks of descriptors.
func TestReason(t *testing.T) {
	const name = "/proc/self/fd/3"
	for want, err := range map[string]error{
		"it is empty":                    &inode.Refused{Path: name, Reason: "it is empty"},
		"it may be below; name the file": &inode.Refused{Path: name, Reason: "it may be below", Remedy: "name the file"},
		"through 96 rounds":              fmt.Errorf("mend: %w", &inode.Unmoved{Path: name, Rounds: 96}),
		"fdatasync: input/output error":  &fs.PathError{Op: "fdatasync", Path: name, Err: unix.EIO},
	} {
		if got := Reason(err); !strings.Contains(got, want) || strings.Contains(got, name) {
			t.Errorf("Reason(%v) = %q, want %q in it", err, got, want)
		}
	}
}
