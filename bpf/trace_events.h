/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The same for kernels whose tracepoints can be preempted (7.0: a46023d5616e). There a program
 * of tp_btf that is preempted keeps its processor from running it for anybody else, and what
 * they do meanwhile is not seen. Perf disables preemption around its own programs
 * (16718274ee75), at the price of a record that is made of the arguments.
 */
#ifndef WEIR_TRACE_EVENTS_H
#define WEIR_TRACE_EVENTS_H

/* The record's common fields come first; then the number of the call, and its result. */
SEC("tracepoint/raw_syscalls/sys_enter")
int enter_event(__u64 *ctx)
{
	entered(ctx[1], 0, AT_RECORD);
	return 0;
}

SEC("tracepoint/raw_syscalls/sys_exit")
int leave_event(__u64 *ctx)
{
	left(ctx[1], ctx[2], 0, AT_RECORD);
	return 0;
}

SEC("tracepoint/vmscan/mm_vmscan_memcg_reclaim_begin")
int memcg_reclaim_event(void *ctx)
{
	enter_reclaim(ctx, PART_MEMCG);
	return 0;
}

SEC("tracepoint/vmscan/mm_vmscan_memcg_reclaim_end")
int memcg_reclaimed_event(struct trace_event_raw_mm_vmscan_direct_reclaim_end_template *ctx)
{
	leave_reclaim(PART_MEMCG, ctx->nr_reclaimed);
	return 0;
}

SEC("tracepoint/vmscan/mm_vmscan_direct_reclaim_begin")
int direct_reclaim_event(void *ctx)
{
	enter_reclaim(ctx, PART_RECLAIM);
	return 0;
}

SEC("tracepoint/vmscan/mm_vmscan_direct_reclaim_end")
int direct_reclaimed_event(struct trace_event_raw_mm_vmscan_direct_reclaim_end_template *ctx)
{
	leave_reclaim(PART_RECLAIM, ctx->nr_reclaimed);
	return 0;
}

SEC("tracepoint/io_uring/io_uring_submit_req")
int request_asked_event(struct trace_event_raw_io_uring_submit_req *ctx)
{
	asked(ctx->req);
	return 0;
}

SEC("tracepoint/io_uring/io_uring_queue_async_work")
int request_punted_event(struct trace_event_raw_io_uring_queue_async_work *ctx)
{
	punted((__u64)ctx->req);
	return 0;
}

SEC("tracepoint/io_uring/io_uring_cqring_wait")
int requests_awaited_event(void *ctx)
{
	reaping();
	return 0;
}

SEC("tracepoint/io_uring/io_uring_complete")
int request_answered_event(struct trace_event_raw_io_uring_complete *ctx)
{
	answered((__u64)ctx->req, ctx->res);
	return 0;
}

#endif
