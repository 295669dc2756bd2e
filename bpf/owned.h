/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Whose the writeback of an inode is, and on which disk it is. For programs that count what
 * escapes a group: writes to files that the kernel charges to another one.
 */
#ifndef WEIR_OWNED_H
#define WEIR_OWNED_H

#include "kernel.h"
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFBLK 0060000

/* How far above an owner a group is looked for. */
#define DEPTH_MAX 32

struct device {
	__u32 devt;
} FOUND_WHEN_LOADED;

struct backing_dev_info {
	struct device *owner;
} FOUND_WHEN_LOADED;

struct super_block___owned {
	struct backing_dev_info *s_bdi;
} FOUND_WHEN_LOADED;

struct inode___owned {
	__u32 i_rdev;
} FOUND_WHEN_LOADED;

/* block/bdev.c */
struct block_device {
	void *bd_holder;
} FOUND_WHEN_LOADED;

struct bdev_inode {
	struct block_device bdev;
	struct inode vfs_inode;
} FOUND_WHEN_LOADED;

/* Whether a file system (or whoever has opened it for itself alone) has a block device: what
 * is dirtied of it then is metadata, which is nobody's. */
static __always_inline bool is_held(struct inode *inode)
{
	struct bdev_inode *bdev;

	if (!bpf_core_type_exists(struct bdev_inode))
		return false;
	bdev = (void *)inode - bpf_core_field_offset(((struct bdev_inode *)0)->vfs_inode);
	return BPF_CORE_READ(bdev, bdev.bd_holder) != 0;
}

/* The whole disk that a file system or a block device is on; for a file system of several
 * disks its own number. */
static __always_inline __u32 device_of(struct inode *inode)
{
	struct super_block *sb = BPF_CORE_READ(inode, i_sb);
	struct device *disk;

	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK)
		return BPF_CORE_READ((struct inode___owned *)inode, i_rdev);
	disk = BPF_CORE_READ((struct super_block___owned *)sb, s_bdi, owner);
	if (disk)
		return BPF_CORE_READ(disk, devt);
	return BPF_CORE_READ(sb, s_dev);
}

static __always_inline bool is_below(struct cgroup *cgroup, __u64 id, __u32 level)
{
	for (int i = 0; i < DEPTH_MAX && cgroup; i++) {
		if ((__u32)BPF_CORE_READ(cgroup, level) <= level)
			return BPF_CORE_READ(cgroup, kn, id) == id;
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
	}
	return false;
}

/* Who has the writeback of an inode; 0: nobody whom it can escape to. */
static __always_inline struct bdi_writeback *writeback_of(struct inode *inode)
{
	__u32 type = BPF_CORE_READ(inode, i_mode) & S_IFMT;

	if (!bpf_core_field_exists(inode->i_wb))
		return 0;
	/* A file system's own inodes have no type: its metadata is nobody's. */
	if (type != S_IFREG && (type != S_IFBLK || is_held(inode)))
		return 0;
	/* Without, it is attached after the tracepoint, to the group that the page is charged to. */
	return BPF_CORE_READ(inode, i_wb);
}

#endif
