/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The few fields of the kernel's structures that owner.bpf.c reads. Where each is in
 * the running kernel is found when the program is loaded, from the kernel's own
 * description of its types (CO-RE), so only names and types must be right here.
 * Fields are in the order of use, not of the kernel.
 */
#ifndef WEIR_KERNEL_H
#define WEIR_KERNEL_H

#include <linux/types.h>

#define FOUND_WHEN_LOADED __attribute__((preserve_access_index))

/* include/linux/kernfs.h; id is 64 bits wide since 5.5 */
struct kernfs_node {
	__u64 id;
	const char *name;
	struct kernfs_node *parent;
} FOUND_WHEN_LOADED;

/* the same since 6.15, which renamed the field */
struct kernfs_node___6_15 {
	struct kernfs_node *__parent;
} FOUND_WHEN_LOADED;

struct cgroup;

/* include/linux/cgroup-defs.h */
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
	int id;
	unsigned int flags;
} FOUND_WHEN_LOADED;

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	int level;
} FOUND_WHEN_LOADED;

enum { CSS_ONLINE = 1 << 1 };

enum cgroup_subsys_id { /* the running kernel's are asked for */
	memory_cgrp_id = 1,
	io_cgrp_id = 2,
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
} FOUND_WHEN_LOADED;

/* include/linux/backing-dev-defs.h; both only with CONFIG_CGROUP_WRITEBACK */
struct bdi_writeback {
	struct cgroup_subsys_state *memcg_css;
	struct cgroup_subsys_state *blkcg_css;
} FOUND_WHEN_LOADED;

/* include/linux/fs.h */
struct super_block {
	__u32 s_dev;
	unsigned long s_iflags;
	unsigned long s_magic;
} FOUND_WHEN_LOADED;

enum { SB_I_CGROUPWB = 1 };

struct inode;

struct address_space {
	struct inode *host;
} FOUND_WHEN_LOADED;

struct inode {
	__u16 i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	struct bdi_writeback *i_wb; /* only with CONFIG_CGROUP_WRITEBACK */
} FOUND_WHEN_LOADED;

/* include/linux/mount.h */
struct vfsmount {
	struct super_block *mnt_sb;
	int mnt_flags;
} FOUND_WHEN_LOADED;

enum { MNT_READONLY = 0x40 };

struct path {
	struct vfsmount *mnt;
} FOUND_WHEN_LOADED;

struct file {
	struct inode *f_inode;
	struct address_space *f_mapping;
	struct path f_path;
	unsigned int f_flags;
	void *private_data;
} FOUND_WHEN_LOADED;

/* include/linux/pid.h */
struct upid {
	int nr;
} FOUND_WHEN_LOADED;

struct pid {
	unsigned int level;
	struct upid numbers[1];
} FOUND_WHEN_LOADED;

enum { PIDTYPE_TGID = 1 };

/* include/linux/sched/signal.h, include/linux/sched.h */
struct signal_struct {
	struct pid *pids[2];
} FOUND_WHEN_LOADED;

struct task_struct {
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct css_set *cgroups;
} FOUND_WHEN_LOADED;

/* include/linux/bpf.h; kernel/bpf/task_iter.c */
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} FOUND_WHEN_LOADED;

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
} FOUND_WHEN_LOADED;

#endif
