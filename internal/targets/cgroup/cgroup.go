// Package cgroup resolves targets of the kind cgroup:/PATH: a group by its path, as
// /proc/PID/cgroup spells it, or by its directory below the hierarchy's mount point.
package cgroup

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// Kind resolves cgroup:/PATH within one hierarchy.
type Kind struct {
	Hierarchy   *cgroupfs.Hierarchy
	SystemdRuns bool
}

// Name returns "cgroup".
func (Kind) Name() string { return "cgroup" }

// Resolve finds an existing group.
func (k Kind) Resolve(_ context.Context, name string) (targets.Target, error) {
	if !strings.HasPrefix(name, "/") {
		return targets.Target{}, &targets.NameError{Err: fmt.Errorf("cgroup %q: a group is named by its path, such as cgroup:/system.slice/cron.service", name)}
	}
	if strings.ContainsAny(name, "\n\x00") { // the kernel makes no such group (cgroup_mkdir)
		return targets.Target{}, &targets.NameError{Err: fmt.Errorf("cgroup %q: the path of a group must not have line breaks", name)}
	}
	mount := k.Hierarchy.MountPoint
	if rest, ok := strings.CutPrefix(name, mount); ok && (rest == "" || rest[0] == '/') {
		name = path.Join(k.Hierarchy.MountRoot, rest)
	}
	group, err := k.Hierarchy.Group(name)
	if err != nil {
		return targets.Target{}, err
	}
	exists, err := group.Exists()
	if err != nil {
		return targets.Target{}, err
	}
	if !exists {
		return targets.Target{}, &targets.NotFound{Target: "cgroup:" + name, Why: "no such group in " + mount}
	}
	return targets.Target{Kind: "cgroup", Name: group.Path(), Group: group, Owner: targets.OwnerOf(group, k.SystemdRuns)}, nil
}
