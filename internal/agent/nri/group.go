package nri

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/containerd/nri/pkg/api"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// pathsOf are the groups that a runtime may mean by a container's cgroup path, as the OCI's runtime
// specification has it: a path from the root, or with systemd as driver SLICE:PREFIX:NAME, which a
// runtime without systemd takes for a path too (runc, docs/systemd.md).
func pathsOf(cgroupsPath string) (all []string) {
	if len(cgroupsPath) > unix.PathMax {
		return nil
	}
	parts := strings.Split(cgroupsPath, ":")
	if len(parts) == 3 && parts[2] != "" {
		slice, unit := parts[0], parts[2]
		if slice == "" {
			slice = systemd.SystemSlice
		}
		if !strings.HasSuffix(unit, ".slice") {
			unit += ".scope"
			if parts[1] != "" {
				unit = parts[1] + "-" + unit
			}
		}
		if strings.HasSuffix(slice, ".slice") && !strings.Contains(slice, "/") {
			all = append(all, path.Join(systemd.SlicePath(slice), unit))
		}
	}
	if cgroupsPath != "" {
		all = append(all, "/"+strings.TrimPrefix(cgroupsPath, "/"))
	}
	return all
}

// groupOf finds a container's group. It is called after the container.
func groupOf(fs *cgroupfs.FS, io *cgroupfs.Hierarchy, c *api.Container) (g cgroupfs.Group, err error) {
	for _, at := range pathsOf(c.GetLinux().GetCgroupsPath()) {
		g, err := io.Group(at)
		if err != nil || g.IsRoot() {
			continue // another one of them, or what the kernel says of the process
		}
		there, err := g.Exists()
		if err != nil {
			return g, err
		}
		if there && targets.IsCalledAfter(g.Path(), c.GetId()) {
			return g, nil
		}
	}
	if pid := int(c.GetPid()); pid > 0 {
		if g, err = fs.OfProcess(io, pid); err != nil {
			return g, err
		}
		for ; !g.IsRoot(); g = g.Parent() {
			if targets.IsCalledAfter(g.Path(), c.GetId()) {
				return g, nil
			}
		}
	}
	return g, fmt.Errorf("the runtime says that its cgroup is %s, and there is no such group that is named after it", plain.Short(c.GetLinux().GetCgroupsPath(), 200))
}

// sandboxOf finds the group of what holds a pod before its containers are there; nil: there is none. No limit of the pod
// is on it.
func sandboxOf(io *cgroupfs.Hierarchy, p *api.PodSandbox, c *api.Container) (*cgroupfs.Group, error) {
	for _, at := range pathsOf(c.GetLinux().GetCgroupsPath()) {
		g, err := io.Group(at)
		if err != nil || g.IsRoot() || !targets.IsPodOf(g.Parent().Path(), p.GetUid()) {
			continue // another one of them
		}
		children, err := g.Parent().Children()
		if err != nil && !cgroupfs.IsGone(err) {
			return nil, err
		}
		for _, child := range children {
			if targets.IsCalledAfter(child.Path(), p.GetId()) {
				return &child, nil
			}
		}
	}
	return nil, nil
}

// errShared says that a pod's group is not known to be its alone.
var errShared = errors.New("its containers are in a cgroup that is not named after the pod, and that others may be in")

// podGroupOf finds the group that a pod's containers share: the one above a container's, if kubelet
// made it for this pod.
func podGroupOf(container cgroupfs.Group, uid string) (cgroupfs.Group, error) {
	g := container.Parent()
	if g.IsRoot() || !targets.IsPodOf(g.Path(), uid) {
		return g, errShared
	}
	return g, nil
}

// firstsIn finds a process of each part of a pod, that of one container first.
func firstsIn(pod, container cgroupfs.Group) (firsts []int, err error) {
	children, err := pod.Children()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(children, func(a, b cgroupfs.Group) int {
		switch container.Path() {
		case a.Path():
			return -1
		case b.Path():
			return 1
		}
		return 0
	})
	for _, child := range children {
		members, err := targets.Members(child)
		if err != nil {
			return nil, err
		}
		if len(members) > 0 {
			firsts = append(firsts, members[0])
		}
	}
	return firsts, nil
}
