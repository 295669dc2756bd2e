// Package quota limits how much a directory may store, by project quotas of XFS and ext4. Every
// file of the tree has a project number, new files inherit it, and the kernel counts and limits
// a project's blocks and inodes (ext4's overview.rst and XFS's manual, "project quota"). The
// package talks only to the kernel: ioctl(2) for the numbers, quotactl_fd(2) for the limits. It
// starts no program.
//
// weir's quotas are on record, one file for each project, because a number in an inode does not
// say who set it. The record exists before the first file is marked, and is removed after the
// last one is unmarked, so that the next weir can continue after a kill.
//
// Set, Clear and Forget each have a method that lists its steps (SetSteps of Set), which changes
// nothing and refuses what the verb refuses.
package quota
