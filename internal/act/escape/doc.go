// Package escape counts what a group of cgroup v2 writes past its limit: bytes that its
// processes dirty and that the kernel never charges to the group.
//
// The kernel charges writeback to the group that owns the inode (package inode), and a page of
// the page cache to the group that touched it first. If a command overwrites a file that
// another group wrote, the kernel charges nothing to the command's group, and its limit holds
// nothing of it.
//
// There are two ways to count. A Watcher (BPF) sees each page when it is dirtied, with the
// group of the process and the owner of the inode. It is exact, by disk, and knows the files.
// An Estimate subtracts from what the processes wrote what the kernel charged to the group, and
// what of the group's own data waits in memory. It needs only files of the kernel, but it can
// err: see Estimate.
package escape
