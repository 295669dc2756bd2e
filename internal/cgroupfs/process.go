package cgroupfs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// OfProcess returns the group of a process in one hierarchy; pid 0 is the caller. For a
// process that weir has put into a cell it is the cell's home.
// A process that is gone gives an error for which IsGone is true.
func (fs *FS) OfProcess(h *Hierarchy, pid int) (Group, error) {
	process := "self"
	if pid != 0 {
		process = strconv.Itoa(pid)
	}
	text, err := os.ReadFile(filepath.Join(fs.root, "proc", process, "cgroup"))
	if err != nil {
		return Group{}, fmt.Errorf("find cgroup of process %s: %w", process, err)
	}
	for line := range strings.Lines(string(text)) {
		member, err := parseMembership(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return Group{}, fmt.Errorf("find cgroup of process %s: %w", process, err)
		}
		if member.of(h) {
			g, err := h.Group(member.path)
			return g.Home(), err
		}
	}
	return Group{}, fmt.Errorf("find cgroup of process %s: it is in no group of %s", process, h.MountPoint)
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
	m := membership{path: strings.TrimSuffix(path, " (deleted)")}
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
