// Package cgrouptest makes hosts of plain files for tests.
package cgrouptest

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A Host is a directory that looks like one with a single hierarchy, of I/O.
type Host struct {
	Root string
	FS   *cgroupfs.FS
	IO   *cgroupfs.Hierarchy
	t    testing.TB
}

// V1Dir and V2Dir are where the hierarchy is, below the root.
const (
	V1Dir = "sys/fs/cgroup/blkio"
	V2Dir = "sys/fs/cgroup"
)

// New makes a host until the end of the test. Files are named below its root; they add to
// what the hierarchy needs, or take its place.
func New(t testing.TB, version cgroupfs.Version, files map[string]string) Host {
	t.Helper()
	all := map[string]string{
		"proc/1/mountinfo":            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		V2Dir + "/cgroup.controllers": "io\n",
	}
	if version == cgroupfs.V1 {
		all = map[string]string{"proc/1/mountinfo": "30 23 0:26 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n", V1Dir + "/tasks": ""}
	}
	maps.Copy(all, files)
	h := Host{Root: t.TempDir(), t: t}
	for name, text := range all {
		h.Write(name, text)
	}
	var err error
	if h.FS, err = cgroupfs.Open(h.Root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.FS.Close(); err != nil {
			t.Error(err)
		}
	})
	if h.IO, err = h.FS.IO(version); err != nil {
		t.Fatal(err)
	}
	return h
}

// Write makes a file, or gives it another content.
func (h Host) Write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.Root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		h.t.Fatal(err)
	}
}

// Group opens a group of the hierarchy.
func (h Host) Group(path string) cgroupfs.Group {
	h.t.Helper()
	g, err := h.IO.Group(path)
	if err != nil {
		h.t.Fatal(err)
	}
	return g
}
