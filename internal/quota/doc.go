// Package quota bounds how much a directory may store, by project quotas of XFS and ext4:
// every file of the tree has a project's number, new ones inherit it, and the kernel counts
// and bounds a project's blocks and inodes (ext4's overview.rst and XFS's manual, "project
// quota"). It talks to the kernel alone: ioctl(2) for the numbers, quotactl_fd(2) for the
// bounds, and starts no program.
//
// What weir set is on record, a file for each project, because a number in an inode does not
// say whose it is. The record is there before the first file is marked and goes after the
// last one is unmarked, so that whoever comes after a kill can go on.
package quota
