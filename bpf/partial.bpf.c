// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Counts how much of what groups' processes have in write_bytes they have not written. The
 * kernel counts a folio whole when it becomes dirty (folio_account_dirtied in
 * mm/page-writeback.c); what of it is written back are its dirty blocks. Changes nothing.
 *
 * Which blocks became dirty is known in two ways. File systems with buffer heads (ext4) mark
 * each block (mark_buffer_dirty in fs/buffer.c), whether for write(2) or for a store into a
 * mapping. XFS keeps a bitmap for each folio (fs/iomap/buffered-io.c). It can be read when the
 * folio becomes dirty; what is written to folios that are dirty already is what a write asked
 * for, without what became dirty in it with a folio. A store into a mapping makes all of a folio
 * dirty (iomap_dirty_folio); of one that is dirty already only the fault is seen.
 *
 * Of some groups only what escapes their limit is counted: see escape.bpf.c.
 */
#include "kernel.h"
#include <linux/bpf.h>
#include "owned.h"

char _license[] SEC("license") = "GPL";

/* Groups that are counted are at most so far below the root. */
#define LEVELS_MAX 16

#define XFS_MAGIC 0x58465342

volatile const __u32 page_bytes = 4096; /* set before loading */

/* Of a group, or of what of it escapes to one disk. */
struct key {
	__u64 group;
	__u32 device; /* 0: of the group */
	__u32 pad;
};

enum {
	ALONE = 1 << 0,   /* groups below it are not its: cgroup v1 */
	FOREIGN = 1 << 1, /* what others have the writeback of is counted, by disk */
};

/* What is known of one, in bytes; internal/linux/partial/partial.go mirrors it. */
struct sum {
	__u32 level; /* how far below the root the group is */
	__u32 flags;
	__s64 spare;  /* counted in write_bytes, and not dirtied */
	__u64 behind; /* of that, in folios of which only a bitmap tells */
	__u64 later;  /* written to folios that were dirty already, at most */
	__u64 stored; /* in folios of XFS that were stored into, at most; of a group */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct key);
	__type(value, struct sum);
} groups SEC(".maps");

/* One entry: a bit for each level that a counted group is at. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} levels SEC(".maps");

/* The write(2) of a thread to a file of XFS that is under way. */
struct write {
	struct key key;
	__u64 inode; /* its address */
	__u64 asked; /* bytes, in whole blocks */
	__u64 begun; /* of them, those that became dirty with their folio */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct write);
} writes SEC(".maps");

/* The block that was marked last on a processor, which makes its folio dirty right after. */
struct mark {
	__u64 folio;
	__u64 thread;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mark);
} marks SEC(".maps");

/* include/linux/mm_types.h */
struct folio___partial {
	struct address_space *mapping;
	void *private;
	unsigned int _folio_nr_pages; /* 6.1 to 6.14 */
} FOUND_WHEN_LOADED;

struct folio___6_15 {
	unsigned int _nr_pages;
} FOUND_WHEN_LOADED;

enum pageflags { PG_dirty = 4, PG_head = 16 }; /* the running kernel's are asked for */

/* include/linux/buffer_head.h */
struct buffer_head {
	unsigned long b_state;
	void *b_folio; /* since 6.3 */
	unsigned long b_size;
} FOUND_WHEN_LOADED;

enum { BH_DIRTY = 1 << 1 };

/* fs/iomap/buffered-io.c; it is called so, and has dirty blocks, since 6.6 */
struct iomap_folio_state {
	unsigned long state[1];
} FOUND_WHEN_LOADED;

/* include/linux/fs.h, include/linux/uio.h */
struct kiocb___partial {
	struct file *ki_filp;
	__s64 ki_pos;
} FOUND_WHEN_LOADED;

struct iov_iter___partial {
	unsigned long count;
} FOUND_WHEN_LOADED;

struct inode___partial {
	__u8 i_blkbits;
} FOUND_WHEN_LOADED;

/* The most words of a bitmap: of a folio of 8 MiB in blocks of 4 KiB. */
#define WORDS_MAX 32

static __always_inline bool is_large(void *folio)
{
	unsigned long flags = 0;

	/* They are its first word. */
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	return bpf_core_enum_value_exists(enum pageflags, PG_head) &&
	       flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1;
}

static __always_inline bool is_dirty(void *folio)
{
	unsigned long flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	return flags >> bpf_core_enum_value(enum pageflags, PG_dirty) & 1;
}

static __always_inline __u64 bytes_of(void *folio)
{
	__u32 pages = 0;

	if (bpf_core_field_exists(((struct folio___partial *)0)->_folio_nr_pages))
		pages = BPF_CORE_READ((struct folio___partial *)folio, _folio_nr_pages);
	else if (bpf_core_field_exists(((struct folio___6_15 *)0)->_nr_pages))
		pages = BPF_CORE_READ((struct folio___6_15 *)folio, _nr_pages);
	return (__u64)pages * page_bytes;
}

/* The group of the running task that is counted. */
static __always_inline struct sum *group_of(struct key *key)
{
	__u32 first = 0;
	__u64 *used = bpf_map_lookup_elem(&levels, &first);
	struct task_struct *task;
	struct cgroup_subsys_state *state = 0;
	struct cgroup *cgroup;
	int at;

	if (!used || !*used || !bpf_core_enum_value_exists(enum cgroup_subsys_id, io_cgrp_id))
		return 0;
	task = (void *)bpf_get_current_task();
	at = bpf_core_enum_value(enum cgroup_subsys_id, io_cgrp_id);
	bpf_probe_read_kernel(&state, sizeof(state), &BPF_CORE_READ(task, cgroups)->subsys[0] + at);
	cgroup = BPF_CORE_READ(state, cgroup);
	for (int i = 0; i < LEVELS_MAX && cgroup; i++) {
		__u32 level = BPF_CORE_READ(cgroup, level);

		if (!level)
			return 0;
		if (level < LEVELS_MAX && *used >> level & 1) {
			struct sum *sum;

			key->group = BPF_CORE_READ(cgroup, kn, id);
			sum = bpf_map_lookup_elem(&groups, key);
			if (sum && (!i || !(sum->flags & ALONE)))
				return sum;
		}
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
	}
	return 0;
}

/* Where it is counted what the running task makes dirty of an inode. */
static __always_inline struct sum *sum_of(struct inode *inode, struct key *key)
{
	struct sum *sum = group_of(key), none = {};
	struct bdi_writeback *wb;

	if (!sum || !(sum->flags & FOREIGN))
		return sum;
	wb = writeback_of(inode);
	if (!wb || is_below(BPF_CORE_READ(wb, blkcg_css, cgroup), key->group, sum->level))
		return 0;
	key->device = device_of(inode);
	sum = bpf_map_lookup_elem(&groups, key);
	if (sum)
		return sum;
	bpf_map_update_elem(&groups, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&groups, key);
}

/* A block is about to be marked dirty: fs/buffer.c, mark_buffer_dirty. */
SEC("raw_tp/block_dirty_buffer")
int count_block(struct bpf_raw_tracepoint_args *ctx)
{
	struct buffer_head *bh = (void *)ctx->args[0];
	__u32 first = 0;
	struct key key = {};
	struct mark *mark;
	struct sum *sum;
	void *folio;

	if (!bpf_core_field_exists(bh->b_folio) || BPF_CORE_READ(bh, b_state) & BH_DIRTY)
		return 0;
	folio = BPF_CORE_READ(bh, b_folio);
	if (!is_large(folio))
		return 0;
	sum = sum_of(BPF_CORE_READ((struct folio___partial *)folio, mapping, host), &key);
	mark = bpf_map_lookup_elem(&marks, &first);
	if (!sum || !mark)
		return 0;
	__sync_fetch_and_add(&sum->spare, -(__s64)BPF_CORE_READ(bh, b_size));
	/* If the folio is dirty already, nothing follows. What makes it dirty later is then not this. */
	mark->folio = is_dirty(folio) ? 0 : (__u64)folio;
	mark->thread = bpf_get_current_pid_tgid();
	return 0;
}

/* How many bytes of a folio of XFS are dirty. */
static __always_inline __u64 dirty_of(void *folio, struct inode *inode, __u64 bytes)
{
	struct iomap_folio_state *state = BPF_CORE_READ((struct folio___partial *)folio, private);
	__u32 bits = BPF_CORE_READ((struct inode___partial *)inode, i_blkbits), blocks = bytes >> (bits & 63);
	__u64 all = 0, word = 0;
	unsigned long *map;

	/* Without a bitmap of its own, or one of dirty blocks, a folio is dirty as a whole. */
	if (!state || !bpf_core_type_exists(struct iomap_folio_state) || blocks < 2)
		return bytes;
	map = (void *)state + bpf_core_field_offset(state->state);
	/* The first half of the bits says which blocks are up to date. */
	if (blocks < 64) {
		bpf_probe_read_kernel(&word, sizeof(word), map + blocks / 64);
		all = __builtin_popcountll(word >> blocks & ((1ULL << blocks) - 1));
		if (blocks > 32)
			return bytes; /* not a power of 2 */
		return all << bits;
	}
	map += blocks / 64;
	for (__u32 i = 0; i < WORDS_MAX; i++) {
		if (i * 64 >= blocks)
			break;
		bpf_probe_read_kernel(&word, sizeof(word), map + i);
		all += __builtin_popcountll(word);
	}
	all <<= bits;
	return blocks > 64 * WORDS_MAX || all > bytes ? bytes : all;
}

/* A folio becomes dirty, and write_bytes counts it. */
SEC("raw_tp/writeback_dirty_folio")
int count_folio(struct bpf_raw_tracepoint_args *ctx)
{
	void *folio = (void *)ctx->args[0];
	struct inode *inode = BPF_CORE_READ((struct address_space *)ctx->args[1], host);
	__u64 thread = bpf_get_current_pid_tgid(), bytes;
	__u32 first = 0, tid = thread;
	struct key key = {};
	struct write *write = bpf_map_lookup_elem(&writes, &tid);
	struct mark *mark;
	struct sum *sum;

	if (write && write->inode == (__u64)inode) {
		__u64 dirty = page_bytes;

		if (is_large(folio)) {
			bytes = bytes_of(folio);
			dirty = dirty_of(folio, inode, bytes);
			sum = bpf_map_lookup_elem(&groups, &write->key);
			if (sum && dirty < bytes) {
				__sync_fetch_and_add(&sum->spare, bytes - dirty);
				__sync_fetch_and_add(&sum->behind, bytes - dirty);
			}
		}
		write->begun += dirty;
		return 0;
	}
	if (!is_large(folio))
		return 0;
	mark = bpf_map_lookup_elem(&marks, &first);
	if (!mark || mark->folio != (__u64)folio || mark->thread != thread)
		return 0;
	mark->folio = 0;
	sum = sum_of(inode, &key);
	if (sum)
		__sync_fetch_and_add(&sum->spare, bytes_of(folio));
	return 0;
}

/* What a write has written to folios that were dirty is known when it is over. */
static __always_inline void settle(struct write *write)
{
	struct sum *sum = bpf_map_lookup_elem(&groups, &write->key);

	if (sum && write->asked > write->begun)
		__sync_fetch_and_add(&sum->later, write->asked - write->begun);
}

/* The thread's write is over, as far as it is counted. */
static __always_inline void end(__u32 tid)
{
	struct write *write = bpf_map_lookup_elem(&writes, &tid);

	if (!write)
		return;
	settle(write);
	bpf_map_delete_elem(&writes, &tid);
}

/* XFS_IOLOCK_EXCL of fs/xfs/xfs_inode.h, which a write has until it is over. */
#define IO_LOCK 1

/* A lock of an inode of XFS is released: fs/xfs/xfs_inode.c. */
SEC("raw_tp/xfs_iunlock")
int end_write(struct bpf_raw_tracepoint_args *ctx)
{
	if (ctx->args[1] & IO_LOCK)
		end(bpf_get_current_pid_tgid());
	return 0;
}

/* A write(2) to a file of XFS begins: fs/xfs/xfs_file.c, under the inode's lock. */
SEC("raw_tp/xfs_file_buffered_write")
int begin_write(struct bpf_raw_tracepoint_args *ctx)
{
	struct kiocb___partial *iocb = (void *)ctx->args[0];
	__u32 tid = bpf_get_current_pid_tgid();
	struct write now = {};
	__u64 from, to, block;
	struct inode *inode;

	if (!bpf_core_type_exists(struct folio___partial))
		return 0; /* it has other arguments on some of the older kernels, which have no large folios */
	inode = BPF_CORE_READ(iocb, ki_filp, f_inode);
	if (!sum_of(inode, &now.key))
		return 0;
	block = 1ULL << (BPF_CORE_READ((struct inode___partial *)inode, i_blkbits) & 63);
	from = BPF_CORE_READ(iocb, ki_pos);
	to = from + BPF_CORE_READ((struct iov_iter___partial *)ctx->args[1], count);
	now.inode = (__u64)inode;
	now.asked = ((to + block - 1) & -block) - (from & -block);
	bpf_map_update_elem(&writes, &tid, &now, BPF_ANY);
	return 0;
}

/* A folio has 2^11 pages at most: MAX_XAS_ORDER in include/linux/pagemap.h. */
#define ORDER_MAX 11

static __always_inline int count_store(void)
{
	struct key key = {};
	struct sum *sum;

	end(bpf_get_current_pid_tgid()); /* what becomes dirty now is not its */
	sum = group_of(&key);
	if (sum)
		__sync_fetch_and_add(&sum->stored, (__u64)page_bytes << ORDER_MAX);
	return 0;
}

/* The first store into a page of a file of XFS since it was written back: fs/xfs/xfs_file.c. */
SEC("raw_tp/xfs_write_fault")
int begin_store(void *ctx)
{
	return count_store();
}

/* The same before 6.13, where it is called for loads too. */
SEC("raw_tp/xfs_filemap_fault")
int begin_store_before(struct bpf_raw_tracepoint_args *ctx)
{
	return ctx->args[2] & 1 ? count_store() : 0;
}
