/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Requests of io_uring: operations that a task begins and does not wait in. While a task
 * is at one (who submits it tries it at once, and a worker does what would have to sleep)
 * it is the task's operation as if it were a system call. In between it is put away,
 * until it is complete; what has passed by then are the stages of its I/O, and the time
 * until who asked takes the answer.
 */
#ifndef WEIR_TRACE_URING_H
#define WEIR_TRACE_URING_H

#include "trace_op.h"

#define PF_IO_WORKER 0x10 /* include/linux/sched.h */

/* Whether a request's file, known once somebody was at it, is none on a disk. */
static __always_inline bool is_foreign(struct op *op)
{
	struct io_kiocb *request = (void *)op->request; /* within BPF_CORE_READ, op would be the kernel's */
	struct file *file;

	if (op->file)
		return !op->on_disk;
	file = BPF_CORE_READ(request, file);
	if (!file)
		return false;
	look_at(op, file, BPF_CORE_READ(file, f_inode));
	return !op->on_disk;
}

/* The current task is no longer at its request. */
static __always_inline void put_away(struct op *op)
{
	account_on(op, bpf_ktime_get_ns());
	if (!is_foreign(op) && bpf_map_update_elem(&requests, &op->request, op, BPF_ANY))
		COUNT_LOST(tasks);
	op->begin = 0;
}

static __always_inline void asked(struct io_kiocb *request)
{
	struct op *op = own_op();
	__u8 opcode = request->opcode, call;

	if (op && op->asked)
		put_away(op);
	else if (op && op->ended)
		finish(op);
	if (opcode >= OPCODES_MAX)
		return;
	call = opcodes[opcode];
	if (!(call & CALL_TAKEN) || !is_taken(own_task()))
		return;
	op = new_op(own_tid());
	if (!op)
		return;
	start(op, call & CALL_KIND, bpf_ktime_get_ns());
	op->request = (__u64)request;
	op->asked = ASKED;
	if (((struct task_struct___flags *)bpf_get_current_task_btf())->flags & PF_IO_WORKER)
		op->asked = ASKED_POLLED;
	op->file = 0;
	op->on_disk = 0;
	op->fd = -1;
}

SEC("tp_btf/io_uring_submit_req")
int request_asked(__u64 *ctx)
{
	UNPREEMPTED(asked((struct io_kiocb *)ctx[0]));
	return 0;
}

/* A request that nobody is at, or that another task is at. */
static __always_inline struct op *away(__u64 request)
{
	return bpf_map_lookup_elem(&requests, &request);
}

static __always_inline void punted(__u64 request)
{
	struct op *op = own_op();

	if (op && op->asked && op->request == request) {
		op->asked = ASKED_PUNTED;
		put_away(op);
		return;
	}
	op = away(request);
	if (op && op->asked != ASKED_WORKER)
		op->asked = ASKED_PUNTED;
}

SEC("tp_btf/io_uring_queue_async_work")
int request_punted(__u64 *ctx)
{
	UNPREEMPTED(punted(ctx[0]));
	return 0;
}

/* Who has submitted requests now waits for them to complete. */
static __always_inline void reaping(void)
{
	struct op *op = own_op();

	if (op && op->asked)
		put_away(op);
}

SEC("tp_btf/io_uring_cqring_wait")
int requests_awaited(void *ctx)
{
	UNPREEMPTED(reaping());
	return 0;
}

static __always_inline void at_worker(__u64 work)
{
	__u64 request = work - bpf_core_field_offset(struct io_kiocb, work), now;
	struct op *op = own_op(), *from = away(request);
	__u32 tid = own_tid();

	if (op && op->asked)
		put_away(op); /* that it has begun; what completes it may be to come */
	if (!from || from->asked == ASKED_WORKER)
		return;
	op = new_op(tid);
	if (!op)
		return;
	__builtin_memcpy(op, from, sizeof(*op));
	op->tid = tid;
	op->asked = ASKED;
	now = bpf_ktime_get_ns();
	add(op, PART_URING, now - op->mark);
	op->mark = now;
	from->tid = tid;
	from->asked = ASKED_WORKER;
}

SEC("fentry/io_wq_submit_work")
int worker_began(__u64 *ctx)
{
	UNPREEMPTED(at_worker(ctx[0]));
	return 0;
}

/* The same where functions take no fentry. */
SEC("kprobe/io_wq_submit_work")
int worker_began_kprobe(void *regs)
{
	__u64 work = first_argument(regs);

	if (work)
		UNPREEMPTED(at_worker(work));
	return 0;
}

/* The time since anybody was at a request. */
static __always_inline void account_away(struct op *op, __u64 now)
{
	struct life *l = bpf_map_lookup_elem(&done, &op->request);
	__u32 part = op->asked == ASKED_PUNTED ? PART_URING : PART_OTHER;
	__u64 end;

	if (!l || l->complete < op->mark)
		l = held_for(op);
	if (l && l->complete >= op->begin) {
		part = PART_URING;
		end = l->complete < now ? l->complete : now;
		if (end > op->mark) {
			account_io(op, end);
			op->mark = end;
		}
	}
	if (now > op->mark)
		add(op, part, now - op->mark);
	op->mark = now;
}

static __always_inline void complete(struct op *op, __u64 now, __s32 result)
{
	if (!is_foreign(op)) {
		if (result > 0 && op->kind <= KIND_READ)
			op->bytes = result;
		op->failed = result < 0;
		finish(op);
	}
	op->begin = 0;
}

/* Comes in a task's context, which need not be the one that was at it. */
static __always_inline void answered(__u64 request, __s32 result)
{
	struct op *op = own_op(), *from = away(request);
	__u64 now = bpf_ktime_get_ns();

	if (op && op->asked == ASKED && op->request == request) {
		account_on(op, now);
		complete(op, now, result);
	} else if (op && op->asked && op->request == request) {
		account_away(op, now);
		complete(op, now, result);
	} else if (from) {
		op = from->asked == ASKED_WORKER ? op_of(from->tid) : from;
		if (op && op->request == request) {
			account_away(op, now);
			complete(op, now, result);
		}
	}
	if (from)
		bpf_map_delete_elem(&requests, &request);
}

SEC("tp_btf/io_uring_complete")
int request_answered(__u64 *ctx)
{
	__s32 result;

	if (cqe_argument)
		result = BPF_CORE_READ((struct io_uring_cqe *)ctx[2], res);
	else
		result = ctx[3];
	UNPREEMPTED(answered(ctx[1], result));
	return 0;
}

#endif
