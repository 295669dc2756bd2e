// Package owners tells which cgroup the writeback of a file is charged to, and moves it
// to another one.
//
// On cgroup v2 the kernel writes a file's dirty pages back on behalf of the group that
// owns the inode: inode->i_wb, which is set when the inode is first dirtied, to the
// dirtier's group (__inode_attach_wb in fs/fs-writeback.c). A limit on another group
// that writes to the file later holds nothing of it. It does not matter whether the
// owner still exists: an owner that was removed stays until its inodes are switched to
// the nearest group above that lives (cleanup_offline_cgwb, since 5.14), which may be
// the root.
//
// # Reading
//
// No file of the kernel shows owners. A Reader loads a BPF program (bpf/owner.bpf.c), an
// iterator over open files (kernel/bpf/task_iter.c, Linux 5.8): it runs while weir reads
// from it, is attached to nothing that other processes pass through, and changes
// nothing. Offsets of fields come from the kernel's own types. Where that cannot be had
// (no BTF, no rights, user-mode Linux) the answer is a *bpf.Unavailable, which means
// "cannot tell".
//
// It sees files that are open: weir opens the ones it is asked about, or lists those of
// processes. A file that a process has mapped and closed is not listed with it. On an
// overlay the file beneath is looked at, whose pages they are.
//
// # Moving
//
// The kernel moves an inode by itself when its pages are another group's for long
// enough (wbc_detach_inode in fs/fs-writeback.c): each writeback votes for the group
// that most of the pages written are charged to, and fills at least one of 16 slots;
// more than 8 for others, and the inode is switched. A page is charged to who brought
// it into the page cache, not to who writes to it, so a group that overwrites what
// another one has left in the cache never gets a vote. Mend writes the file's dirty
// pages, lets its clean ones go from the cache, brings one page in, and has it written
// back until the kernel switches: 12 to 48 times 4 KiB, and mostly less than a second,
// where it was measured (5.10, 6.1 and 7.3; ext4, XFS and btrfs; owner alive, removed,
// and another group writing meanwhile).
//
// The page is made dirty by an atomic or with 0 through a shared mapping. No byte
// changes, and no concurrent store or write(2) is lost. What does change: the file's
// mtime and ctime, its place in the page cache, and where a file system writes changed
// blocks elsewhere (btrfs, reflinks) the place of one block.
//
// Mend refuses what it cannot do without harm: files without data, holes, files open
// for direct I/O anywhere (a direct write and a dirty page of the same block do not
// know of each other) or behind a loop device that does direct I/O, and files of a
// lower layer of an overlay, which would be copied. It cannot see direct I/O through
// descriptors that no process has: files registered with io_uring and then closed, and
// those of targets in the kernel (LIO, nvmet).
//
// Owners can move back: pages that stayed in the cache because they were mapped or in
// use still vote for the group that they are charged to while it lives.
package owners
