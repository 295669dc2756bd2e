/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Where system calls begin and end. The programs are at the functions of those calls that do
 * I/O, so that no other call of the host costs anything. Where functions take no programs they
 * are at raw_syscalls, which sends each call of each process along the kernel's slow path.
 */
#ifndef WEIR_TRACE_CALLS_H
#define WEIR_TRACE_CALLS_H

#include "trace_op.h"
#include "trace_aio.h"

/* Where a program is. */
enum at {
	AT_EVERY,  /* all calls of the host come here */
	AT_RECORD, /* the same, of perf's record */
	AT_FILE,   /* a function of a call that is given a file, or of sync */
	AT_SUBMIT, /* of io_submit */
	AT_REAP,   /* of io_getevents: no operation itself */
	AT_URING,  /* of io_uring_enter: what the thread asks for within it is seen elsewhere */
};

/* What programs at functions go on to; internal/look/trace/tracer/step.go mirrors it. */
enum step {
	STEP_CALL,
	STEP_SUBMIT,
	STEP_REAP,
	STEP_URING,
	STEPS,
};

/* The number of the system call that a task is in. */
static __always_inline __u64 syscall_number(const void *regs)
{
	const struct pt_regs___x86 *x86 = regs;
	const struct pt_regs___arm64 *arm64 = regs;

	if (bpf_core_field_exists(x86->orig_ax))
		return x86->orig_ax;
	if (bpf_core_field_exists(arm64->syscallno))
		return (__u32)arm64->syscallno;
	return -1;
}

/* What a call is, by its number. clang knows the bound, 5.10's verifier wants to see it. */
static __always_inline __u8 call_of(__u64 number)
{
	if (number >= CALLS_MAX)
		return 0;
	barrier_var(number);
	return calls[number & (CALLS_MAX - 1)];
}

/* Which kind of operation a call of the target's is; KINDS: none. */
static __always_inline __u8 kind_of(struct op *op, void *task, __u8 call, const void *regs, bool leaves)
{
	if (call & CALL_ANY_FILE) {
		op->file = 0;
		return call & CALL_KIND;
	}
	if (on_disk(op, task, syscall_argument(regs, (call & CALL_FD) >> CALL_FD_SHIFT, leaves)))
		return call & CALL_KIND;
	if (call & CALL_SENDFILE && on_disk(op, task, syscall_argument(regs, 1, leaves)))
		return KIND_READ;
	return KINDS;
}

/* The registers of the current task's own code. A record of perf's has none of them. */
static __always_inline const void *own_regs(void)
{
	return (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

/* The current task enters a system call. Of a record of perf's the registers are looked for:
 * by a helper that 5.10 does not have, where there are no such records. */
static __always_inline void entered(__u64 number, const void *regs, const enum at at)
{
	__u64 now = 0;
	__u8 call, kind;
	void *task = own_task();
	__u32 tid = tid_of(task);
	struct op *op = place_of(tid);

	if (op) {
		now = bpf_ktime_get_ns(); /* what follows takes some of the call's time */
		op->entered = 1;
	}
	if (op && op->begin && op->ended)
		finish(op);
	else if (op && op->begin && op->asked)
		put_away(op);
	else if (op && op->begin)
		give_up(op);
	if (at == AT_REAP || at == AT_URING)
		return;
	call = call_of(number);
	if (!(call & CALL_TAKEN) || !is_taken(task) || is_compat(task))
		return;
	if (!now)
		now = bpf_ktime_get_ns();
	if (!op)
		op = new_op(tid);
	if (!op)
		return;
	op->entered = 1;
	if (at == AT_RECORD)
		regs = own_regs();
	if (at != AT_FILE && call & CALL_AIO) {
		if (!(call & CALL_KIND))
			aio_asked(op, regs, now);
		return;
	}
	kind = kind_of(op, task, call, regs, false);
	if (kind < KINDS && kinds & 1 << kind) { /* sendfile's is known only now */
		start(op, kind, now);
		if (at == AT_FILE) {
			op->regs = (__u64)regs;
			op->number = number;
		}
	}
}

/* A thread that has been in operations leaves a call whose entry was not seen. */
static __always_inline void left_unseen(struct op *op, __u64 number, const void *regs, const enum at at)
{
	void *task = own_task();
	__u8 call, kind;

	if (op->begin && op->asked)
		return;
	if (op->begin)
		finish(op); /* the call before */
	if (at != AT_EVERY && at != AT_RECORD && at != AT_FILE)
		return;
	call = call_of(number);
	if (!(call & CALL_TAKEN) || call & CALL_AIO || !is_taken(task) || is_compat(task))
		return;
	kind = kind_of(op, task, call, at == AT_RECORD ? own_regs() : regs, true);
	if (kind < KINDS && kinds & 1 << kind)
		count_unseen(kind, 0);
}

/* The current task leaves a call: if that is io_submit or io_getevents, notes what it says. */
static __always_inline void left_aio(__u64 number, __s64 result, const void *regs, const enum at at)
{
	__u8 call = call_of(number);

	if (!(call & CALL_AIO))
		return;
	if (at == AT_RECORD)
		regs = own_regs();
	if (at != AT_SUBMIT && call & CALL_KIND)
		aio_reaped(syscall_argument(regs, 0, true), syscall_argument(regs, 3, true), result);
	if (at != AT_REAP && !(call & CALL_KIND))
		aio_taken(syscall_argument(regs, 0, true), syscall_argument(regs, 2, true), syscall_argument(regs, 1, true), result);
}

static __always_inline void left(__u64 number, __s64 result, const void *regs, const enum at at)
{
	struct op *op = place_of(own_tid());
	bool seen;

	if (aio && at != AT_FILE && at != AT_URING)
		left_aio(number, result, regs, at);
	if (!op)
		return;
	seen = op->entered;
	op->entered = 0;
	if (op->begin && !op->ended) {
		if (op->asked)
			put_away(op);
		else
			stop(op, result);
	} else if (!seen) {
		left_unseen(op, number, regs, at);
	}
}

/* Whether a thread that began an operation is in another call by now, or in none, where only
 * some calls are seen: the kernel keeps the number of the call with the thread's registers. */
static __always_inline bool in_another_call(const struct op *op)
{
	const struct pt_regs___x86 *x86 = (const void *)op->regs;
	const struct pt_regs___arm64 *arm64 = (const void *)op->regs;

	if (!op->regs)
		return false;
	if (bpf_core_field_exists(x86->orig_ax))
		return BPF_CORE_READ(x86, orig_ax) != op->number;
	if (bpf_core_field_exists(arm64->syscallno))
		return (__u32)BPF_CORE_READ(arm64, syscallno) != op->number;
	return false;
}

SEC("tp_btf/sys_enter")
int enter(__u64 *ctx)
{
	UNPREEMPTED(entered(ctx[1], (const void *)ctx[0], AT_EVERY));
	return 0;
}

SEC("tp_btf/sys_exit")
int leave(__u64 *ctx)
{
	UNPREEMPTED(left(syscall_number((const void *)ctx[0]), ctx[1], (const void *)ctx[0], AT_EVERY));
	return 0;
}

/* Of each call's function the argument is its registers, and its result comes after that. */
#define ENTERED(at) entered(syscall_number((const void *)ctx[0]), (const void *)ctx[0], at)
#define LEFT(at) left(syscall_number((const void *)ctx[0]), ctx[1], (const void *)ctx[0], at)

/* A program is of one function, and the kernel checks it when it is loaded. So what is at each
 * function only goes on to a program that is loaded once. It looks at no argument itself: of some
 * functions 5.10's types do not say what the registers are. In one table there is one kind of
 * program, for one type of functions (28ead3eaabc1, 4540aed51b12). */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, STEPS);
	__type(key, __u32);
	__type(value, __u32);
} entries SEC(".maps"), exits SEC(".maps");

#define GO_ON(name, step)                       \
	SEC("fentry/__x64_sys_write")           \
	int to_##name##_entered(void *ctx)      \
	{                                       \
		bpf_tail_call(ctx, &entries, step); \
		return 0;                       \
	}                                       \
	SEC("fexit/__x64_sys_write")            \
	int to_##name##_left(void *ctx)         \
	{                                       \
		bpf_tail_call(ctx, &exits, step); \
		return 0;                       \
	}

GO_ON(call, STEP_CALL)
GO_ON(submit, STEP_SUBMIT)
GO_ON(reap, STEP_REAP)
GO_ON(uring, STEP_URING)

SEC("fentry/__x64_sys_write")
int call_entered(__u64 *ctx)
{
	IN_FUNCTION(ENTERED(AT_FILE));
	return 0;
}

SEC("fexit/__x64_sys_write")
int call_left(__u64 *ctx)
{
	IN_FUNCTION(LEFT(AT_FILE));
	return 0;
}

/* Before 6.15 no function that is not static is called with preemption disabled: the requests
 * of one call are in such functions. */
SEC("fentry/__x64_sys_write")
int submit_entered(__u64 *ctx)
{
	UNPREEMPTED(ENTERED(AT_SUBMIT));
	return 0;
}

SEC("fexit/__x64_sys_write")
int submit_left(__u64 *ctx)
{
	UNPREEMPTED(LEFT(AT_SUBMIT));
	return 0;
}

SEC("fentry/__x64_sys_write")
int reap_entered(__u64 *ctx)
{
	IN_FUNCTION(ENTERED(AT_REAP));
	return 0;
}

SEC("fexit/__x64_sys_write")
int reap_left(__u64 *ctx)
{
	UNPREEMPTED(LEFT(AT_REAP));
	return 0;
}

SEC("fentry/__x64_sys_write")
int uring_entered(__u64 *ctx)
{
	IN_FUNCTION(ENTERED(AT_URING));
	return 0;
}

SEC("fexit/__x64_sys_write")
int uring_left(__u64 *ctx)
{
	IN_FUNCTION(LEFT(AT_URING));
	return 0;
}

#endif
