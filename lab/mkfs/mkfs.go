// Package mkfs makes the file systems of the lab's test disks, on the host and
// again in a guest when a disk is used a second time. It only knows the three
// file systems that weir is measured on, with project quotas where they have them.
package mkfs

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Kinds are the file systems Format knows.
func Kinds() []string { return []string{"ext4", "xfs", "btrfs"} }

// Format makes an empty file system of kind on path, a file or a block device.
// Inode tables and journals are written at once: an ext4 that finishes them
// lazily after the mount would add I/O to the first seconds of a measurement.
func Format(ctx context.Context, kind, path string) error {
	args, err := args(kind)
	if err != nil {
		return fmt.Errorf("format %s: %w", path, err)
	}
	out, err := exec.CommandContext(ctx, "mkfs."+kind, append(args, path)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format %s as %s: %w: %s", path, kind, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func args(kind string) ([]string, error) {
	switch kind {
	case "ext4":
		return []string{"-q", "-F", "-O", "quota,project", "-N", "65536", "-J", "size=32",
			"-E", "quotatype=prjquota,lazy_itable_init=0,lazy_journal_init=0,nodiscard"}, nil
	case "xfs":
		return []string{"-q", "-f", "-K"}, nil
	case "btrfs":
		return []string{"-q", "-f", "-K"}, nil
	}
	return nil, fmt.Errorf("file system %q: not one of %v", kind, Kinds())
}

// MountOptions are the options a test disk of this kind is mounted with.
func MountOptions(kind string) string {
	if kind == "xfs" {
		return "prjquota"
	}
	return ""
}
