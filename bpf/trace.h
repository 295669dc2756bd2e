/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What trace.bpf.c and internal/look/trace share: the settings, the parts that the time of
 * an operation is split into, and what is counted. internal/look/trace/layout.go mirrors it.
 */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include <linux/types.h>

/* Where time goes. */
enum part {
	PART_CPU,       /* on a processor: page-cache copies, file systems, the rest */
	PART_RUN_QUEUE, /* ready to run, waiting for a processor */
	PART_MEMCG,     /* reclaim for the limit of a memory cgroup */
	PART_RECLAIM,   /* direct reclaim for the whole host */
	PART_DIRTY,     /* dirty throttling: balance_dirty_pages */
	PART_THROTTLE,  /* own I/O held by blk-throttle */
	PART_QUEUE,     /* own I/O in the block layer, before the device has it */
	PART_DEVICE,    /* own I/O at the device */
	PART_JOURNAL,   /* the journal, and locks of files and file systems */
	PART_FROZEN,    /* stopped by a freezer */
	PART_URING,     /* a request of io_uring or libaio that waits for a worker, or its answer for who asked */
	PART_IO,        /* I/O that others submitted, or that could not be followed */
	PART_OTHER,     /* asleep for another reason */
	PARTS,
};

/* Why a task sleeps, by the functions that it sleeps in. Of several the lowest bit
 * counts (internal/look/trace/waits.go has the functions). */
enum wait {
	WAIT_FROZEN,
	WAIT_MEMCG,
	WAIT_RECLAIM,
	WAIT_DIRTY,
	WAIT_JOURNAL,
	WAIT_QUEUE,
	WAIT_IO,
	WAIT_SYSCALL, /* in a system call, or on the way back from it */
	WAIT_EXIT,    /* the task ends */
	WAIT_RELEASE, /* no wait: a thread of the kernel lets I/O go that blk-throttle has held */
	WAIT_LOOP,    /* no wait: a thread of the kernel does a loop device's I/O to its file */
	WAIT_BACK,    /* no wait: on the way back from a system call or a fault, and sure to be */
	WAITS,
};

enum kind { KIND_WRITE, KIND_READ, KIND_FSYNC, KIND_FAULT, KINDS };

/* What a system call is: settings.calls, by its number. */
#define CALL_KIND 0x03     /* enum kind */
#define CALL_FD 0x0c       /* which argument is the file: 0 to 2 */
#define CALL_FD_SHIFT 2
#define CALL_ANY_FILE 0x10 /* needs no file of a disk: sync, msync */
#define CALL_SENDFILE 0x20 /* from its second argument to its first */
#define CALL_AIO 0x40      /* io_submit, or with KIND_READ io_getevents */
#define CALL_TAKEN 0x80
#define CALLS_MAX 512

/* The same of io_uring's requests, by their opcode: settings.opcodes. */
#define OPCODES_MAX 64

enum filter { FILTER_ALL, FILTER_CGROUP, FILTER_PROCESS };

/* Ends of functions, sorted by address: what a return address from there on means. */
#define PLACES_MAX 512
struct place {
	__u64 start;
	__u64 waits; /* 1 << enum wait; 0: nothing */
};

/* Latencies in ns, log-linear: eight buckets an octave. */
#define BUCKETS 512

/* Operations of one kind in one bucket. */
struct cell {
	__u64 count;
	__u64 bytes;
	__u64 errors;
	__u64 most;         /* ns */
	__u64 parts[PARTS]; /* ns */
};

/* The target's I/O that no operation of its waits for: writeback, mostly. */
struct behind {
	__u64 count;
	__u64 bytes;
	__u64 throttle; /* ns, summed over requests */
	__u64 queue;
	__u64 device;
	__u64 throttle_most;
	__u64 total_most;
};

/* What was not seen, or not kept. */
struct lost {
	__u64 tasks;  /* no place for their operations */
	__u64 bios;   /* too many I/Os in flight */
	__u64 events; /* slow operations that the reader was too late for */
	__u64 stacks; /* sleeps whose stack the kernel did not give */
	__u64 files;
};

/* Operations of one kind that the kernel did not show all of: it has left a program out where
 * they began, where they ended, or in between. They are in no cell. */
struct unseen {
	__u64 count;
	__u64 ns; /* at least */
};

/* What the whole of it says of reclaim. */
struct reclaimed {
	__u64 calls;
	__u64 pages;
};

/* One slow operation, or one that has not ended. */
struct slow {
	__u64 began; /* CLOCK_MONOTONIC, ns */
	__u64 took;
	__u64 bytes;
	__u64 inode;
	__u32 device;
	__u32 tid;
	__u32 tgid;
	__u32 kind;
	__u64 parts[PARTS];
	char comm[16];
	char name[64];
};

struct file_key {
	__u64 inode;
	__u32 device;
	__u32 kind;
};

struct file_sum {
	__u64 count;
	__u64 bytes;
	__u64 parts[PARTS];
	__u64 most;
	__u32 tgid;
	__u32 fd;
	char name[64];
};

#endif
