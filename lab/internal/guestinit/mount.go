package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab/environ"
)

type mount struct {
	kind, at, options string
	optional          bool // not every kernel has it
}

func (m mount) do() error {
	if err := os.MkdirAll(m.at, 0o755); err != nil {
		if m.optional {
			return nil
		}
		return fmt.Errorf("mount %s on %s: %w", m.kind, m.at, err)
	}
	err := unix.Mount(m.kind, m.at, m.kind, 0, m.options)
	if err != nil && !errors.Is(err, unix.EBUSY) && !m.optional {
		return fmt.Errorf("mount %s on %s: %w", m.kind, m.at, err)
	}
	return nil
}

func mountBasics() error {
	for _, m := range []mount{
		{kind: "proc", at: "/proc"},
		{kind: "sysfs", at: "/sys"},
		{kind: "devtmpfs", at: "/dev"},
		{kind: "devpts", at: "/dev/pts"},
		{kind: "tmpfs", at: "/dev/shm"},
		{kind: "tmpfs", at: "/run", options: "mode=755"},
		{kind: "tmpfs", at: "/tmp"},
		{kind: "debugfs", at: "/sys/kernel/debug", optional: true},
		{kind: "tracefs", at: "/sys/kernel/tracing", optional: true},
		{kind: "bpf", at: "/sys/fs/bpf", optional: true},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	// As udev and systemd have it everywhere.
	for name, to := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		if err := os.Symlink("/proc/self/fd"+to, "/dev/"+name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

const usual = "/sys/fs/cgroup"

// mountCgroups mounts hierarchies as the mode says; ioMount moves the one with
// the io controller to another place.
func mountCgroups(mode environ.Mode, ioMount string) error {
	switch mode {
	case environ.V2:
		at := usual
		if ioMount != "" {
			at = ioMount
		}
		return mountV2(at)
	case environ.V1, environ.Hybrid:
		if err := (mount{kind: "tmpfs", at: usual, options: "mode=755"}).do(); err != nil {
			return err
		}
		if err := mountV1(ioMount); err != nil {
			return err
		}
		if mode == environ.Hybrid {
			return (mount{kind: "cgroup2", at: usual + "/unified"}).do()
		}
		return nil
	case environ.HybridV2, environ.Split:
		if err := (mount{kind: "tmpfs", at: usual, options: "mode=755"}).do(); err != nil {
			return err
		}
		left := []string{"blkio", "memory"}
		if mode == environ.Split {
			left = left[:1]
		}
		if err := mountV1("", left...); err != nil {
			return err
		}
		return mountV2(usual + "/unified")
	}
	return fmt.Errorf("mount cgroups: mode %q is none of v1, v2, hybrid, hybrid-v2, split", mode)
}

func mountV2(at string) error {
	if err := (mount{kind: "cgroup2", at: at}).do(); err != nil {
		return err
	}
	have, err := os.ReadFile(filepath.Join(at, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("enable controllers: %w", err)
	}
	for _, c := range []string{"cpu", "io", "memory", "pids"} {
		if !slices.Contains(strings.Fields(string(have)), c) {
			continue
		}
		if err := os.WriteFile(filepath.Join(at, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
			return fmt.Errorf("enable controllers: %w", err)
		}
	}
	return nil
}

// mountV1 mounts each controller that the kernel has and that is not left to v2, one
// hierarchy for each.
func mountV1(blkio string, left ...string) error {
	controllers, err := v1Controllers()
	if err != nil {
		return fmt.Errorf("list v1 controllers: %w", err)
	}
	for _, c := range controllers {
		if slices.Contains(left, c) {
			continue
		}
		at := filepath.Join(usual, c)
		if c == "blkio" && blkio != "" {
			at = blkio
		}
		if err := os.MkdirAll(at, 0o755); err != nil {
			return fmt.Errorf("mount v1 %s: %w", c, err)
		}
		err := unix.Mount("cgroup", at, "cgroup", 0, c)
		// Some kernels list what they cannot mount: without CONFIG_MEMCG_V1, CONFIG_CPUSETS_V1.
		if errors.Is(err, unix.EINVAL) && (c == "memory" || c == "cpuset") {
			err = os.Remove(at)
		}
		if err != nil {
			return fmt.Errorf("mount v1 %s on %s: %w", c, at, err)
		}
	}
	return nil
}

// v1Controllers reads /proc/cgroups: name, hierarchy, groups, enabled.
func v1Controllers() ([]string, error) {
	f, err := os.Open("/proc/cgroups")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var names []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		fields := strings.Fields(s.Text())
		if len(fields) == 4 && !strings.HasPrefix(fields[0], "#") && fields[3] == "1" {
			names = append(names, fields[0])
		}
	}
	return names, s.Err()
}

// loadModules loads what the initramfs lists, one name a line. A missing module
// is reported and is no error: kernels differ in what is built in.
func loadModules(list string) error {
	data, err := os.ReadFile(list)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("load modules: %w", err)
	}
	for name := range strings.FieldsSeq(string(data)) {
		if out, err := exec.Command("/sbin/modprobe", name).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "guestinit: load module %s: %v: %s\n", name, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
