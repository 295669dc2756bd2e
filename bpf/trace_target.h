/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Whether a task, an I/O or a file is one that the trace is about. */
#ifndef WEIR_TRACE_TARGET_H
#define WEIR_TRACE_TARGET_H

#include "trace_state.h"

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFBLK 0060000

static __always_inline bool is_below(struct cgroup *cgroup)
{
	struct cgroup___pointers *newer = (void *)cgroup;
	struct cgroup___ids *older = (void *)cgroup;
	__u64 id = 0;

	if (!cgroup || (__u32)BPF_CORE_READ(newer, level) < filter_level)
		return false;
	if (bpf_core_field_exists(newer->ancestors)) {
		struct cgroup *above = 0;
		const void *at = (const void *)cgroup + bpf_core_field_offset(struct cgroup___pointers, ancestors);

		bpf_probe_read_kernel(&above, sizeof(above), at + (__u64)filter_level * sizeof(above));
		id = BPF_CORE_READ(above, kn, id);
	} else if (bpf_core_field_exists(older->ancestor_ids)) {
		const void *at = (const void *)cgroup + bpf_core_field_offset(struct cgroup___ids, ancestor_ids);

		bpf_probe_read_kernel(&id, sizeof(id), at + (__u64)filter_level * sizeof(id));
	}
	return id == filter_id;
}

static __always_inline bool in_target(struct css_set *set)
{
	struct cgroup_subsys_state *css = 0;
	const void *all = (const void *)set + bpf_core_field_offset(struct css_set, subsys);

	if (filter_subsys < 0)
		return is_below(BPF_CORE_READ((struct css_set___v2 *)set, dfl_cgrp));
	bpf_probe_read_kernel(&css, sizeof(css), all + (__u64)filter_subsys * sizeof(css));
	return is_below(BPF_CORE_READ(css, cgroup));
}

/* Whether the current task is the target's. What was found is kept for as long as the
 * task is in the same groups. */
static __always_inline bool is_taken(struct op *op)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct css_set *set;

	if (filter == FILTER_PROCESS)
		return tgid == filter_id;
	if (filter == FILTER_ALL)
		return tgid != own_tgid;
	set = BPF_CORE_READ(task, cgroups);
	if (op->set != (__u64)set) {
		op->set = (__u64)set;
		op->taken = tgid != own_tgid && in_target(set);
	}
	return op->taken;
}

/* File systems without a disk: their magic numbers (linux/magic.h). */
static __always_inline bool has_disk(__u64 magic)
{
	switch (magic) {
	case 0x9fa0:     /* proc */
	case 0x62656572: /* sysfs */
	case 0x1021994:  /* tmpfs, devtmpfs */
	case 0x858458f6: /* ramfs */
	case 0x27e0eb:   /* cgroup */
	case 0x63677270: /* cgroup2 */
	case 0x64626720: /* debugfs */
	case 0x74726163: /* tracefs */
	case 0xcafe4a11: /* bpf */
	case 0x1cd1:     /* devpts */
	case 0x73636673: /* securityfs */
	case 0x958458f6: /* hugetlbfs */
	case 0x19800202: /* mqueue */
		return false;
	}
	return true;
}

static __always_inline void look_at(struct op *op, struct file *file, struct inode *inode)
{
	__u32 type = BPF_CORE_READ(inode, i_mode) & S_IFMT;

	op->file = (__u64)file;
	op->inode = (__u64)inode;
	op->on_disk = type == S_IFBLK || (type == S_IFREG && has_disk(BPF_CORE_READ(inode, i_sb, s_magic)));
}

/* Whether a descriptor of the current task is a file on a disk. */
static __always_inline bool on_disk(struct op *op, __u32 fd)
{
	struct task_struct___trace *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **all = BPF_CORE_READ(table, fd);
	struct inode *inode;
	struct file *file = 0;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return false;
	if (bpf_probe_read_kernel(&file, sizeof(file), all + fd) || !file)
		return false;
	inode = BPF_CORE_READ(file, f_inode);
	if (op->file != (__u64)file || op->inode != (__u64)inode)
		look_at(op, file, inode);
	op->fd = fd;
	return op->on_disk;
}

/* Whether an I/O is charged to the target, whoever submits it. */
static __always_inline bool is_charged(struct bio *bio)
{
	if (filter != FILTER_CGROUP || !bpf_core_field_exists(bio->bi_blkg))
		return false;
	return is_below(BPF_CORE_READ(bio, bi_blkg, blkcg, css.cgroup));
}

#endif
