/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The fields of the kernel's structures that trace.bpf.c reads beside those of
 * kernel.h. As there, places are found when the program is loaded.
 */
#ifndef WEIR_TRACE_KERNEL_H
#define WEIR_TRACE_KERNEL_H

#include "kernel.h"

/* include/linux/cgroup-defs.h */
struct css_set___v2 {
	struct cgroup *dfl_cgrp;
} FOUND_WHEN_LOADED;

/* include/linux/types.h */
struct hlist_node;

struct hlist_head {
	struct hlist_node *first;
} FOUND_WHEN_LOADED;

/* include/linux/fdtable.h */
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} FOUND_WHEN_LOADED;

struct files_struct {
	struct fdtable *fdt;
} FOUND_WHEN_LOADED;

/* include/linux/sched.h; state was renamed in 5.14 (2f064a59a11f) */
struct task_struct___trace {
	int pid;
	int tgid;
	char comm[16];
	struct files_struct *files;
} FOUND_WHEN_LOADED;

struct task_struct___5_14 {
	unsigned int __state;
} FOUND_WHEN_LOADED;

struct task_struct___older {
	long state;
} FOUND_WHEN_LOADED;

/* arch/x86/include/asm/ptrace.h, arch/arm64/include/asm/ptrace.h: where a system call's
 * arguments are */
struct pt_regs___x86 {
	unsigned long di, si, dx, r10, orig_ax;
} FOUND_WHEN_LOADED;

struct pt_regs___arm64 {
	__u64 regs[31];
	__u64 orig_x0;
	int syscallno;
} FOUND_WHEN_LOADED;

struct thread_info___x86 {
	__u32 status;
} FOUND_WHEN_LOADED;

struct task_struct___x86 {
	struct thread_info___x86 thread_info;
} FOUND_WHEN_LOADED;

/* include/linux/dcache.h */
struct qstr {
	const unsigned char *name;
} FOUND_WHEN_LOADED;

struct dentry {
	struct qstr d_name;
} FOUND_WHEN_LOADED;

struct path___named {
	struct dentry *dentry;
} FOUND_WHEN_LOADED;

struct file___named {
	struct path___named f_path;
} FOUND_WHEN_LOADED;

/* include/linux/mm.h, include/linux/mm_types.h */
struct vm_area_struct {
	struct file *vm_file;
} FOUND_WHEN_LOADED;

struct vm_fault {
	struct vm_area_struct *vma;
} FOUND_WHEN_LOADED;

/* io_uring/io_uring.h, include/linux/io_uring_types.h, include/linux/sched.h */
struct io_wq_work {
	unsigned int flags;
} FOUND_WHEN_LOADED;

struct io_kiocb {
	struct file *file;
	__u8 opcode;
	__u32 flags; /* of 64 bits in 6.12; the lowest are those of the submission */
	struct io_wq_work work;
} FOUND_WHEN_LOADED;

struct io_uring_cqe {
	__s32 res;
} FOUND_WHEN_LOADED;

/* fs/aio.c: begins with the kiocb; include/uapi/linux/aio_abi.h */
struct kioctx {
	unsigned long user_id;
} FOUND_WHEN_LOADED;

struct io_event {
	__u64 obj;
} FOUND_WHEN_LOADED;

struct aio_kiocb {
	struct kioctx *ki_ctx;
	struct io_event ki_res;
} FOUND_WHEN_LOADED;

struct task_struct___flags {
	unsigned int flags;
} FOUND_WHEN_LOADED;

/* block/blk-cgroup.h */
struct blkcg {
	struct cgroup_subsys_state css;
} FOUND_WHEN_LOADED;

struct blkcg_gq {
	struct blkcg *blkcg;
} FOUND_WHEN_LOADED;

/* include/linux/blk_types.h, include/linux/blk-mq.h */
struct block_device {
	__u32 bd_dev;
} FOUND_WHEN_LOADED;

enum req_flag_bits {
	__REQ_SYNC,
	__REQ_RAHEAD,
};

struct bvec_iter {
	unsigned int bi_size;
} FOUND_WHEN_LOADED;

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev; /* since 5.12 */
	void *bi_private;
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
} FOUND_WHEN_LOADED;

struct request {
	struct bio *bio;
} FOUND_WHEN_LOADED;

/* include/trace/events: the records of tracepoints, made by TRACE_EVENT */
struct trace_event_raw_io_uring_submit_req {
	void *req;
} FOUND_WHEN_LOADED;

struct trace_event_raw_io_uring_queue_async_work {
	void *req;
} FOUND_WHEN_LOADED;

struct trace_event_raw_io_uring_complete {
	void *req;
	int res;
} FOUND_WHEN_LOADED;

struct trace_event_raw_mm_vmscan_direct_reclaim_end_template {
	unsigned long nr_reclaimed;
} FOUND_WHEN_LOADED;

#endif
