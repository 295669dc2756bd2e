// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Splits the time of reads, writes and fsyncs. A task that is in one has a struct op.
 * Its time on a processor is its own, or reclaim's; when it sleeps, the functions it
 * sleeps in say for what, and if that is its own I/O, the stages of that I/O do.
 */
#include "trace_op.h"
#include "trace_block.h"
#include "trace_calls.h"

char _license[] SEC("license") = "GPL";

/* A page fault that has to bring in a page of a mapped file, or makes one writable: the
 * faults that wait. Those within a system call are its own time. */
static __always_inline void fault(struct vm_fault *vmf)
{
	struct op *op = own_op();
	struct file *file;
	__u64 now;

	if (op && !op->ended)
		return;
	if (op)
		finish(op);
	if (!is_taken(own_task()))
		return;
	now = bpf_ktime_get_ns();
	op = new_op(own_tid());
	file = BPF_CORE_READ(vmf, vma, vm_file);
	if (!op || !file)
		return;
	look_at(op, file, BPF_CORE_READ(file, f_inode));
	op->fd = -1;
	if (op->on_disk)
		start(op, KIND_FAULT, now);
}

static __always_inline void faulted(void)
{
	struct op *op = own_op();

	if (op && op->kind == KIND_FAULT && !op->ended)
		stop(op, 0);
}

SEC("fentry/filemap_fault")
int read_fault(__u64 *ctx)
{
	IN_FUNCTION(fault((void *)ctx[0]));
	return 0;
}

SEC("fexit/filemap_fault")
int read_faulted(void *ctx)
{
	IN_FUNCTION(faulted());
	return 0;
}

SEC("fentry/do_page_mkwrite")
int write_fault(__u64 *ctx)
{
	IN_FUNCTION(fault((void *)ctx[0]));
	return 0;
}

SEC("fexit/do_page_mkwrite")
int write_faulted(void *ctx)
{
	IN_FUNCTION(faulted());
	return 0;
}

static __always_inline bool is_ready(__u64 task)
{
	struct task_struct___5_14 *newer = (void *)task;
	struct task_struct___older *older = (void *)task;

	if (bpf_core_field_exists(newer->__state))
		return !BPF_CORE_READ(newer, __state);
	return !BPF_CORE_READ(older, state);
}

/* For how long what stops a task counts as its last call's, once that has returned. */
#define BACK_NS 1000000

/* What a task can wait for on its way back from a call. */
#define WAITS_BACK (1 << WAIT_FROZEN | 1 << WAIT_MEMCG | 1 << WAIT_RECLAIM | 1 << WAIT_QUEUE)

/* Whether a task whose last call had returned is in another one by now, whose begin was not
 * seen: the kernel has left out the program there, or the task waits before it gets there
 * (for a tracer, for seccomp). */
static __always_inline bool is_over(const struct op *op, __u64 now, bool ready, __u64 waits)
{
	if (waits & 1 << WAIT_BACK) /* however slow the processor is */
		return !(waits & 1 << WAIT_SYSCALL);
	return now - op->mark > BACK_NS || (!ready && !(waits & WAITS_BACK));
}

static __always_inline void switched_out(void *ctx, struct op *op, bool ready)
{
	__u64 now = bpf_ktime_get_ns(), waits = 0;

	if (op->asked == ASKED_POLLED) {
		put_away(op);
		return;
	}
	if (op->ended || !ready)
		waits = waits_here(ctx);
	if (op->asked && !op->file)
		is_foreign(op);
	if (op->asked == ASKED_TAKEN && !ready && lowest(waits) == WAITS - 1) {
		put_away(op); /* it has begun, and its worker waits for another */
		return;
	}
	if (held_unseen)
		op->group = io_number(own_task());
	if (op->ended && (waits & 1 << WAIT_EXIT || !(waits & 1 << WAIT_SYSCALL))) {
		/* Back in its own code: the call had ended with the last thing seen of it,
		 * but for a freezer that catches the task before it has looked at its clock. */
		if (waits & 1 << WAIT_EXIT || !(waits & 1 << WAIT_FROZEN) || now - op->mark > BACK_NS) {
			finish(op);
			return;
		}
		op->mark = now;
	} else if (op->ended && (in_another_call(op) || (!op->reclaim && is_over(op, now, ready, waits)))) {
		finish(op);
		return;
	} else if (!op->ended && !op->asked && !ready && in_another_call(op)) {
		give_up(op);
		return;
	}
	account_on(op, now);
	op->off = ready ? READY : lowest(waits) + 1;
	op->woken = 0;
}

SEC("tp_btf/sched_switch")
int switched(__u64 *ctx)
{
	struct task_struct___trace *previous = (void *)ctx[1], *next = (void *)ctx[2];
	struct op *op = op_of(previous->pid);

	if (op)
		switched_out(ctx, op, ctx[0] || is_ready(ctx[1]));
	op = op_of(next->pid);
	if (op && op->off)
		account_off(op, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sched_waking")
int waking(__u64 *ctx)
{
	struct op *op = op_of(((struct task_struct___trace *)ctx[0])->pid);

	if (op && op->off)
		op->woken = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void enter_reclaim(void *ctx, __u8 part)
{
	struct op *op = own_op();
	__u64 now, waits = 0;

	if (!op || op->reclaim)
		return;
	now = bpf_ktime_get_ns();
	if (op->ended)
		waits = waits_here(ctx);
	if (op->ended && (!(waits & 1 << WAIT_SYSCALL) || in_another_call(op) ||
			  (now - op->mark > BACK_NS && !(waits & 1 << WAIT_BACK)))) {
		finish(op); /* it is in its own code again, which faults, or in another call */
		return;
	}
	account_on(op, now);
	op->reclaim = part;
}

static __always_inline void leave_reclaim(__u8 part, __u64 pages)
{
	struct op *op = own_op();
	__u32 which = part == PART_RECLAIM;
	struct reclaimed *sum;

	if (!op)
		return;
	if (op->reclaim != part) {
		op->unsure |= !op->ended; /* its begin was not seen, or it is of another one */
		return;
	}
	account_on(op, bpf_ktime_get_ns());
	op->reclaim = 0;
	sum = bpf_map_lookup_elem(&reclaims, &which);
	if (sum) {
		sum->calls++;
		sum->pages += pages;
	}
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int memcg_reclaim(void *ctx)
{
	UNPREEMPTED(enter_reclaim(ctx, PART_MEMCG));
	return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int memcg_reclaimed(__u64 *ctx)
{
	UNPREEMPTED(leave_reclaim(PART_MEMCG, ctx[0]));
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int direct_reclaim(void *ctx)
{
	UNPREEMPTED(enter_reclaim(ctx, PART_RECLAIM));
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int direct_reclaimed(__u64 *ctx)
{
	UNPREEMPTED(leave_reclaim(PART_RECLAIM, ctx[0]));
	return 0;
}

#include "trace_events.h"
