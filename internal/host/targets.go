package host

import (
	"context"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/targets/cgroup"
	"github.com/weir-io/weir/internal/targets/containerd"
	"github.com/weir-io/weir/internal/targets/engine"
	"github.com/weir-io/weir/internal/targets/pid"
	"github.com/weir-io/weir/internal/targets/pod"
	"github.com/weir-io/weir/internal/targets/unit"
	"github.com/weir-io/weir/internal/targets/vm"
)

// Target finds the target that spec names: KIND:NAME, or a bare name that exactly one kind knows.
// Its errors are those of targets.Resolve.
func (h *Host) Target(ctx context.Context, spec string) (targets.Target, error) {
	io, err := h.IO()
	if err != nil {
		return targets.Target{}, err
	}
	return targets.Resolve(ctx, h.Kinds(io), spec)
}

// Kinds returns all kinds of targets of this host, whose groups are in one hierarchy.
func (h *Host) Kinds(io *cgroupfs.Hierarchy) []targets.Kind {
	runs := h.SystemdRuns()
	kinds := []targets.Kind{
		pid.Kind{FS: h.FS, Hierarchy: io, SystemdRuns: runs},
		cgroup.Kind{Hierarchy: io, SystemdRuns: runs},
		unit.Kind{Hierarchy: io, SystemdRuns: runs, Connect: h.unitManager()},
	}
	for _, m := range engine.Makers() {
		kinds = append(kinds, h.Containers(m, io))
	}
	return append(kinds, h.Containerd(io), h.Pods(io), h.Machines(io))
}

// SystemdRuns reports whether systemd is the first process of this host. It looks once.
func (h *Host) SystemdRuns() bool { return h.runs() }

// Containers are the targets of Docker or Podman. Without a hierarchy, its daemon can be asked
// and nothing resolved; so for the other kinds.
func (h *Host) Containers(m engine.Maker, io *cgroupfs.Hierarchy) engine.Kind {
	return engine.Kind{Maker: m, FS: h.FS, Hierarchy: io, Devices: h.Devices(), SystemdRuns: h.SystemdRuns(), Root: h.Root, Host: h.Socket(m.Kind())}
}

// Containerd are the targets of containerd.
func (h *Host) Containerd(io *cgroupfs.Hierarchy) containerd.Kind {
	return containerd.Kind{FS: h.FS, Hierarchy: io, SystemdRuns: h.SystemdRuns(), Root: h.Root, Address: h.Socket("containerd")}
}

// Pods are Kubernetes' pods.
func (h *Host) Pods(io *cgroupfs.Hierarchy) pod.Kind {
	return pod.Kind{FS: h.FS, Hierarchy: io, SystemdRuns: h.SystemdRuns(), Root: h.Root, Endpoint: h.Socket("pod")}
}

// Machines are libvirt's domains.
func (h *Host) Machines(io *cgroupfs.Hierarchy) vm.Kind {
	return vm.Kind{FS: h.FS, Hierarchy: io, SystemdRuns: h.SystemdRuns(), Root: h.Root}
}

// unitManager returns how systemd is asked for units; nil for a copy of a machine, whose systemd
// is not this one.
func (h *Host) unitManager() func(context.Context) (unit.Manager, error) {
	if !h.IsOwn() {
		return nil
	}
	return func(ctx context.Context) (unit.Manager, error) {
		conn, err := h.Systemd(ctx)
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
}
