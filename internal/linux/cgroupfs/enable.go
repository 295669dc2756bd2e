package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// Missing returns the lines that would enable controllers for the group, top down:
// a v2 group has a controller's files if its parent's cgroup.subtree_control lists
// it, and so up to the root. v1 groups have all of their hierarchy's. A controller
// that the root does not offer is a *fault.Unsupported.
func (g Group) Missing(controllers ...string) ([]Write, error) {
	if g.h.Version == V1 {
		return nil, nil
	}
	for _, c := range controllers {
		if !g.h.Has(c) {
			return nil, &fault.Unsupported{Feature: "use the " + c + " controller in cgroup " + g.Path(),
				Reason: c + " is not in " + g.h.file("cgroup.controllers")}
		}
	}
	var writes []Write
	for _, parent := range g.ancestors() {
		text, err := parent.read("cgroup.subtree_control")
		if err != nil {
			return nil, err
		}
		enabled := strings.Fields(text)
		var line []string
		for _, c := range controllers {
			if !slices.Contains(enabled, c) {
				line = append(line, "+"+c)
			}
		}
		if len(line) > 0 {
			writes = append(writes, Write{File: parent.File("cgroup.subtree_control"), Line: strings.Join(line, " ")})
		}
	}
	return writes, nil
}

// Offers reports whether a controller is enabled for the group, if the group exists. If it does
// not, Offers returns true: the group gets what it is made with.
func (g Group) Offers(controller string) bool {
	text, err := g.read("cgroup.controllers")
	return err != nil || slices.Contains(strings.Fields(text), controller)
}

// CanEnable reports whether the group gives, or could be made to give, controllers
// to groups below it: a group that has processes of its own cannot be made to,
// except for the real root of the tree, which has no cgroup.type file.
func (g Group) CanEnable(controllers ...string) (bool, error) {
	text, err := g.read("cgroup.subtree_control")
	if err != nil {
		return false, err
	}
	enabled := strings.Fields(text)
	if !slices.ContainsFunc(controllers, func(c string) bool { return !slices.Contains(enabled, c) }) {
		return true, nil
	}
	kind, err := g.read("cgroup.type")
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || strings.TrimSpace(kind) != "domain" {
		return false, err
	}
	pids, err := g.ownProcesses()
	if err != nil || len(pids) > 0 {
		return false, err
	}
	// The group above has to give what is not enabled for the group itself.
	if g.IsRoot() || !slices.ContainsFunc(controllers, func(c string) bool { return !g.Offers(c) }) {
		return true, nil
	}
	return g.Parent().CanEnable(controllers...)
}

// ancestors lists the groups above, the root first.
func (g Group) ancestors() []Group {
	var above []Group
	for !g.IsRoot() {
		g = g.Parent()
		above = append(above, g)
	}
	slices.Reverse(above)
	return above
}

// Enable makes controllers available to the group, top down, and reads back what it
// wrote. It obeys the kernel's rule that a group with processes cannot give controllers
// to groups below it (cgroup-v2.rst, "No Internal Process Constraint").
func (g Group) Enable(controllers ...string) error {
	writes, err := g.Missing(controllers...)
	if err != nil {
		return err
	}
	for _, parent := range g.ancestors() {
		file := parent.File("cgroup.subtree_control")
		i := slices.IndexFunc(writes, func(w Write) bool { return w.File == file })
		if i < 0 {
			continue
		}
		if parent.hasInCells() {
			return parent.explainEnable(&WriteError{Write: writes[i], Err: unix.EBUSY})
		}
		if err := parent.write("cgroup.subtree_control", writes[i].Line); err != nil {
			return parent.explainEnable(err)
		}
		text, err := parent.read("cgroup.subtree_control")
		if err != nil {
			return fmt.Errorf("read back %s: %w", file, err)
		}
		for _, c := range strings.Fields(writes[i].Line) {
			if !slices.Contains(strings.Fields(text), strings.TrimPrefix(c, "+")) {
				return &WriteError{Write: writes[i], Kept: strings.TrimSpace(text)}
			}
		}
	}
	return nil
}

// hasInCells reports whether a group that gives no controllers yet has processes in its cells.
// The kernel would allow enabling controllers then, but no process could join the group any
// more.
func (g Group) hasInCells() bool {
	text, err := g.read("cgroup.subtree_control")
	if g.IsRoot() || err != nil || strings.TrimSpace(text) != "" {
		return false
	}
	pids, err := g.ownProcesses()
	return err == nil && len(pids) > 0
}

func (g Group) explainEnable(err error) error {
	var refused *WriteError
	if !errors.As(err, &refused) {
		return err
	}
	switch {
	case errors.Is(err, unix.EBUSY):
		pids, _ := g.ownProcesses()
		refused.Why = fmt.Sprintf("%s has processes of its own (%d), and cgroup v2 enables controllers only below groups without processes; move them to a group below it", g.Path(), len(pids))
	case errors.Is(err, unix.ENOENT):
		refused.Why = "the group above does not offer the controller"
	case errors.Is(err, unix.EOPNOTSUPP):
		refused.Why = "the group is threaded, and threaded groups cannot have io and memory"
	}
	return refused
}
