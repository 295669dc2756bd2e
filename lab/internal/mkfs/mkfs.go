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
// Without quotas the file system can be mounted by a kernel that has none.
func Format(ctx context.Context, kind, path string, quotas bool) error {
	args, err := args(kind, quotas)
	if err != nil {
		return fmt.Errorf("format %s: %w", path, err)
	}
	out, err := exec.CommandContext(ctx, "mkfs."+kind, append(args, path)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format %s as %s: %w: %s", path, kind, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func args(kind string, quotas bool) ([]string, error) {
	switch kind {
	case "ext4":
		args := []string{"-q", "-F", "-N", "65536", "-J", "size=32"}
		extended := "lazy_itable_init=0,lazy_journal_init=0,nodiscard" // mke2fs heeds the last -E only
		if quotas {
			args, extended = append(args, "-O", "quota,project"), extended+",quotatype=prjquota"
		}
		args = append(args, "-E", extended)
		return args, nil
	case "xfs":
		return []string{"-q", "-f", "-K"}, nil
	case "btrfs":
		return []string{"-q", "-f", "-K"}, nil
	}
	return nil, fmt.Errorf("file system %q: not one of %v", kind, Kinds())
}

// MountOptions are the options a test disk of this kind is mounted with.
func MountOptions(kind string) string {
	if kind == "xfs" || kind == "ext4" {
		return "prjquota"
	}
	return ""
}
