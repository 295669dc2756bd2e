// Package pid resolves targets of the kind pid:NUMBER: the cgroup that a process is in. Rules
// apply to groups, not processes, so a limit on a pid applies to all processes in its group.
// The caller asks before it extends a limit to those.
package pid

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// Kind resolves pid:NUMBER within one hierarchy.
type Kind struct {
	FS          *cgroupfs.FS
	Hierarchy   *cgroupfs.Hierarchy
	SystemdRuns bool
}

// Name returns "pid".
func (Kind) Name() string { return "pid" }

// Resolve finds the group that the process is in now.
func (k Kind) Resolve(_ context.Context, name string) (targets.Target, error) {
	pid, err := strconv.Atoi(name)
	if err != nil || pid <= 0 {
		return targets.Target{}, &targets.NameError{Err: fmt.Errorf("pid %q: name a process by its number, such as pid:4711", name)}
	}
	group, err := k.FS.OfProcess(k.Hierarchy, pid)
	if cgroupfs.IsGone(err) {
		return targets.Target{}, &targets.NotFound{Target: "pid:" + name, Why: "no such process"}
	}
	if err != nil {
		return targets.Target{}, err
	}
	return targets.Target{Kind: "pid", Name: name, Group: group, Owner: targets.OwnerOf(group, k.SystemdRuns), PID: pid}, nil
}
