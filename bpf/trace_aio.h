/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What io_submit(2) asks for (libaio). The kernel has no tracepoint for it, so a request is
 * told by its own address in the process and the context that it is asked in: io_submit's
 * arguments have both, io_getevents(2) answers with both, and the kernel keeps them beside the
 * kiocb that an I/O is of. While the task is in io_submit it is at one request, as with
 * io_uring; that goes on to the next one with the next one's first I/O.
 */
#ifndef WEIR_TRACE_AIO_H
#define WEIR_TRACE_AIO_H

#include "trace_uring.h"

/* How many requests and answers of one call are looked at. */
#define AIO_MOST 64

/* include/uapi/linux/aio_abi.h: struct iocb and struct io_event */
struct aio_request {
	__u64 data;
	__u64 key;
	__u16 opcode;
	__u16 priority;
	__u32 fd;
	__u64 buffer;
	__u64 bytes;
};

struct aio_answer {
	__u64 data;
	__u64 request;
	__s64 result;
	__s64 more;
};

/* By IOCB_CMD_; KINDS: none. */
static __always_inline __u32 aio_kind(__u32 opcode)
{
	switch (opcode) {
	case 0: /* PREAD */
	case 7: /* PREADV */
		return KIND_READ;
	case 1: /* PWRITE */
	case 8: /* PWRITEV */
		return KIND_WRITE;
	case 2: /* FSYNC */
	case 3: /* FDSYNC */
		return KIND_FSYNC;
	}
	return KINDS;
}

/* A request that was there before with the same name has ended, and who asked took its answer
 * from the ring: when its last I/O was complete, as far as that is known. */
static __always_inline void aio_over(__u64 key)
{
	struct op *op = away(key);
	struct life *l;

	if (!op)
		return;
	l = io_of(op);
	if (l)
		account_away(op, l->complete);
	complete(op, op->mark, 0);
	bpf_map_delete_elem(&requests, &key);
}

/* Notes one request that io_submit is given, by the place of its address; the thread's place
 * ends as this one. It returns the request's key; 0: it is none to be traced. The verifier
 * looks at a function that is not static once, and not at each of its calls. */
__noinline __u64 aio_note(__u64 context, __u64 place, __u64 now)
{
	struct op *op = place_of(own_tid());
	struct aio_request request;
	__u64 address, key;
	__u32 kind;

	if (!op || bpf_probe_read_user(&address, sizeof(address), (void *)place) ||
	    bpf_probe_read_user(&request, sizeof(request), (void *)address))
		return 0;
	key = AIO_KEY(context, address);
	aio_over(key);
	kind = aio_kind(request.opcode);
	if (kind >= KINDS || !(kinds & 1 << kind) || !on_disk(op, own_task(), request.fd))
		return 0;
	start(op, kind, now);
	op->request = key;
	op->asked = ASKED_PUNTED;
	if (kind <= KIND_READ && request.opcode < 7)
		op->bytes = request.bytes;
	if (held_unseen)
		op->group = io_number(own_task());
	if (bpf_map_update_elem(&requests, &key, op, BPF_ANY)) {
		COUNT_LOST(tasks);
		return 0;
	}
	return key;
}

/* The thread is at a request from now on. */
static __always_inline void aio_at(struct op *op, __u64 key, __u64 now)
{
	struct op *from = away(key);
	__u32 tid = op->tid;

	op->begin = 0;
	if (!from)
		return;
	__builtin_memcpy(op, from, sizeof(*op));
	bpf_map_delete_elem(&requests, &key);
	op->tid = tid;
	op->entered = 1;
	op->asked = ASKED;
	if (now > op->mark) {
		add(op, PART_URING, now - op->mark);
		op->mark = now;
	}
}

/* The current thread enters io_submit. */
static __always_inline void aio_asked(struct op *op, const void *regs, __u64 now)
{
	__u64 context = syscall_argument(regs, 0, false), all = syscall_argument(regs, 2, false);
	__s64 count = syscall_argument(regs, 1, false);
	__u64 key, first = 0;

	aio = true;
	if (count > AIO_MOST) {
		COUNT_LOST(tasks);
		count = AIO_MOST;
	}
	for (int i = 0; i < AIO_MOST; i++) { /* the first one last, where the thread begins */
		if (i >= count)
			break;
		key = aio_note(context, all + (count - 1 - i) * sizeof(__u64), now);
		if (key)
			first = key;
	}
	op->begin = 0;
	if (first)
		aio_at(op, first, now);
}

/* It leaves io_submit, which has taken as many requests as the result: those from there on are
 * none. Not static, as aio_note; and what the verifier does not know is compared once a round,
 * or it would look at each round once for each of those before. */
__noinline int aio_taken(__u64 context, __u64 all, __s64 count, __s64 result)
{
	struct op *op = place_of(own_tid());
	__s64 at = result > 0 ? result : 0;

	for (int i = 0; i < AIO_MOST; i++, at++) {
		__u64 address, key;

		if (at >= count)
			break;
		if (bpf_probe_read_user(&address, sizeof(address), (void *)(all + at * sizeof(__u64))))
			continue;
		key = AIO_KEY(context, address);
		if (op && op->begin && op->asked && op->request == key)
			op->begin = 0;
		bpf_map_delete_elem(&requests, &key);
	}
	return 0;
}

/* One answer that io_getevents has for who asked. */
__noinline int aio_answered(__u64 context, __u64 place, __u64 now)
{
	struct aio_answer answer;
	struct op *op;
	__u64 key;

	if (bpf_probe_read_user(&answer, sizeof(answer), (void *)place))
		return 0;
	key = AIO_KEY(context, answer.request);
	op = away(key);
	if (!op)
		return 0;
	account_away(op, now);
	complete(op, now, answer.result);
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

/* It leaves io_getevents with as many answers as the result. */
__noinline int aio_reaped(__u64 context, __u64 events, __s64 result)
{
	__u64 now = bpf_ktime_get_ns();

	for (__s64 i = 0; i < AIO_MOST; i++) {
		if (i >= result)
			break;
		aio_answered(context, events + i * sizeof(struct aio_answer), now);
	}
	return 0;
}

#endif
