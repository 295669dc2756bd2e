// Package escape counts what a group of cgroup v2 writes past its limit: bytes that its
// processes made dirty, and that the kernel never charges to the group.
//
// The kernel charges writeback to the group that owns the inode (package inode), and a page
// of the page cache to the group that touched it first. A command that overwrites a file
// which another group has written is charged nothing, and its limit holds nothing of it.
//
// There are two ways to count. A Watcher (BPF) sees each page as it is made dirty, with the
// dirtier's group and the inode's owner: exact, by disk, with the files' names. An Estimate
// subtracts what the group was charged and what of its own waits in memory from what its
// processes wrote. It needs only files of the kernel's, and it can err: see Estimate.
package escape
