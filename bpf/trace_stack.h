/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a task is at, told by the functions on its stack. */
#ifndef WEIR_TRACE_STACK_H
#define WEIR_TRACE_STACK_H

#include "trace_state.h"

/* What the functions on the current task's stack say, each WAIT_ a bit. Searched without
 * a branch, which the verifier would follow both ways at each step: of two addresses the
 * sign of the difference tells which is greater, as all are in the same half. */
static __always_inline __u64 waits_here(void *ctx)
{
	__u32 first = 0;
	__u64 *stack = bpf_map_lookup_elem(&stacks, &first);
	__u64 found = 0;
	long n;

	if (!stack)
		return 0;
	n = bpf_get_stack(ctx, stack, STACK_DEPTH * sizeof(*stack), 0);
	if (n <= 0) {
		COUNT_LOST(stacks);
		return 0;
	}
	for (int i = 0; i < STACK_DEPTH; i++) {
		__u64 at = 0;

		if (i * sizeof(*stack) >= n)
			break;
		for (__u64 step = PLACES_MAX / 2; step; step >>= 1) {
			__u64 next = at + step;

			barrier_var(next); /* clang knows the bound, older verifiers want to see it */
			next &= PLACES_MAX - 1;
			at += step & ~(__u64)((__s64)(stack[i] - places[next].start) >> 63);
		}
		barrier_var(at);
		found |= places[at & (PLACES_MAX - 1)].waits;
	}
	return found;
}

static __always_inline __u8 lowest(__u64 waits)
{
	for (__u8 i = 0; i < WAIT_SYSCALL; i++)
		if (waits & 1 << i)
			return i;
	return WAITS - 1;
}

#endif
