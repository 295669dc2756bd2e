// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Counts what groups make dirty in files whose writeback is charged to another group: no
 * limit of theirs holds it. Runs where the kernel counts write_bytes (folio_account_dirtied
 * in mm/page-writeback.c), in the context of the task that writes. Changes nothing.
 */
#include "kernel.h"
#include <linux/bpf.h>
#include "owned.h"
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

/* Groups that are counted are at most so far below the root. */
#define LEVELS_MAX 16

volatile const __u32 page_bytes = 4096; /* set before loading */

/* A group that is counted, by its number; internal/act/escape/layout.go mirrors it. */
struct counted {
	__u32 level; /* how far below the root it is */
	__u32 pad;
	__u64 step;  /* tell the reader each time that so many bytes more have escaped */
	__u64 since; /* bytes, since it was told last */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct counted);
} groups SEC(".maps");

/* One entry: a bit for each level that a counted group is at. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} levels SEC(".maps");

/* Bytes by group and disk. */
struct sum_key {
	__u64 group;
	__u32 device;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct sum_key);
	__type(value, __u64);
} sums SEC(".maps");

#define NAME_BYTES 64
#define NAMES_MAX 8

enum {
	OWNER_ROOT = 1 << 0,
	OWNER_DEAD = 1 << 1,
	NAME_CUT = 1 << 2, /* directories above the last of names are left out */
};

struct file_key {
	__u64 group;
	__u64 inode; /* its address */
	__u64 owner;
};

/* A file that something has escaped through, and who its writeback is charged to. */
struct escaped {
	__u64 bytes;
	__u64 number;
	__u32 device;
	__u32 filesystem;
	__u32 flags;
	__u32 pad;
	char owner[NAME_BYTES];
	char names[NAMES_MAX][NAME_BYTES]; /* of the file, of the directory it is in, and so on */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct file_key);
	__type(value, struct escaped);
} files SEC(".maps");

/* It is larger than the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct escaped);
} scratch SEC(".maps");

/* The numbers of groups for which a step is full. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} steps SEC(".maps");

/* include/linux/mm_types.h. What the tracepoint is given is a page until 5.17 (203a31516616). */
struct page {
	unsigned long flags;
	unsigned int compound_nr; /* of the second page of several; until 6.1 */
} FOUND_WHEN_LOADED;

struct folio {
	unsigned int _folio_nr_pages; /* 6.1 to 6.14 */
} FOUND_WHEN_LOADED;

struct folio___6_15 {
	unsigned int _nr_pages;
} FOUND_WHEN_LOADED;

enum pageflags { PG_head = 16 }; /* the running kernel's is asked for */

static __always_inline __u64 bytes_of(void *folio)
{
	unsigned long flags = 0;
	__u32 pages = 1;

	/* They are the first word of a page and of a folio, whatever its type is called. */
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!bpf_core_enum_value_exists(enum pageflags, PG_head) ||
	    !(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return page_bytes;
	if (bpf_core_field_exists(((struct folio *)0)->_folio_nr_pages))
		pages = BPF_CORE_READ((struct folio *)folio, _folio_nr_pages);
	else if (bpf_core_field_exists(((struct folio___6_15 *)0)->_nr_pages))
		pages = BPF_CORE_READ((struct folio___6_15 *)folio, _nr_pages);
	else if (bpf_core_field_exists(((struct page *)0)->compound_nr))
		pages = BPF_CORE_READ((struct page *)(folio + bpf_core_type_size(struct page)), compound_nr);
	return (__u64)(pages ? pages : 1) * page_bytes;
}

struct hlist_node {
	struct hlist_node *next;
} FOUND_WHEN_LOADED;

struct hlist_head {
	struct hlist_node *first;
} FOUND_WHEN_LOADED;

struct inode___escape {
	struct hlist_head i_dentry;
} FOUND_WHEN_LOADED;

struct qstr {
	const unsigned char *name;
} FOUND_WHEN_LOADED;

/* include/linux/dcache.h */
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
} FOUND_WHEN_LOADED;

struct dentry___flat {
	struct hlist_node d_alias;
} FOUND_WHEN_LOADED;

/* The names by which a file was opened last. */
static __always_inline void name_file(struct escaped *e, struct inode *inode)
{
	struct hlist_node *node = BPF_CORE_READ((struct inode___escape *)inode, i_dentry.first);
	struct dentry *dentry = 0;

	if (!node)
		return;
	if (bpf_core_field_exists(((struct dentry *)0)->d_u.d_alias))
		dentry = (void *)node - bpf_core_field_offset(((struct dentry *)0)->d_u.d_alias);
	else if (bpf_core_field_exists(((struct dentry___flat *)0)->d_alias))
		dentry = (void *)node - bpf_core_field_offset(((struct dentry___flat *)0)->d_alias);
	if (!dentry || !bpf_core_field_exists(dentry->d_name))
		return;
#pragma unroll
	for (int i = 0; i < NAMES_MAX; i++) {
		struct dentry *parent = BPF_CORE_READ(dentry, d_parent);

		if (!parent || parent == dentry)
			return; /* the root of the file system */
		bpf_probe_read_kernel_str(e->names[i], NAME_BYTES, BPF_CORE_READ(dentry, d_name.name));
		dentry = parent;
	}
	if (BPF_CORE_READ(dentry, d_parent) != dentry)
		e->flags |= NAME_CUT;
}

static __always_inline void add_file(__u64 group, struct inode *inode, __u32 device, struct cgroup *cgroup, __u64 bytes)
{
	struct file_key key = {.group = group, .inode = (__u64)inode, .owner = BPF_CORE_READ(cgroup, kn, id)};
	struct escaped *e = bpf_map_lookup_elem(&files, &key);
	__u64 number = BPF_CORE_READ(inode, i_ino);
	__u32 first = 0;

	if (e && e->number == number) {
		__sync_fetch_and_add(&e->bytes, bytes);
		return;
	}
	e = bpf_map_lookup_elem(&scratch, &first);
	if (!e)
		return;
	e->bytes = bytes;
	e->number = number;
	e->device = device;
	e->filesystem = BPF_CORE_READ(inode, i_sb, s_dev);
	e->flags = 0;
#pragma unroll
	for (int i = 0; i < NAMES_MAX; i++)
		e->names[i][0] = 0;
	if (!BPF_CORE_READ(cgroup, self.parent))
		e->flags |= OWNER_ROOT;
	if (!(BPF_CORE_READ(cgroup, self.flags) & CSS_ONLINE))
		e->flags |= OWNER_DEAD;
	bpf_probe_read_kernel_str(e->owner, NAME_BYTES, BPF_CORE_READ(cgroup, kn, name));
	name_file(e, inode);
	bpf_map_update_elem(&files, &key, e, BPF_ANY);
}

static __always_inline void add(__u64 group, struct counted *counted, __u32 device, __u64 bytes)
{
	struct sum_key key = {.group = group, .device = device};
	__u64 *sum = bpf_map_lookup_elem(&sums, &key), none = 0;

	if (!sum) {
		bpf_map_update_elem(&sums, &key, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&sums, &key);
		if (!sum)
			return;
	}
	__sync_fetch_and_add(sum, bytes);
	__sync_fetch_and_add(&counted->since, bytes);
	if (counted->step && counted->since >= counted->step) {
		counted->since = 0; /* two processors may tell the same step */
		bpf_ringbuf_output(&steps, &group, sizeof(group), 0);
	}
}

static __always_inline void dirtied(void *folio, struct address_space *mapping, __u64 id, struct counted *counted)
{
	struct inode *inode = BPF_CORE_READ(mapping, host);
	struct bdi_writeback *wb = writeback_of(inode);
	struct cgroup *owner;
	__u32 device;
	__u64 bytes;

	if (!wb)
		return;
	if (is_below(BPF_CORE_READ(wb, blkcg_css, cgroup), id, counted->level))
		return;
	owner = BPF_CORE_READ(wb, memcg_css, cgroup);
	bytes = bytes_of(folio);
	device = device_of(inode);
	add(id, counted, device, bytes);
	add_file(id, inode, device, owner, bytes);
}

/* writeback_dirty_folio; until 5.17 writeback_dirty_page. */
SEC("raw_tp/writeback_dirty_folio")
int count_escapes(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 first = 0;
	__u64 *used = bpf_map_lookup_elem(&levels, &first);

	if (!used || !*used)
		return 0;
	for (__u32 level = 1; level < LEVELS_MAX; level++) {
		struct counted *counted;
		__u64 id;

		if (!(*used >> level & 1))
			continue;
		id = bpf_get_current_ancestor_cgroup_id(level);
		if (!id)
			break;
		counted = bpf_map_lookup_elem(&groups, &id);
		if (counted && counted->level == level)
			dirtied((void *)ctx->args[0], (void *)ctx->args[1], id, counted);
	}
	return 0;
}
