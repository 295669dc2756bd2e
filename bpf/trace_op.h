/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* An operation from its beginning to its end, and where its time went meanwhile. */
#ifndef WEIR_TRACE_OP_H
#define WEIR_TRACE_OP_H

#include "trace_target.h"

static __always_inline __u32 log2_of(__u64 v)
{
	__u32 r, shift;

	r = (v > 0xffffffff) << 5;
	v >>= r;
	shift = (v > 0xffff) << 4;
	v >>= shift;
	r |= shift;
	shift = (v > 0xff) << 3;
	v >>= shift;
	r |= shift;
	shift = (v > 0xf) << 2;
	v >>= shift;
	r |= shift;
	shift = (v > 0x3) << 1;
	v >>= shift;
	r |= shift;
	return r | (v >> 1);
}

static __always_inline __u32 bucket_of(__u64 ns)
{
	__u32 octave;

	if (ns < 8)
		return ns;
	octave = log2_of(ns);
	return ((octave - 2) << 3 | (ns >> (octave - 3) & 7)) & (BUCKETS - 1);
}

static __always_inline void name_of(char *name, __u32 size, __u64 file)
{
	const unsigned char *from = BPF_CORE_READ((struct file___named *)file, f_path.dentry, d_name.name);

	bpf_probe_read_kernel_str(name, size, from);
}

static __always_inline void tell_slow(struct op *op, __u64 began, __u64 took)
{
	struct slow *s = bpf_ringbuf_reserve(&slows, sizeof(*s), 0);
	struct inode *inode = (void *)op->inode; /* within BPF_CORE_READ, op would be the kernel's */

	if (!s) {
		COUNT_LOST(events);
		return;
	}
	s->began = began;
	s->took = took;
	s->bytes = op->bytes;
	s->inode = 0;
	s->device = 0;
	s->tid = op->tid;
	s->tgid = bpf_get_current_pid_tgid() >> 32;
	s->kind = op->kind;
	__builtin_memcpy(s->parts, op->parts, sizeof(s->parts));
	bpf_get_current_comm(s->comm, sizeof(s->comm));
	s->name[0] = 0;
	if (op->file) {
		s->inode = BPF_CORE_READ(inode, i_ino);
		s->device = BPF_CORE_READ(inode, i_sb, s_dev);
		name_of(s->name, sizeof(s->name), op->file);
	}
	bpf_ringbuf_submit(s, 0);
}

static __always_inline void sum_file(struct op *op, __u64 took)
{
	static const struct file_sum empty;
	struct file_key key = { .kind = op->kind };
	struct inode *inode = (void *)op->inode;
	struct file_sum *sum;

	if (!op->file)
		return;
	key.inode = BPF_CORE_READ(inode, i_ino);
	key.device = BPF_CORE_READ(inode, i_sb, s_dev);
	sum = bpf_map_lookup_elem(&files, &key);
	if (!sum) {
		bpf_map_update_elem(&files, &key, &empty, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&files, &key);
		if (!sum) {
			COUNT_LOST(files);
			return;
		}
		name_of(sum->name, sizeof(sum->name), op->file);
	}
	/* The last one is most likely to have it open still when the reader looks there. */
	sum->tgid = bpf_get_current_pid_tgid() >> 32;
	sum->fd = op->fd;
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->bytes, op->bytes);
	for (int i = 0; i < PARTS; i++)
		if (op->parts[i])
			__sync_fetch_and_add(&sum->parts[i], op->parts[i]);
	if (took > sum->most)
		sum->most = took;
}

/* Counts an operation whose time has been accounted for. In the task's own context. It is none
 * from here on, because a task that can be preempted here is switched out while it counts. */
static __always_inline void finish(struct op *op)
{
	__u32 kind = op->kind & CALL_KIND, at = kind * BUCKETS;
	__u64 took = op->parts[PART_CPU], began = op->begin;
	struct cell *cell;

	op->begin = 0;
	barrier();
	if (op->mixed)
		for (int i = PART_CPU + 1; i < PARTS; i++)
			took += op->parts[i];
	if (op->unsure) {
		count_unseen(kind, took);
		return;
	}
	at += bucket_of(took);
	cell = bpf_map_lookup_elem(&cells, &at);
	if (!cell)
		return;
	cell->count++;
	cell->parts[PART_CPU] += op->parts[PART_CPU];
	if (op->mixed)
		for (int i = PART_CPU + 1; i < PARTS; i++)
			cell->parts[i] += op->parts[i];
	cell->bytes += op->bytes;
	cell->errors += op->failed;
	if (took > cell->most)
		cell->most = took;
	if (slower && took >= slower)
		tell_slow(op, began, took);
	if (by_file)
		sum_file(op, took);
}

static __always_inline void start(struct op *op, __u8 kind, __u64 now)
{
	op->mark = now;
	op->ended = 0;
	op->kind = kind;
	op->off = 0;
	op->reclaim = 0;
	op->asked = 0;
	op->unsure = 0;
	op->regs = 0;
	op->bytes = 0;
	op->failed = 0;
	op->parts[PART_CPU] = 0;
	if (op->mixed)
		__builtin_memset(op->parts, 0, sizeof(op->parts));
	op->mixed = 0;
	barrier();
	op->begin = now; /* last: whoever switches the task out sees all of it, or none */
}

/* Time on the processor up to now. */
static __always_inline void account_on(struct op *op, __u64 now)
{
	if (now <= op->mark) /* it was off the processor since the clock was read */
		return;
	add(op, op->reclaim ? op->reclaim : PART_CPU, now - op->mark);
	op->mark = now;
}

/* Gives an operation up whose end was not seen: it took at least so long. */
static __always_inline void give_up(struct op *op)
{
	count_unseen(op->kind & CALL_KIND, op->mark - op->begin);
	op->begin = 0;
}

static __always_inline void stop(struct op *op, __s64 result)
{
	account_on(op, bpf_ktime_get_ns());
	op->ended = op->mark;
	op->unsure |= !!op->reclaim; /* its end was not seen */
	op->reclaim = 0;
	if (result > 0 && op->kind <= KIND_READ)
		op->bytes = result;
	op->failed = result < 0;
}

/* How far a stage that ends at to takes one from at, before end. */
static __always_inline __u64 passed(__u64 at, __u64 to, __u64 end)
{
	if (to > end)
		to = end;
	return to > at ? to : at;
}

/* The stages of one I/O, as far as they are between at and end; before counts for what is
 * before them. It returns where the last one ends. */
static __always_inline __u64 account_life(struct op *op, struct life *l, __u64 at, __u64 end, __u32 before)
{
	__u64 next = passed(at, l->submit, end);

	add(op, before, next - at);
	at = next;
	next = passed(at, l->release, end);
	add(op, PART_THROTTLE, next - at);
	at = next;
	next = passed(at, l->issue, end);
	add(op, PART_QUEUE, next - at);
	at = next;
	next = passed(at, l->complete, end);
	add(op, PART_DEVICE, next - at);
	return next;
}

/* What the throttle has held of an operation's group, direction and device. A file system
 * without a device of its own (overlay, btrfs) can be on any. */
static __always_inline struct life *held_for(struct op *op)
{
	struct inode *inode = (void *)op->inode; /* within BPF_CORE_READ, op would be the kernel's */
	__u32 device = 0;
	__u64 key;

	if (!held_unseen)
		return 0;
	if (op->file)
		device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (device >> 20 == 0)
		device = 0;
	key = HELD_KEY(op->group, device, op->kind == KIND_WRITE || op->kind == KIND_FSYNC);
	return bpf_map_lookup_elem(&done, &key);
}

/* A wait for I/O, from op->mark to end: the stages of the task's own I/O that completed
 * last, and the rest. All of it was submitted before the wait, as a rule, and the wait is
 * for the last. If that is not known, the target's that the throttle let go last: until
 * then the throttle held it. */
static __always_inline void account_io(struct op *op, __u64 end)
{
	__u64 waiter = waiter_of(op), at = op->mark;
	struct life *own = bpf_map_lookup_elem(&done, &waiter), *held = held_for(op);

	if (own)
		at = account_life(op, own, at, end, PART_IO);
	if (held)
		at = account_life(op, held, at, end, PART_THROTTLE);
	add(op, PART_IO, end - at);
}

static __always_inline void account_wait(struct op *op, __u8 wait, __u64 end)
{
	if (op->reclaim) {
		add(op, op->reclaim, end - op->mark);
		return;
	}
	switch (wait) {
	case WAIT_FROZEN:
		add(op, PART_FROZEN, end - op->mark);
		return;
	case WAIT_MEMCG:
		add(op, PART_MEMCG, end - op->mark);
		return;
	case WAIT_RECLAIM:
		add(op, PART_RECLAIM, end - op->mark);
		return;
	case WAIT_DIRTY:
		add(op, PART_DIRTY, end - op->mark);
		return;
	case WAIT_JOURNAL:
		add(op, PART_JOURNAL, end - op->mark);
		return;
	case WAIT_QUEUE:
		add(op, PART_QUEUE, end - op->mark);
		return;
	case WAIT_IO:
		account_io(op, end);
		return;
	}
	add(op, PART_OTHER, end - op->mark);
}

/* Time off the processor up to now. */
static __always_inline void account_off(struct op *op, __u64 now)
{
	__u64 end = now;

	if (now < op->mark)
		now = end = op->mark;
	if (op->off == READY) {
		end = op->mark;
	} else {
		if (op->woken > op->mark && op->woken < now)
			end = op->woken;
		account_wait(op, op->off - 1, end);
	}
	add(op, PART_RUN_QUEUE, now - end);
	op->mark = now;
	op->off = 0;
}

#endif
