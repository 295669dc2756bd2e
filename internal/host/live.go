package host

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/targets/engine"
)

// Live lists the names of running targets of a kind that begin with a prefix, as a shell completes
// them: a tab and a description may follow a name. Of groups it lists those one level below the
// prefix. What cannot be asked has no names, and a name that a shell would read as something else
// is left out: whoever made the target chose it, bash inserts what several names begin with as it
// is, and runs the line for the next completion (eval, in cobra's script).
func (h *Host) Live(ctx context.Context, kind, prefix string) []string {
	return slices.DeleteFunc(h.live(ctx, kind, prefix), func(line string) bool {
		name, _, _ := strings.Cut(line, "\t")
		return strings.ContainsFunc(name, isShells)
	})
}

// isShells reports whether a character can mean something else in a shell than itself, or on a
// terminal. A backslash, as in names of units, takes away the meaning of what follows.
func isShells(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(`/:._-@+,%=\`, r) || r == unicode.ReplacementChar
}

func (h *Host) live(ctx context.Context, kind, prefix string) []string {
	switch kind {
	case "unit":
		return h.liveUnits(ctx, prefix)
	case "containerd":
		return h.Containerd(nil).Live(ctx, prefix)
	case "pod":
		return h.Pods(nil).Live(ctx, prefix)
	case "vm":
		return h.Machines(nil).Live(prefix)
	case "pid":
		return h.livePIDs(prefix)
	case "cgroup":
		return h.liveGroups(prefix)
	}
	for _, m := range engine.Makers() {
		if m.Kind() == kind {
			return h.Containers(m, nil).Live(ctx, prefix)
		}
	}
	return nil
}

func (h *Host) liveUnits(ctx context.Context, prefix string) []string {
	if !h.IsOwn() || !h.SystemdRuns() {
		return nil
	}
	conn, err := h.Systemd(ctx)
	if err != nil {
		return nil
	}
	defer conn.Close()
	names, err := conn.LiveUnits(ctx, prefix)
	if err != nil {
		return nil
	}
	return names
}

// livePIDs lists processes that have memory of their own, with what they are called.
func (h *Host) livePIDs(prefix string) []string {
	entries, err := os.ReadDir(filepath.Join(h.Root, "proc"))
	if err != nil {
		return nil
	}
	var pids []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		command, err := peek.File(filepath.Join(h.Root, "proc", e.Name(), "comm"), peek.Short)
		line, lineErr := peek.File(filepath.Join(h.Root, "proc", e.Name(), "cmdline"), 1)
		if err != nil || lineErr != nil || len(line) == 0 { // gone, or the kernel's own
			continue
		}
		pids = append(pids, e.Name()+"\t"+plain.Line(strings.TrimSpace(string(command))))
	}
	return pids
}

func (h *Host) liveGroups(typed string) []string {
	io, err := h.IO()
	if err != nil {
		return nil
	}
	above := typed[:strings.LastIndex(typed, "/")+1]
	group, err := io.Group("/" + above)
	if err != nil {
		return nil
	}
	children, err := group.Children()
	if err != nil {
		return nil
	}
	var paths []string
	for _, c := range children {
		if p := c.Path(); strings.HasPrefix(p, "/"+strings.TrimPrefix(typed, "/")) && !strings.ContainsAny(p, "\t\n") {
			paths = append(paths, p)
		}
	}
	return paths
}
