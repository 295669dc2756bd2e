/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The life of I/Os that a task of the target waits for, or that are charged to the
 * target: from blk-throttle's own entry, for the block layer's tracepoints come after it.
 */
#ifndef WEIR_TRACE_BLOCK_H
#define WEIR_TRACE_BLOCK_H

#include "trace_op.h"
#include "trace_stack.h"
#include "trace_aio.h"

/* How many I/Os of one request are looked at. */
#define MERGED_MAX 48

#define PF_KTHREAD 0x200000 /* include/linux/sched.h */

/* The request of io_uring, of those that nobody is at, that a direct I/O is of; 0: none.
 * What such an I/O belongs to begins with the request's address (struct iomap_dio in
 * fs/iomap/direct-io.c, struct blkdev_dio in block/fops.c). */
static __always_inline __u64 request_of(struct bio *bio)
{
	struct aio_kiocb *asked;
	__u64 request = 0;

	if (!uring && !aio)
		return 0;
	bpf_probe_read_kernel(&request, sizeof(request), BPF_CORE_READ(bio, bi_private));
	if (!request || bpf_map_lookup_elem(&requests, &request))
		return request;
	if (!aio)
		return 0;
	asked = (void *)request;
	request = AIO_KEY((__u64)BPF_CORE_READ(asked, ki_ctx, user_id), BPF_CORE_READ(asked, ki_res.obj));
	return bpf_map_lookup_elem(&requests, &request) ? request : 0;
}

/* Whether the current thread does a loop device's I/O to its file. It is charged to whoever
 * asked the loop device, where it is told. */
static __always_inline bool is_loops(void *ctx)
{
	struct task_struct___flags *task = own_task();

	return BPF_CORE_READ(task, flags) & PF_KTHREAD && waits_here(ctx) & 1 << WAIT_LOOP;
}

static __always_inline void submitted(void *ctx, struct bio *bio, bool released)
{
	struct op *op = own_op();
	struct life life = { .submit = bpf_ktime_get_ns() };
	__u64 key = (__u64)bio;

	if (op && !op->ended && !op->asked)
		life.waiter = op->tid;
	else
		life.waiter = request_of(bio);
	if (life.waiter >> 62 == 2 && op && !op->ended && op->asked) {
		put_away(op); /* io_submit goes on to the next one */
		aio_at(op, life.waiter, life.submit);
	}
	if (!life.waiter && op && !op->ended) {
		life.waiter = op->request;
		account_on(op, life.submit); /* nobody sleeps until it completes */
	}
	if (!life.waiter && (!is_charged(bio) || is_loops(ctx)))
		return;
	life.bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	if (released)
		life.release = life.submit;
	if (bpf_map_update_elem(&bios, &key, &life, BPF_ANY))
		COUNT_LOST(bios);
}

/* What is known of an I/O that begins is of another one that had its address, or of
 * the same before it was passed on to the device beneath. */
static __always_inline void begins(void *ctx, struct bio *bio, bool released)
{
	__u64 key = (__u64)bio;
	struct life *life = bpf_map_lookup_elem(&bios, &key);

	if (life)
		bpf_map_delete_elem(&bios, &key);
	submitted(ctx, bio, released);
}

/* A tracepoint's first argument, or its second. 5.10 refuses a context whose pointer was
 * added to, which is what clang makes of two reads where one would do. */
static __always_inline __u64 argument(const __u64 *ctx, bool second)
{
	__u64 value;

	if (!second)
		return ctx[0];
	value = ctx[1];
	barrier_var(value);
	return value;
}

/* Whether an I/O that nobody waits for is what is left of one that was split: it has the
 * whole's address. */
static __always_inline bool is_rest(struct life *life, struct bio *bio)
{
	return BPF_CORE_READ(bio, bi_iter.bi_size) < life->bytes;
}

/* The throttle's own entry. What it does not hold comes to bio_queued at once, and what it
 * has held comes by here a second time, in a thread of the kernel's, until 5.18
 * (3f98c753717c). */
static __always_inline void at_throttle(void *ctx, __u64 key)
{
	struct life *life = bpf_map_lookup_elem(&bios, &key);
	struct op *op = own_op();

	if (life && !life->release && !op)
		return;
	/* The rest of a split one comes by again too, and has no block_bio_queue of its own
	 * any more (BIO_TRACE_COMPLETION); what was released stays so. */
	if (life && life->release && !life->issue && (op ? life->waiter == waiter_of(op) : is_rest(life, (void *)key)))
		return;
	begins(ctx, (void *)key, false);
}

SEC("fentry/__blk_throtl_bio")
int throttled(__u64 *ctx)
{
	IN_FUNCTION(at_throttle(ctx, ctx[0]));
	return 0;
}

/* The same where functions take no fentry. */
SEC("kprobe/__blk_throtl_bio")
int throttled_kprobe(void *regs)
{
	__u64 key = first_argument(regs);

	if (key)
		UNPREEMPTED(at_throttle(regs, key));
	return 0;
}

#define PF_WQ_WORKER 0x20 /* include/linux/sched.h */

#define REQUEST_FLAG(flag) (1U << bpf_core_enum_value(enum req_flag_bits, flag))

/* Whether somebody waits for an I/O: for direct ones, for what an fsync writes, and for reads,
 * but not for what is read ahead. */
static __always_inline bool is_waited_for(__u32 flags)
{
	if (flags & 1)
		return flags & REQUEST_FLAG(__REQ_SYNC);
	return !(flags & REQUEST_FLAG(__REQ_RAHEAD));
}

/* An I/O that comes from nobody known, if it is one that the throttle lets go. */
static __always_inline void let_go(void *ctx, struct bio *bio)
{
	struct task_struct___flags *task = own_task();
	struct life life = {}, *known;
	__u64 key = (__u64)bio;
	__u32 device = 0, flags;

	if (!(BPF_CORE_READ(task, flags) & PF_WQ_WORKER) || !(waits_here(ctx) & 1 << WAIT_RELEASE))
		return;
	known = bpf_map_lookup_elem(&bios, &key);
	if (known && known->waiter)
		known->submit = 0; /* before that; all the time until now it was held */
	if (known ? known->waiter : filter == FILTER_CGROUP)
		return;
	if (bpf_core_field_exists(bio->bi_bdev))
		device = BPF_CORE_READ(bio, bi_bdev, bd_dev);
	life.submit = life.release = bpf_ktime_get_ns();
	life.bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	flags = BPF_CORE_READ(bio, bi_opf);
	life.waited = is_waited_for(flags);
	life.waiter = HELD_KEY((__u64)BPF_CORE_READ(bio, bi_blkg, blkcg, css.id), device, flags & 1);
	if (bpf_map_update_elem(&bios, &key, &life, BPF_ANY))
		COUNT_LOST(bios);
}

static __always_inline void queued(void *ctx, __u64 key)
{
	struct life *life = bpf_map_lookup_elem(&bios, &key);

	if (life && !life->release) {
		life->release = bpf_ktime_get_ns();
		return;
	}
	begins(ctx, (void *)key, true);
	if (held_unseen && started && !own_op())
		let_go(ctx, (void *)key);
}

SEC("tp_btf/block_bio_queue")
int bio_queued(__u64 *ctx)
{
	UNPREEMPTED(queued(ctx, argument(ctx, bio_argument)));
	return 0;
}

static __always_inline void issued(struct request *rq)
{
	struct bio *bio = BPF_CORE_READ(rq, bio);
	struct life *life;
	__u64 key;

	for (int i = 0; i < MERGED_MAX && bio; i++) {
		key = (__u64)bio;
		life = bpf_map_lookup_elem(&bios, &key);
		if (life)
			life->issue = bpf_ktime_get_ns();
		bio = BPF_CORE_READ(bio, bi_next);
	}
	key = (__u64)bio;
	if (bio && bpf_map_lookup_elem(&bios, &key)) /* a journal's requests are larger, and nobody's */
		COUNT_LOST(bios);
}

SEC("tp_btf/block_rq_issue")
int rq_issued(__u64 *ctx)
{
	UNPREEMPTED(issued((void *)argument(ctx, rq_argument)));
	return 0;
}

/* A device that has no queue (dm, md) passes the I/O on to those beneath it: there it is
 * counted, but for what the throttle of this one has held it. */
static __always_inline void sum_behind(struct life *life, bool write)
{
	__u32 direction = write;
	struct behind *sum = bpf_map_lookup_elem(&behinds, &direction);
	__u64 held = life->release - life->submit;

	if (!sum)
		return;
	sum->throttle += held;
	if (held > sum->throttle_most)
		sum->throttle_most = held;
	if (life->complete - life->submit > sum->total_most)
		sum->total_most = life->complete - life->submit;
	if (!life->issue)
		return;
	sum->count++;
	sum->bytes += life->bytes;
	sum->queue += life->issue - life->release;
	sum->device += life->complete - life->issue;
}

/* What one of a stack of devices (dm on a disk) says may be within what the one above
 * it says, which knows of no queue: the finer one stays if it is nearly all of it. */
static __always_inline bool is_told(struct life *life)
{
	struct life *finer;

	if (life->issue)
		return false;
	finer = bpf_map_lookup_elem(&done, &life->waiter);
	if (!finer || finer->submit < life->submit || finer->complete < finer->submit)
		return false;
	return (finer->complete - finer->submit) * 8 > (life->complete - life->submit) * 7;
}

static __always_inline void completed(struct bio *bio)
{
	__u64 key = (__u64)bio;
	struct life *found = bpf_map_lookup_elem(&bios, &key), life;
	bool held;

	if (!found)
		return;
	life = *found;
	bpf_map_delete_elem(&bios, &key);
	life.complete = bpf_ktime_get_ns();
	if (!life.release) /* failed while it was held, or let go unseen */
		life.release = life.issue ? life.issue : life.complete;
	if (life.issue && life.issue < life.release)
		life.issue = life.release;
	held = life.waiter >> 62 == 1;
	if (!life.waiter || (held && !life.waited && filter == FILTER_CGROUP))
		sum_behind(&life, BPF_CORE_READ(bio, bi_opf) & 1);
	if (life.waiter && !is_told(&life))
		bpf_map_update_elem(&done, &life.waiter, &life, BPF_ANY);
	if (held) {
		life.waiter &= ~HELD_DEVICE; /* for those that have no device of their own */
		bpf_map_update_elem(&done, &life.waiter, &life, BPF_ANY);
	}
}

/* Of a request: as many of its I/Os as the bytes that it has done. */
static __always_inline void done_by(struct request *rq, __u32 left)
{
	struct bio *bio = BPF_CORE_READ(rq, bio);

	for (int i = 0; i < MERGED_MAX && bio; i++) {
		struct bio *next = BPF_CORE_READ(bio, bi_next);
		__u32 bytes = BPF_CORE_READ(bio, bi_iter.bi_size);

		if (bytes > left)
			break;
		left -= bytes;
		completed(bio);
		bio = next;
	}
}

SEC("tp_btf/block_rq_complete")
int rq_completed(__u64 *ctx)
{
	UNPREEMPTED(done_by((void *)ctx[0], ctx[2]));
	return 0;
}

/* Of a device without requests (dm, md). For the others the kernel leaves it out
 * (blk_update_request in block/blk-mq.c). */
SEC("tp_btf/block_bio_complete")
int bio_completed(__u64 *ctx)
{
	UNPREEMPTED(completed((void *)ctx[1]));
	return 0;
}

#endif
