/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Whether a task, an I/O or a file is one that the trace is about. */
#ifndef WEIR_TRACE_TARGET_H
#define WEIR_TRACE_TARGET_H

#include "trace_state.h"

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFBLK 0060000

/* How far below the target a group is looked for. */
#define DEPTH_MAX 32

/* The target, or a group below it. Reads through helpers, for pointers of any origin. */
static __always_inline bool is_below(struct cgroup *cgroup)
{
	for (int i = 0; i < DEPTH_MAX && cgroup; i++) {
		if ((__u32)BPF_CORE_READ(cgroup, level) <= filter_level)
			return BPF_CORE_READ(cgroup, kn, id) == filter_id;
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
	}
	return false;
}

/* The same for pointers that the verifier knows: loads, without a call. */
static __always_inline bool is_below_known(struct cgroup *cgroup)
{
	for (int i = 0; i < DEPTH_MAX && cgroup; i++) {
		struct cgroup_subsys_state *above;

		if ((__u32)cgroup->level <= filter_level)
			return cgroup->kn && cgroup->kn->id == filter_id;
		above = cgroup->self.parent;
		if (!above)
			return false;
		cgroup = above->cgroup;
	}
	return false;
}

/* What a v1 controller knows of a set of groups: io's, where weir's targets are. */
static __always_inline const void *io_state(const struct css_set *set)
{
	return (const void *)set + bpf_core_field_offset(struct css_set, subsys) +
	       sizeof(void *) * bpf_core_enum_value(enum cgroup_subsys_id, io_cgrp_id);
}

static __always_inline struct cgroup_subsys_state *io_state_of(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup_subsys_state *css = 0;

	bpf_probe_read_kernel(&css, sizeof(css), io_state(set));
	return css;
}

/* Of a task's group for io, as the kernel numbers them. */
static __always_inline __u32 io_number(struct task_struct *task)
{
	struct cgroup_subsys_state *css = io_state_of(task);

	return BPF_CORE_READ(css, id);
}

static __always_inline bool in_target(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup_subsys_state *css;

	if (!filter_v1)
		return is_below(BPF_CORE_READ((struct css_set___v2 *)set, dfl_cgrp));
	css = io_state_of(task);
	return is_below(BPF_CORE_READ(css, cgroup));
}

static __always_inline bool in_target_known(struct task_struct *task)
{
	struct css_set *set = task->cgroups;
	struct cgroup_subsys_state *css;

	if (!set)
		return false;
	if (!filter_v1)
		return is_below_known(((struct css_set___v2 *)set)->dfl_cgrp);
	css = *(struct cgroup_subsys_state **)io_state(set);
	return css && is_below_known(css->cgroup);
}

/* Whether the current task is the target's. All traced calls of the host come here. */
static __always_inline bool is_taken(void *task)
{
	__u32 tgid;

	if (!started)
		return false;
	if (filter == FILTER_CGROUP && !(known_task ? in_target_known(task) : in_target(task)))
		return false;
	tgid = bpf_get_current_pid_tgid() >> 32;
	return filter == FILTER_PROCESS ? tgid == filter_id : tgid != own_tgid && tgid != asker_tgid;
}

/* Whether the current task is in a system call of 32 bits, which have other numbers. */
#define TS_COMPAT 2 /* arch/x86/include/asm/thread_info.h */
static __always_inline bool is_compat(void *current)
{
	struct task_struct___x86 *task = current;

	if (!bpf_core_field_exists(struct thread_info___x86, status))
		return false;
	if (known_task)
		return task->thread_info.status & TS_COMPAT;
	return BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
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

static __always_inline struct file *file_at(struct file **place)
{
	struct file *file = 0;

	if (bpf_rdonly_cast)
		return (void *)((struct hlist_head *)bpf_rdonly_cast(place, bpf_core_type_id_kernel(struct hlist_head)))->first;
	bpf_probe_read_kernel(&file, sizeof(file), place);
	return file;
}

static __always_inline struct inode *inode_of(struct file *file)
{
	if (bpf_rdonly_cast)
		return ((struct file *)bpf_rdonly_cast(file, bpf_core_type_id_kernel(struct file)))->f_inode;
	return BPF_CORE_READ(file, f_inode);
}

/* Whether a descriptor of the current task is a file on a disk. */
static __always_inline bool on_disk(struct op *op, void *task, __u32 fd)
{
	struct inode *inode;
	struct fdtable *table;
	struct file **all, *file;
	__u32 number;

	if (known_task) {
		struct files_struct *files = ((struct task_struct___trace *)task)->files;

		table = files ? files->fdt : 0;
		if (!table)
			return false;
		all = table->fd;
		number = table->max_fds;
	} else {
		table = BPF_CORE_READ((struct task_struct___trace *)task, files, fdt);
		all = BPF_CORE_READ(table, fd);
		number = BPF_CORE_READ(table, max_fds);
	}
	if (fd >= number)
		return false;
	file = file_at(all + fd);
	if (!file)
		return false;
	inode = inode_of(file);
	if (op->file != (__u64)file || op->inode != (__u64)inode)
		look_at(op, file, inode);
	op->fd = fd;
	return op->on_disk;
}

/* Whether an I/O is charged to the target, whoever submits it. */
static __always_inline bool is_charged(struct bio *bio)
{
	if (!started || filter != FILTER_CGROUP || !bpf_core_field_exists(bio->bi_blkg))
		return false;
	return is_below(BPF_CORE_READ(bio, bi_blkg, blkcg, css.cgroup));
}

/* An argument of the system call that a task is in, or leaves. */
static __always_inline __u64 syscall_argument(const void *regs, __u32 n, bool leaves)
{
	const struct pt_regs___x86 *x86 = regs;
	const struct pt_regs___arm64 *arm64 = regs;

	if (bpf_core_field_exists(x86->di))
		return n == 0 ? x86->di : n == 1 ? x86->si : n == 2 ? x86->dx : x86->r10;
	if (bpf_core_field_exists(arm64->regs))
		return n == 0 ? leaves ? arm64->orig_x0 : arm64->regs[0] : n == 1 ? arm64->regs[1] : n == 2 ? arm64->regs[2] : arm64->regs[3];
	return -1;
}

#endif
