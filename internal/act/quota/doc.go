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
//
// A record (in /var/lib/weir/quotas) has a state, which says whether a weir worked on it, and a
// lock, which says whether one still does. It names the file system (by XFS's UUID, or by the id
// that ext4 makes), the directory and its inode. weir finds a moved directory by its project, and
// recognizes another disk at the same place. A project is free if it is not on record, has no name
// in /etc/projid and holds nothing on the file system. weir's projects are 65,536 apart, because
// container engines count on from the ones they find.
//
// weir marks the top directory before its content, and each directory before it reads its names, so
// no file is missed: the kernel refuses to move unmarked files in (EXDEV). weir sets the limits
// last.
//
// weir walks a tree on a mount of its own (open_tree), without what is mounted below it, and where
// device files cannot be opened. Otherwise somebody who may write there could replace a file by a
// device. weir looks up a container's root among the host's mounts, because the container's own
// mounts could name any directory. The overlay's work directory is in the project too, because the
// kernel makes files there and moves them to the upper directory.
package quota
