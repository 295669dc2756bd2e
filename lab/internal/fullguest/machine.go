package fullguest

import (
	"context"
	"fmt"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/cache"
	"github.com/weir-io/weir/lab/internal/debian"
	"github.com/weir-io/weir/lab/internal/machine"
)

// memory is a full guest's, in MiB.
const memory = 1536

// testDisks are all that there can be: user-mode Linux takes sixteen disks, of which three
// are the system's own, and two are the job and its results.
var testDisks = []machine.Set{{FS: "ext4", Number: 6}, {FS: "xfs", Number: 2}, {FS: "btrfs", Number: 1}, {FS: "raw", Number: 2}}

// Builder makes machines.
type Builder struct {
	Archive *debian.Archive
	Cache   *cache.Cache
	Agent   string // program guestinit, for the guest
	Temp    string // folder to build in
}

// Machine boots a kernel with the system of a suite, trixie or bookworm, built if
// need be. The hierarchies are as systemd mounts them in this mode.
func (b Builder) Machine(ctx context.Context, title string, k Kernel, suite string, mode environ.Mode) (machine.Machine, error) {
	m, err := b.machine(ctx, title, k, suite, mode)
	if err != nil {
		return m, fmt.Errorf("build full guest: %w", err)
	}
	return m, nil
}

func (b Builder) machine(ctx context.Context, title string, k Kernel, suite string, mode environ.Mode) (machine.Machine, error) {
	var m machine.Machine
	if _, known := bySuite[suite]; !known {
		return m, fmt.Errorf("no image of suite %q", suite)
	}
	layout, err := layout(mode)
	if err != nil {
		return m, err
	}
	root, err := image(ctx, b.Archive, b.Cache, suite)
	if err != nil {
		return m, err
	}
	return machine.Machine{
		Title:   title,
		Carrier: k.carrier(),
		Mode:    mode,
		Tests:   testDisks,
		System:  system(root, k.modules(), b.Agent),
		Words:   append(layout, quiet...),
	}, nil
}

// system are the disks that no test gets, and the words that lead to them.
func system(root, modules, agent string) []machine.Disk {
	return []machine.Disk{
		{Name: "root", Word: "root", Path: root, Scratch: true},
		{Name: "modules", Word: "lab.modules", Path: modules, ReadOnly: true},
		{Name: "agent", Word: "lab.agent", Path: agent, ReadOnly: true},
	}
}

// quiet are words for the kernel and for systemd, to do and say no more than needed.
// Without lsm, systemd loads a BPF program for units that
// restrict their file systems, which takes an emulated processor a tenth of the boot.
var quiet = []string{
	"rw", "lsm=landlock", "apparmor=0", "selinux=0", "audit=0",
	"systemd.show_status=0", "systemd.log_target=null",
}

// layout is how systemd is told which hierarchies to mount (systemd(1), "Kernel
// Command Line"). Since systemd 256 it must also be told that v1 is meant
// (README, "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE"); older ones do not look.
func layout(mode environ.Mode) ([]string, error) {
	const force = "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"
	switch mode {
	case environ.V2:
		return []string{"systemd.unified_cgroup_hierarchy=1"}, nil
	case environ.V1:
		return []string{"systemd.unified_cgroup_hierarchy=0", "systemd.legacy_systemd_cgroup_controller=1", force}, nil
	case environ.Hybrid:
		return []string{"systemd.unified_cgroup_hierarchy=0", "systemd.legacy_systemd_cgroup_controller=0", force}, nil
	}
	return nil, fmt.Errorf("cgroup mode %q: none of v1, v2, hybrid", mode)
}
