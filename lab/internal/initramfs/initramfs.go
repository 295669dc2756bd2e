package initramfs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/lab/internal/cpio"
	"github.com/weir-io/weir/lab/internal/kernel"
)

// Spec is what goes in.
type Spec struct {
	Init    string   // the init program, on the host
	Modules []string // wanted where the kernel has them as modules
	Load    []string // of these, what init loads at once
	Tools   []string // programs of the host, by name
}

// Recipe has all that decides the image except for the kernel, for a cache's key.
func (s Spec) Recipe() ([]string, error) {
	recipe := []string{
		"initramfs 1",
		"modules " + strings.Join(s.Modules, " "),
		"load " + strings.Join(s.Load, " "),
	}
	for _, path := range append([]string{s.Init}, paths(s.Tools)...) {
		line, err := fingerprint(path)
		if err != nil {
			return nil, fmt.Errorf("describe initramfs: %w", err)
		}
		recipe = append(recipe, line)
	}
	return recipe, nil
}

// Write makes the image at path, using the folder stage.
func Write(ctx context.Context, path, stage string, s Spec, k kernel.Tree) error {
	if err := s.fill(ctx, stage, k); err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(cpio.WriteTree(w, stage), w.Flush(), f.Close())
}

func (s Spec) fill(ctx context.Context, stage string, k kernel.Tree) error {
	for _, dir := range []string{"proc", "sys", "dev", "run", "tmp", "root", "etc/lvm", "bin", "sbin", "usr/bin", "usr/sbin", "mnt"} {
		if err := os.MkdirAll(filepath.Join(stage, dir), 0o755); err != nil {
			return err
		}
	}
	if err := copyFile(s.Init, filepath.Join(stage, "init")); err != nil {
		return err
	}
	if err := addBusybox(ctx, stage); err != nil {
		return err
	}
	for _, tool := range paths(s.Tools) {
		if err := addTool(ctx, stage, tool); err != nil {
			return err
		}
	}
	if err := addModules(ctx, stage, s.Modules, k); err != nil {
		return err
	}
	return s.settings(stage)
}

// settings are the few files of /etc that programs ask for. LVM must not wait
// for a udev that a small guest has not.
func (s Spec) settings(stage string) error {
	for name, text := range map[string]string{
		"etc/weir-modules": strings.Join(s.Load, "\n") + "\n",
		"etc/passwd":       "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		"etc/group":        "root:x:0:\nnogroup:x:65534:\n",
		"etc/lvm/lvm.conf": "activation { udev_sync = 0 udev_rules = 0 monitoring = 0 }\ndevices { use_devicesfile = 0 }\nglobal { event_activation = 0 }\n",
	} {
		if err := os.WriteFile(filepath.Join(stage, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.Symlink("/proc/mounts", filepath.Join(stage, "etc/mtab"))
}

func addModules(ctx context.Context, stage string, names []string, k kernel.Tree) error {
	chosen, err := k.Modules(names)
	if err != nil {
		return err
	}
	base := filepath.Join("lib/modules", k.Release)
	for _, path := range chosen {
		to := strings.TrimSuffix(strings.TrimSuffix(path, ".xz"), ".zst")
		if err := kernel.CopyModule(ctx, filepath.Join(k.Root, base, path), filepath.Join(stage, base, to)); err != nil {
			return err
		}
	}
	for _, name := range []string{"modules.builtin", "modules.builtin.modinfo", "modules.order"} {
		from := filepath.Join(k.Root, base, name)
		if _, err := os.Stat(from); err != nil {
			continue // older kernels lack some
		}
		if err := copyFile(from, filepath.Join(stage, base, name)); err != nil {
			return err
		}
	}
	return kernel.Depmod(ctx, stage, k.Release)
}

// addBusybox links each applet that busybox knows. Real programs go to /usr,
// which is first in PATH.
func addBusybox(ctx context.Context, stage string) error {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	if err := copyFile(path, filepath.Join(stage, "bin/busybox")); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, path, "--list").Output()
	if err != nil {
		return fmt.Errorf("list busybox applets: %w", err)
	}
	for applet := range strings.FieldsSeq(string(out)) {
		if applet == "busybox" {
			continue
		}
		if err := os.Symlink("/bin/busybox", filepath.Join(stage, "bin", applet)); err != nil {
			return err
		}
	}
	return os.Symlink("/bin/busybox", filepath.Join(stage, "sbin/modprobe")) // the kernel calls it here
}
