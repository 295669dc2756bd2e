package cgroupfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/fault"
)

// OfProcess returns the group of a process in one hierarchy; pid 0 is the caller. If weir has
// put the process into a cell, it returns the cell's home. If the process is gone, IsGone is
// true for the error.
func (fs *FS) OfProcess(h *Hierarchy, pid int) (Group, error) {
	process := "self"
	if pid != 0 {
		process = strconv.Itoa(pid)
	}
	text, err := peek.File(filepath.Join(fs.root, "proc", process, "cgroup"), fileMax)
	if err != nil {
		return Group{}, fmt.Errorf("find cgroup of process %s: %w", process, err)
	}
	for line := range strings.Lines(string(text)) {
		member, err := parseMembership(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return Group{}, fmt.Errorf("find cgroup of process %s: %w", process, err)
		}
		if !member.of(h) {
			continue
		}
		if isOutside(member.path) {
			return Group{}, outside("find cgroup of process "+process, "its group, "+member.path+",")
		}
		g, err := fs.groupOf(h, pid, member.path)
		return g.Home(), err
	}
	return Group{}, fmt.Errorf("find cgroup of process %s: it is in no group of %s", process, h.MountPoint)
}

// isOutside reports whether a path is one of a group outside of the reader's cgroup namespace: the kernel
// spells it from the root of that namespace (cgroup_namespaces(7)).
func isOutside(path string) bool { return path == "/.." || strings.HasPrefix(path, "/../") }

// outside is the error of such a group: its own path is not to be known here.
func outside(feature, which string) error {
	return &fault.Unsupported{Feature: feature, Reason: which + " is outside of this cgroup namespace",
		Remedy: "run weir on the host, or in a container with the host's cgroup namespace"}
}

// deleted is what the kernel appends to the path of a removed group that something still
// belongs to, such as a process that has ended and is not waited for (proc_cgroup_show,
// kernel/cgroup/cgroup.c). A group's own name may also end like that.
const deleted = " (deleted)"

// groupOf finds the group that a path in /proc/PID/cgroup means. If the end of the path is
// ambiguous, it is the group that contains the process.
func (fs *FS) groupOf(h *Hierarchy, pid int, path string) (Group, error) {
	short, ambiguous := strings.CutSuffix(path, deleted)
	if !ambiguous {
		return h.Group(path)
	}
	if pid == 0 {
		pid = os.Getpid()
	}
	for _, p := range []string{path, short} {
		g, err := h.Group(p)
		if err != nil {
			return Group{}, err
		}
		if has, err := g.has(pid); err != nil || has {
			return g, err
		}
	}
	return Group{}, fmt.Errorf("find cgroup of process %d: %s has been removed: %w", pid, short, os.ErrNotExist)
}

// has reports whether a process or a thread is in the group itself. A group that does not exist
// has none.
func (g Group) has(pid int) (bool, error) {
	lists := []string{"cgroup.procs", "tasks"}
	if g.h.Version == V2 {
		lists[1] = "cgroup.threads"
	}
	for _, list := range lists {
		pids, err := g.members(list)
		if IsGone(err) || errors.Is(err, syscall.EOPNOTSUPP) { // a threaded group lists no processes
			continue
		}
		if err != nil || slices.Contains(pids, pid) {
			return err == nil, err
		}
	}
	return false, nil
}

// A membership is one line of /proc/PID/cgroup: hierarchy-ID:controller-list:path.
// v2's line has ID 0 and no controllers.
type membership struct {
	controllers []string
	path        string
}

func parseMembership(line string) (membership, error) {
	id, rest, ok := strings.Cut(line, ":")
	controllers, path, ok2 := strings.Cut(rest, ":")
	if _, err := strconv.Atoi(id); err != nil || !ok || !ok2 || !strings.HasPrefix(path, "/") {
		return membership{}, fmt.Errorf("parse %q: not ID:CONTROLLERS:/PATH", line)
	}
	m := membership{path: path}
	if controllers != "" {
		m.controllers = strings.Split(controllers, ",")
	}
	return m, nil
}

func (m membership) of(h *Hierarchy) bool {
	if h.Version == V2 {
		return m.controllers == nil
	}
	return slices.ContainsFunc(m.controllers, h.Has)
}
