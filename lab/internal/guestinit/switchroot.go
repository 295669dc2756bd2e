package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// rootDisk finds the kernel's own word for where the system is. A small guest is
// started without one: its initramfs is the system. User-mode Linux then adds
// "root=98:0", which is no device's node and not meant.
func rootDisk(cmdline string) string {
	for word := range strings.FieldsSeq(cmdline) {
		if node, ok := strings.CutPrefix(word, "root="); ok && strings.HasPrefix(node, "/dev/") {
			return node
		}
	}
	return ""
}

// switchRoot goes over to the system on a disk, for good: it returns only when it
// cannot. What is mounted here goes along.
func switchRoot(node string) error {
	if err := loadModules("/etc/weir-modules"); err != nil {
		return err
	}
	const root = "/mnt"
	if err := mountRoot(node, root); err != nil {
		return fmt.Errorf("mount root disk %s: %w", node, err)
	}
	for _, dir := range []string{"/dev", "/proc", "/sys", "/run"} {
		if err := unix.Mount(dir, filepath.Join(root, dir), "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s to the system: %w", dir, err)
		}
	}
	// See "switch_root" in Documentation/filesystems/ramfs-rootfs-initramfs.rst.
	if err := os.Chdir(root); err != nil {
		return fmt.Errorf("go over to the system: %w", err)
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("go over to the system: %w", err)
	}
	if err := errors.Join(unix.Chroot("."), os.Chdir("/")); err != nil {
		return fmt.Errorf("go over to the system: %w", err)
	}
	const init = "/sbin/init"
	return &os.PathError{Op: "exec", Path: init, Err: unix.Exec(init, []string{init}, nil)}
}

// mountRoot waits a little for the disk: its node may come after its driver's module.
func mountRoot(node, at string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := unix.Mount(node, at, "ext4", unix.MS_NOATIME, "")
		if err == nil || !errors.Is(err, unix.ENOENT) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
