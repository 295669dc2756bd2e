package cgroupfs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A cell is a group that weir makes in another group, its home, to pause the home's processes
// in. weir never pauses them in the home itself: the home's owner may do that (docker pause),
// and container runtimes refuse to start a process in a frozen group. A cell has no
// controllers, so v2 goes on charging the home.
const cellPrefix = "weir-pace-"

// CellName is the name of the cells for a group that has limits.
func CellName(limited Group) string {
	sum := sha256.Sum256([]byte(limited.Path()))
	return cellPrefix + hex.EncodeToString(sum[:4])
}

// IsCell reports whether the group is a cell, by its name.
func (g Group) IsCell() bool { return isCell(path.Base(g.path)) }

func isCell(name string) bool {
	digits, ok := strings.CutPrefix(name, cellPrefix)
	_, err := hex.DecodeString(digits)
	return ok && err == nil && len(digits) == 8
}

// In reports whether the group is one of that name, or in one.
func (g Group) In(name string) bool { return strings.Contains("/"+g.path+"/", "/"+name+"/") }

// Home returns the group that a cell is in. Any other group is its own home.
func (g Group) Home() Group {
	for g.IsCell() && !g.IsRoot() {
		g = g.Parent()
	}
	return g
}

// Files of v2's threaded groups (cgroup-v2.rst, "Threads").
const (
	typeFile    = "cgroup.type"
	threadsFile = "cgroup.threads"
	threaded    = "threaded"
)

// Threaded reports whether a group of v2 takes single threads: it is threaded, or the domain
// of threaded groups.
func (g Group) Threaded() (bool, error) {
	text, err := g.read(typeFile)
	kind := strings.TrimSpace(text)
	return kind == threaded || kind == "domain threaded", err
}

// CreateCell makes the cell of a group: for processes, or for threads if the group is threaded.
// It returns no error if the cell exists; Brake.Check tells who owns it.
func (g Group) CreateCell(name string) (cell Group, threads bool, err error) {
	if cell, err = g.Child(name); err != nil {
		return cell, false, err
	}
	switch err := cell.Create(); {
	case err == nil && g.h.Version == V2:
		cell.delegateAs(g)
	case err != nil && !errors.Is(err, unix.EEXIST):
		return cell, false, err
	}
	if g.h.Version == V1 || g.IsRoot() {
		return cell, false, nil
	}
	if threads, err = g.Threaded(); err == nil && threads {
		err = cell.write(typeFile, threaded)
	}
	return cell, threads, err
}

// delegateAs gives a cell to the owner of its home, who can then make groups in it. A manager
// whose process is in the cell takes the cell for its own group (systemd --user, podman). The
// freezer file stays weir's. (On v1 homes have no such owner, and could be renamed meanwhile.)
func (g Group) delegateAs(home Group) {
	var st unix.Stat_t
	if at, err := home.OpenDir(); err != nil {
		return
	} else if err = errors.Join(unix.Fstat(at, &st), unix.Close(at)); err != nil || int(st.Uid) == os.Geteuid() {
		return
	}
	for _, name := range []string{"cgroup.procs", threadsFile, "cgroup.subtree_control", "."} {
		fd, err := g.h.open(path.Join(g.path, name), unix.O_PATH)
		if err != nil {
			continue // without, the owner only cannot make groups there
		}
		_ = errors.Join(unix.Fchownat(fd, "", int(st.Uid), int(st.Gid), unix.AT_EMPTY_PATH), unix.Close(fd)) // the same
	}
}

// ownProcesses lists the group's own processes, including those in its cells, which will go
// back to it.
func (g Group) ownProcesses() ([]int, error) {
	pids, err := g.Processes()
	if err != nil {
		return nil, err
	}
	children, err := g.Children()
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		if !child.IsCell() {
			continue
		}
		more, err := child.ownProcesses()
		if err != nil && !IsGone(err) {
			return nil, err
		}
		pids = append(pids, more...)
	}
	return pids, nil
}

// Tasks lists the processes, or the threads, in the group itself.
func (g Group) Tasks(threads bool) ([]int, error) {
	if threads {
		return g.members(threadsFile)
	}
	return g.Processes()
}

// AddTask moves a process, or a thread, into the group.
func (g Group) AddTask(id int, thread bool) error {
	if !thread {
		return g.AddProcess(id)
	}
	return g.write(threadsFile, strconv.Itoa(id))
}
