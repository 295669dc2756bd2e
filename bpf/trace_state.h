/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The settings, the maps, and the one operation that each task can be in. */
#ifndef WEIR_TRACE_STATE_H
#define WEIR_TRACE_STATE_H

#include "trace_kernel.h"
#include "trace.h"
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Set before loading. */
volatile const __u8 calls[CALLS_MAX];
volatile const __u8 opcodes[OPCODES_MAX];
volatile const struct place places[PLACES_MAX];
volatile const __u32 filter;
volatile const __u64 filter_id;    /* a cgroup's, or a process's */
volatile const __u32 filter_level; /* of the cgroup */
volatile const bool filter_v1;     /* in the hierarchy of v1's io controller */
volatile const __u32 kinds;        /* 1 << enum kind of those that are asked for */
volatile const __u32 own_tgid;     /* weir's helper that traces, never traced itself */
volatile const __u32 asker_tgid;   /* weir that asks it, nor that; 0: none does */
volatile const __u64 slower;       /* ns; 0: no slow operations are told */
volatile const bool by_file;
volatile const bool known_task;    /* bpf_get_current_task_btf: 5.11 (3ca1032ab7ab) */
volatile const bool preemptible;   /* programs of tracepoints can be preempted: 7.0, which guards those with SRCU */
volatile const bool interruptible; /* those at functions can be */
volatile const __u32 bio_argument; /* the bio's place among block_bio_queue's: second until 5.11 (e8a676d61c07) */
volatile const bool cqe_argument;  /* io_uring_complete has the entry of the completion queue, not what is in it */
volatile const __u32 rq_argument;  /* the request's among block_rq_issue's: second until 5.11 (a54895fa057c) */

/* Set when all programs are attached: what is seen before is half of it. */
volatile bool started;

/* The target has asked io_uring for something. */
volatile bool uring;

/* The target has asked by io_submit for something. */
volatile bool aio;

/* The throttle's entry is not seen. */
volatile bool held_unseen;

/* An operation under way; internal/look/trace/layout.go mirrors it. What each one touches comes
 * first: a large copy leaves little in the nearest cache. */
struct op {
	__u64 begin;  /* ns; 0: none */
	__u64 mark;   /* up to which its time is accounted for */
	__u64 ended;  /* when the call returned; it may be stopped on its way back */
	__u64 bytes;
	__u64 file;   /* that was last looked at, and its inode */
	__u64 inode;
	__u32 fd;
	__u32 tid;
	__u8 kind;
	__u8 on_disk; /* file is on a disk */
	__u8 off;     /* the task is off the processor, why: WAIT_ + 1, or READY */
	__u8 reclaim; /* PART_MEMCG or PART_RECLAIM while within that */
	__u8 failed;
	__u8 mixed;   /* parts has more than PART_CPU */
	__u8 asked;   /* enum asked, of a request of io_uring; else 0 */
	__u8 chained; /* the thread's last request is linked to the next one */
	__u8 entered; /* the thread is in a system call whose entry was seen */
	__u8 unsure;  /* the kernel has left out a program that would have said where time went */
	__u16 number; /* of the call, where not all calls are seen */
	__u8 unused[4];
	__u64 regs;   /* where the thread's registers are while it is in a call; 0: all calls are seen */
	__u64 parts[PARTS];
	__u64 woken;  /* while off the processor: when it became ready */
	__u64 request;
	__u64 group;  /* io's number of its group, where the throttle's entry is not seen */
};

/* How far a request of io_uring has come. */
enum asked {
	ASKED = 1,     /* a task is at it, or it waits for its I/O */
	ASKED_POLLED,  /* the same, of a thread that looks for requests and has no system calls */
	ASKED_PUNTED,  /* it waits for a worker, or for those that it is linked behind */
	ASKED_WORKER,  /* in requests: a worker has it, whose operation it is now */
	ASKED_TAKEN,   /* a worker is at it */
};

#define READY (WAITS + 1)

/* By thread: one place, or the next. Faster than task storage, and the same on all
 * kernels. Two tasks that both come to full places at once are lost, and counted. */
#define OPS_MAX 16384
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, OPS_MAX);
	__type(key, __u32);
	__type(value, struct op);
} ops SEC(".maps");

/* Requests of io_uring that no task is at. */
#define REQUESTS_MAX 16384
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, REQUESTS_MAX);
	__type(key, __u64);
	__type(value, struct op);
} requests SEC(".maps");

/* The life of one I/O in the block layer, ns. */
struct life {
	__u64 submit;
	__u64 release; /* by blk-throttle */
	__u64 issue;   /* to the device; 0 for devices that have no queue (dm, md) */
	__u64 complete;
	__u64 waiter;  /* waiter_of the operation that waits, or HELD; 0: behind the scenes */
	__u32 bytes;
	__u32 waited;  /* of HELD: an operation waits for it, whichever that is */
};

/* Whoever waits for what blk-throttle has held of a group and a device, by direction: 0 read,
 * 1 write. Where the throttle's entry is not seen, it is not known who that is; only when it
 * was let go. It is no thread's number, and no address. */
#define HELD (1ULL << 62)
#define HELD_DEVICE 0x1fffffffeULL
#define HELD_KEY(group, device, write) (HELD | ((group) & 0xfffffff) << 33 | (__u64)(device) << 1 | (write))

/* A request of io_submit, by the addresses that its context and it have in their process. The
 * kernel's own addresses have both of the highest bits. */
#define AIO_KEY(context, request) (1ULL << 63 | (((request) >> 3 ^ (context) << 18) & ((1ULL << 62) - 1)))

#define BIOS_MAX 32768
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BIOS_MAX);
	__type(key, __u64);
	__type(value, struct life);
} bios SEC(".maps");

/* The I/O of an operation's own that completed last. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, struct life);
} done SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KINDS * BUCKETS);
	__type(key, __u32);
	__type(value, struct cell);
} cells SEC(".maps");

/* By direction: 0 read, 1 write. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct behind);
} behinds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lost);
} losses SEC(".maps");

/* By enum kind. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KINDS);
	__type(key, __u32);
	__type(value, struct unseen);
} unseens SEC(".maps");

/* By kind: memcg, host. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct reclaimed);
} reclaims SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} slows SEC(".maps");

#define FILES_MAX 4096
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FILES_MAX);
	__type(key, struct file_key);
	__type(value, struct file_sum);
} files SEC(".maps");

#define STACK_DEPTH 32
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64[STACK_DEPTH]);
} stacks SEC(".maps");

/* What is here for each processor (counters, stacks) would be another program's as well
 * while one is preempted, and the kernel leaves a program out where another task was
 * preempted within it. Where it is not needed it would take a twentieth of a short write's
 * time. */
extern void bpf_preempt_disable(void) __ksym __weak; /* fc7566ad0a82 */
extern void bpf_preempt_enable(void) __ksym __weak;

#define UNPREEMPTED_IF(can, call)                         \
	do {                                              \
		if (can && bpf_preempt_disable)           \
			bpf_preempt_disable();            \
		call;                                     \
		if (can && bpf_preempt_enable)            \
			bpf_preempt_enable();             \
	} while (0)

#define UNPREEMPTED(call) UNPREEMPTED_IF(preemptible, call)
#define IN_FUNCTION(call) UNPREEMPTED_IF(interruptible, call)

#define COUNT_LOST(what)                                                  \
	do {                                                              \
		__u32 _first = 0;                                         \
		struct lost *_lost = bpf_map_lookup_elem(&losses, &_first); \
		if (_lost)                                                \
			_lost->what++;                                    \
	} while (0)

/* Of an operation of a kind that the kernel did not show all of: at least so long. */
static __always_inline void count_unseen(__u32 kind, __u64 ns)
{
	struct unseen *sum = bpf_map_lookup_elem(&unseens, &kind);

	if (!sum)
		return;
	sum->count++;
	sum->ns += ns;
}

/* Of the function that a kprobe is at; 0 where registers are not known. */
static __always_inline __u64 first_argument(void *regs)
{
	if (bpf_core_field_exists(((struct pt_regs___x86 *)regs)->di))
		return BPF_CORE_READ((struct pt_regs___x86 *)regs, di);
	if (bpf_core_field_exists(((struct pt_regs___arm64 *)regs)->regs))
		return BPF_CORE_READ((struct pt_regs___arm64 *)regs, regs[0]);
	return 0;
}

/* A thread's place, if it has one. */
static __always_inline struct op *place_of(__u32 tid)
{
	__u32 at = tid & (OPS_MAX - 1);
	struct op *op = bpf_map_lookup_elem(&ops, &at);

	if (op && op->tid == tid)
		return op;
	if (op && !op->tid) /* nobody was ever there, so this one did not have to go on */
		return 0;
	at ^= 1;
	op = bpf_map_lookup_elem(&ops, &at);
	return op && op->tid == tid ? op : 0;
}

/* The operation that a thread is in. */
static __always_inline struct op *op_of(__u32 tid)
{
	struct op *op = place_of(tid);

	return op && op->begin ? op : 0;
}

/* Lets the verifier know what a pointer leads to, so that loads need no helper, which takes
 * 40 ns: 6.2 (a35b9af4ec2c). Of a place where a pointer is, such as in a table of files,
 * one can say that it begins a structure which begins with a pointer. */
extern void *bpf_rdonly_cast(const void *pointer, __u32 type) __ksym __weak;

/* The current thread. Asking for it is a call: what needs it several times asks once. For each
 * pointer that is followed from a task that the verifier trusts, it goes through all types of
 * the kernel (btf_nested_type_is_trusted): a third of the time that a program takes to load. */
static __always_inline void *own_task(void)
{
	if (known_task && bpf_rdonly_cast)
		return bpf_rdonly_cast(bpf_get_current_task_btf(), bpf_core_type_id_kernel(struct task_struct));
	if (known_task)
		return bpf_get_current_task_btf();
	return (void *)bpf_get_current_task();
}

/* Its number. The field is at hand where the helper is a call. */
static __always_inline __u32 tid_of(void *task)
{
	if (known_task)
		return ((struct task_struct___trace *)task)->pid;
	return bpf_get_current_pid_tgid();
}

static __always_inline __u32 own_tid(void)
{
	return known_task ? tid_of(own_task()) : (__u32)bpf_get_current_pid_tgid();
}

static __always_inline struct op *own_op(void)
{
	return op_of(own_tid());
}

/* Who waits for an operation's I/O: a request, which is an address, or a thread. */
static __always_inline __u64 waiter_of(const struct op *op)
{
	return op->asked ? op->request : op->tid;
}

/* A place for an operation of the current thread, whose number it is. */
static __always_inline struct op *new_op(__u32 tid)
{
	__u32 at = tid & (OPS_MAX - 1);
	struct op *op = bpf_map_lookup_elem(&ops, &at);

	if (op && op->tid != tid && op->begin) {
		at ^= 1;
		op = bpf_map_lookup_elem(&ops, &at);
		if (op && op->tid != tid && op->begin)
			op = 0;
	}
	if (!op) {
		COUNT_LOST(tasks);
		return 0;
	}
	op->tid = tid;
	return op;
}

static __always_inline void add(struct op *op, __u32 part, __u64 ns)
{
	if (part != PART_CPU)
		op->mixed = 1;
	if (part < PARTS)
		op->parts[part] += ns;
}

#endif
