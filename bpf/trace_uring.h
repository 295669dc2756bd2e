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

/* The current task is no longer at its request. What a worker was at may be complete by
 * now, and gone from requests. */
static __always_inline void put_away(struct op *op)
{
	__u64 if_there = op->asked == ASKED_TAKEN ? BPF_EXIST : BPF_ANY;

	if (op->asked != ASKED_POLLED) /* that looks for others since, on the processor */
		account_on(op, bpf_ktime_get_ns());
	if (if_there == BPF_EXIST)
		op->asked = ASKED;
	if (!is_foreign(op) && bpf_map_update_elem(&requests, &op->request, op, if_there) && if_there == BPF_ANY)
		COUNT_LOST(tasks);
	op->begin = 0;
}

/* Flags of a submission (include/uapi/linux/io_uring.h): linked to the next one, and
 * without an answer if it succeeds. */
#define REQUEST_LINKED (1 << 2 | 1 << 3)
#define REQUEST_SILENT (1 << 6)

static __always_inline void asked(struct io_kiocb *request)
{
	void *task = own_task();
	__u32 tid = tid_of(task), flags = 0;
	struct op *op = place_of(tid);
	__u8 opcode = BPF_CORE_READ(request, opcode), call = 0;
	__u64 key = (__u64)request;
	bool chained = op && op->chained, linked;
	struct op *older;

	if (op && op->begin && op->asked)
		put_away(op);
	else if (op && op->begin && op->ended)
		finish(op);
	if (!is_taken(task))
		return;
	uring = true;
	older = bpf_map_lookup_elem(&requests, &key);
	if (older) { /* another one's, whose end was not seen */
		count_unseen(older->kind & CALL_KIND, older->mark - older->begin);
		bpf_map_delete_elem(&requests, &key);
	}
	if (opcode < OPCODES_MAX)
		call = opcodes[opcode];
	bpf_core_read(&flags, sizeof(flags), &request->flags);
	linked = flags & REQUEST_LINKED;
	if (op)
		op->chained = linked;
	if (!(call & CALL_TAKEN) || flags & REQUEST_SILENT)
		return;
	op = new_op(tid);
	if (!op)
		return;
	start(op, call & CALL_KIND, bpf_ktime_get_ns());
	op->request = key;
	op->asked = ASKED;
	if (((struct task_struct___flags *)task)->flags & PF_IO_WORKER)
		op->asked = ASKED_POLLED;
	op->file = 0;
	op->on_disk = 0;
	op->fd = -1;
	if (held_unseen)
		op->group = io_number(task);
	op->chained = linked;
	/* Of a chain the first is begun when the last has been submitted, and the others one
	 * after the other, where nobody sees who is at them. */
	if (chained || linked) {
		op->asked = ASKED_PUNTED;
		put_away(op);
	}
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
	op->asked = ASKED_TAKEN;
	now = bpf_ktime_get_ns();
	add(op, PART_URING, now - op->mark);
	op->mark = now;
	from->tid = tid;
	from->asked = ASKED_WORKER;
}

SEC("fentry/io_wq_submit_work")
int worker_began(__u64 *ctx)
{
	IN_FUNCTION(at_worker(ctx[0]));
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

/* The request's own I/O, if it is known, or else what the throttle has held; 0: neither. */
static __always_inline struct life *io_of(struct op *op)
{
	struct life *l = bpf_map_lookup_elem(&done, &op->request);

	if (!l || l->complete < op->begin)
		l = held_for(op);
	return l && l->complete >= op->begin ? l : 0;
}

/* The time since anybody was at a request: for a worker, or for those that it is linked
 * behind, if it was punted; else, as far as
 * its I/O is not known, for I/O that others have submitted. */
static __always_inline void account_away(struct op *op, __u64 now)
{
	__u32 before = op->asked == ASKED_PUNTED ? PART_URING : PART_IO;
	struct life *l;

	if (!op->file) /* else what is held on any disk would be its own */
		is_foreign(op);
	l = io_of(op);
	if (l) {
		op->mark = account_life(op, l, op->mark, now, l->waiter == op->request ? before : PART_THROTTLE);
		before = PART_URING;
	}
	if (now > op->mark)
		add(op, before, now - op->mark);
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

/* Comes in a task's context, which need not be the one that was at it. A thread that looks
 * for requests does so on the processor, while their I/O is under way. */
static __always_inline void answered(__u64 request, __s32 result)
{
	struct op *op = own_op(), *from = away(request);
	__u64 now = bpf_ktime_get_ns();

	if (op && op->asked && op->request == request) {
		if (op->asked == ASKED_POLLED && io_of(op))
			account_away(op, now);
		account_on(op, now);
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
