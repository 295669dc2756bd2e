// Package blkdev finds the block device that a disk I/O rule belongs on: from a
// path, a device node, a symlink below /dev/disk, MAJOR:MINOR or a bare name, by
// way of the mount, the file system and the stack of devices (partition, dm, md,
// loop), and it keeps the whole chain so that people can be shown it.
//
// It mirrors Documentation/filesystems/proc.rst (3.5, /proc/<pid>/mountinfo),
// Documentation/ABI/stable/sysfs-block, Documentation/ABI/testing/sysfs-fs-btrfs
// (devices), Documentation/filesystems/overlayfs.rst and, for what takes a rule,
// block/blk-cgroup.c: blkg_conf_open_bdev refuses every device number that is a
// partition, so a partition stands for its whole disk; dm, md and loop devices are
// whole disks to the kernel and take rules themselves.
//
// It only reads, and starts no process. It refuses to guess: a file system with no
// block device beneath is an error that says why, and so is an unknown device.
// Whether a rule on the device it names will hold is not its question.
package blkdev
