// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Lists open regular files with the cgroup that owns their writeback: an iterator over
 * the files of all tasks. It runs while its descriptor is read and at no other time,
 * is attached to nothing that others pass through, and changes nothing.
 */
#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

#define S_IFMT 0170000
#define S_IFREG 0100000
#define OVERLAYFS_SUPER_MAGIC 0x794c7630

/* How deep overlays are looked through; the kernel's own bound is 2
 * (FILESYSTEM_MAX_STACK_DEPTH in include/linux/fs.h). */
#define OVERLAYS_MAX 2

/* What is listed. One entry. */
struct query {
	__u64 inode; /* the files that are this inode; 0: those of processes */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct query);
} queries SEC(".maps");

/* The processes whose files are listed, as the reader's pid namespace numbers them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} processes SEC(".maps");

enum {
	GROUP_ROOT = 1 << 0,
	GROUP_DEAD = 1 << 1,

	FILE_KNOWN = 1 << 0,    /* the kernel keeps owners at all */
	FILE_TRACKED = 1 << 1,  /* and so does the file system */
	FILE_OWNED = 1 << 2,    /* something of it has been dirtied */
	FILE_BENEATH = 1 << 3,  /* inode is the one beneath an overlay */
	FILE_READONLY = 1 << 4, /* on a mount (of an overlay: a layer) without writing */
	FILE_UNKNOWN = 1 << 5,  /* on an overlay that could not be looked through */
	FILE_LAYERED = 1 << 6,  /* beneath an overlay, in a layer that is not known */
};

#define GROUP_NAME_BYTES 128

struct group {
	__u64 id;
	__u64 parent;
	__u32 flags;
	__u32 pad;
	char name[GROUP_NAME_BYTES];
};

/* One open file; internal/linux/inode/record.go reads it. */
struct record {
	__u64 inode; /* its address: the identity, where numbers repeat (btrfs) */
	__u64 number;
	__u64 caller; /* the reader's own memory cgroup */
	__u32 device;
	__u32 process;
	__u32 fd;
	__u32 open_flags;
	__u32 flags;
	__u32 pad;
	struct group memory;
	struct group io;
};

/* A record is larger than the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record);
} scratch SEC(".maps");

static __always_inline __u32 process_id(struct task_struct *task)
{
	struct task_struct *reader = (void *)bpf_get_current_task();
	__u32 level = BPF_CORE_READ(reader, thread_pid, level);
	struct pid *pid = BPF_CORE_READ(task, signal, pids[PIDTYPE_TGID]);
	const void *numbers;
	int nr = 0;

	if (!pid || level > BPF_CORE_READ(pid, level))
		return 0;
	numbers = (const void *)pid + bpf_core_field_offset(struct pid, numbers);
	numbers += (__u64)level * bpf_core_type_size(struct upid);
	bpf_core_read(&nr, sizeof(nr), &((const struct upid *)numbers)->nr);
	return nr;
}

static __always_inline struct kernfs_node *parent_of(struct kernfs_node *kn)
{
	struct kernfs_node___6_15 *renamed = (void *)kn;

	if (bpf_core_field_exists(renamed->__parent))
		return BPF_CORE_READ(renamed, __parent);
	return BPF_CORE_READ(kn, parent);
}

static __always_inline void describe(struct group *g, struct cgroup_subsys_state *css)
{
	struct cgroup *cgroup = BPF_CORE_READ(css, cgroup);
	struct kernfs_node *kn = BPF_CORE_READ(cgroup, kn);

	g->id = BPF_CORE_READ(kn, id);
	g->parent = BPF_CORE_READ(parent_of(kn), id);
	g->flags = 0;
	if (!BPF_CORE_READ(css, parent))
		g->flags |= GROUP_ROOT;
	/* The cgroup itself, not the controller's part: that ends as well when the
	 * group above no longer gives the controller. */
	if (!(BPF_CORE_READ(cgroup, self.flags) & CSS_ONLINE))
		g->flags |= GROUP_DEAD;
	g->name[0] = 0;
	bpf_probe_read_kernel_str(g->name, sizeof(g->name), BPF_CORE_READ(kn, name));
}

static __always_inline __u64 caller(void)
{
	struct task_struct *reader = (void *)bpf_get_current_task();
	struct cgroup_subsys_state *css = 0;
	const void *all = BPF_CORE_READ(reader, cgroups);

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		return 0;
	all += bpf_core_field_offset(struct css_set, subsys);
	all += sizeof(css) * bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	bpf_probe_read_kernel(&css, sizeof(css), all);
	return BPF_CORE_READ(css, cgroup, kn, id);
}

/* Whether an address is that of an open regular file. What an overlay's file refers to
 * has changed its type (see beneath), and this tells which one it is. */
static __always_inline int is_file(struct file *file)
{
	struct address_space *mapping = BPF_CORE_READ(file, f_mapping);
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	return mapping && inode && BPF_CORE_READ(inode, i_mapping) == mapping &&
	       BPF_CORE_READ(mapping, host) == inode &&
	       (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFREG;
}

/* The file beneath one of an overlay, which has the pages: private_data is that file
 * (4.19, d1d04ef8572b), and since 6.13 (87a8a76c34a2) a pair of pointers: the file
 * that was opened, and the one of the upper layer if it was copied there since. */
static __always_inline struct file *beneath(struct file *file)
{
	void *data = BPF_CORE_READ(file, private_data);
	struct file *pair[2] = {};

	if (is_file(data))
		return data;
	bpf_probe_read_kernel(pair, sizeof(pair), data);
	if (is_file(pair[1]))
		return pair[1];
	return is_file(pair[0]) ? pair[0] : 0;
}

static __always_inline int is_overlay(struct file *file)
{
	return BPF_CORE_READ(file, f_inode, i_sb, s_magic) == OVERLAYFS_SUPER_MAGIC;
}

/* Lower layers are mounted read-only for the overlay (ovl_get_layers in
 * fs/overlayfs/super.c). Before 6.7 (def3ae83da02) the file beneath has the overlay's
 * path instead of its own, and does not tell. */
static __always_inline __u32 layer(struct file *file)
{
	struct vfsmount *mnt = BPF_CORE_READ(file, f_path.mnt);

	if (BPF_CORE_READ(mnt, mnt_sb) != BPF_CORE_READ(file, f_inode, i_sb))
		return FILE_LAYERED;
	return BPF_CORE_READ(mnt, mnt_flags) & MNT_READONLY ? FILE_READONLY : 0;
}

static __always_inline void owner(struct record *r, struct inode *inode)
{
	struct bdi_writeback *wb;

	if (!bpf_core_field_exists(inode->i_wb))
		return;
	r->flags |= FILE_KNOWN;
	if (BPF_CORE_READ(inode, i_sb, s_iflags) & SB_I_CGROUPWB)
		r->flags |= FILE_TRACKED;
	wb = BPF_CORE_READ(inode, i_wb);
	if (!wb)
		return;
	r->flags |= FILE_OWNED;
	describe(&r->memory, BPF_CORE_READ(wb, memcg_css));
	describe(&r->io, BPF_CORE_READ(wb, blkcg_css));
}

SEC("iter/task_file")
int list_owners(struct bpf_iter__task_file *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct query *query;
	struct record *r;
	struct inode *inode;
	__u32 first = 0, process;

	if (!task || !file)
		return 0;
	if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	query = bpf_map_lookup_elem(&queries, &first);
	r = bpf_map_lookup_elem(&scratch, &first);
	if (!query || !r)
		return 0;
	process = process_id(task);
	if (!query->inode && !bpf_map_lookup_elem(&processes, &process))
		return 0;

	r->flags = 0;
	r->open_flags = BPF_CORE_READ(file, f_flags);
#pragma unroll
	for (int i = 0; i < OVERLAYS_MAX; i++) {
		struct file *real;

		if (!is_overlay(file))
			break;
		real = beneath(file);
		if (!real) {
			r->flags |= FILE_UNKNOWN;
			break;
		}
		file = real;
		r->flags |= FILE_BENEATH;
	}
	inode = BPF_CORE_READ(file, f_inode);
	if (query->inode && query->inode != (__u64)inode)
		return 0;

	r->inode = (__u64)inode;
	r->number = BPF_CORE_READ(inode, i_ino);
	r->caller = caller();
	r->device = BPF_CORE_READ(inode, i_sb, s_dev);
	r->process = process;
	r->fd = ctx->fd;
	r->flags |= layer(file);
	owner(r, inode);
	bpf_seq_write(seq, r, sizeof(*r));
	return 0;
}
