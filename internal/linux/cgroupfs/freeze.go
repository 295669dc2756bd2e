package cgroupfs

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// The files that freeze a group's processes and thaw them (cgroup-v1/freezer-subsystem.rst;
// cgroup-v2.rst, "cgroup.freeze"). v1's file wakes each process. A process that is in the
// kernel stops when it returns from there.
const (
	freezeFileV1 = "freezer.state"
	freezeFileV2 = "cgroup.freeze"
)

func (h *Hierarchy) freezeFile() string {
	if h.Version == V1 {
		return freezeFileV1
	}
	return freezeFileV2
}

// Freezes reports whether groups of the hierarchy can be frozen.
func (h *Hierarchy) Freezes() bool { return h.Version == V2 || h.Has("freezer") }

// freezeLine is the line that pauses the processes, or resumes them.
func (h *Hierarchy) freezeLine(stop bool) string {
	switch {
	case h.Version == V1 && stop:
		return "FROZEN"
	case h.Version == V1:
		return "THAWED"
	case stop:
		return "1"
	}
	return "0"
}

// ThawWrite returns the line that resumes the group's processes, and its file.
func (g Group) ThawWrite() (file, line string) {
	return g.File(g.h.freezeFile()), g.h.freezeLine(false)
}

// Freeze pauses the group's processes.
func (g Group) Freeze() error { return g.write(g.h.freezeFile(), g.h.freezeLine(true)) }

// Thaw resumes the group's processes.
func (g Group) Thaw() error { return g.write(g.h.freezeFile(), g.h.freezeLine(false)) }

// Frozen reports whether the group itself is set to be frozen, regardless of the groups above.
func (g Group) Frozen() (bool, error) {
	if g.h.Version == V1 {
		text, err := g.read("freezer.self_freezing")
		return strings.TrimSpace(text) == "1", err
	}
	text, err := g.read(freezeFileV2)
	return strings.TrimSpace(text) == "1", err
}

// Still reports whether all processes of a group that is set to be frozen have stopped: one that
// is in a system call goes on until that ends.
func (g Group) Still() (bool, error) {
	if g.h.Version == V1 {
		text, err := g.read(freezeFileV1)
		return strings.TrimSpace(text) == g.h.freezeLine(true), err
	}
	text, err := g.read("cgroup.events")
	return strings.Contains(text, "frozen 1"), err
}

// FrozenAbove reports whether the owner of a cell's home, or of a group above that, has it frozen: on v2
// once all of its processes have stopped.
func (g Group) FrozenAbove() (bool, error) {
	if g.h.Version == V1 {
		text, err := g.read("freezer.parent_freezing")
		return strings.TrimSpace(text) == "1", err
	}
	return g.Home().Still()
}

// A Brake pauses and resumes a group's processes many times a second.
type Brake struct {
	fd         int
	name       string
	stop, pass []byte
}

// Brake opens the group's freezer file. Close does not resume the processes.
func (g Group) Brake() (*Brake, error) {
	if !g.h.Freezes() || g.IsRoot() {
		return nil, &fault.Unsupported{Feature: "freeze cgroup " + g.Dir(), Reason: "it has no " + g.h.freezeFile(), Remedy: "mount cgroup v1's freezer, or use a group below the root group"}
	}
	file := g.h.freezeFile()
	fd, err := g.h.open(g.path+"/"+file, unix.O_WRONLY)
	if err != nil {
		return nil, err
	}
	return &Brake{fd: fd, name: g.File(file), stop: []byte(g.h.freezeLine(true)), pass: []byte(g.h.freezeLine(false))}, nil
}

// Check returns an error if somebody other than the caller could resume the processes, because
// the group belongs to another user.
func (b *Brake) Check() error {
	var st unix.Stat_t
	if err := unix.Fstat(b.fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: b.name, Err: err}
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return fmt.Errorf("pause processes with %s: it belongs to user %d (mode %#o), who could resume them; remove that cgroup", b.name, st.Uid, st.Mode&0o777)
	}
	return nil
}

// Set pauses the processes, or resumes them.
func (b *Brake) Set(stop bool) error {
	line := b.pass
	if stop {
		line = b.stop
	}
	if _, err := unix.Pwrite(b.fd, line, 0); err != nil {
		return &fs.PathError{Op: "write", Path: b.name, Err: err}
	}
	return nil
}

// Close closes the file.
func (b *Brake) Close() error {
	if err := unix.Close(b.fd); err != nil {
		return fmt.Errorf("close %s: %w", b.name, err)
	}
	return nil
}
