// Package blkdev_test resolves real devices and mounts: loop devices and their
// partitions, ext4, btrfs, overlay and bind mounts made for one test each. It needs
// root, and runs in the lab.
package blkdev_test
