/* SPDX-License-Identifier: BSD-2-Clause */
/* What a tc program has of its kernel. A test brings its own (csrc/tests/test_lab_bpf.c). */
#ifndef MRC_BPF_H
#define MRC_BPF_H

#include <linux/bpf.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define SLOT_MAGIC "0x4d52435f534c4f54" /* patched when the program is loaded */

static void *(*const bpf_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u64 (*const bpf_now_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static __u32 (*const bpf_random)(void) = (void *)BPF_FUNC_get_prandom_u32;
static long (*const bpf_load)(const void *skb, __u32 at, void *to,
                              __u32 len) = (void *)BPF_FUNC_skb_load_bytes;
static long (*const bpf_store)(void *skb, __u32 at, const void *from, __u32 len,
                               __u64 flags) = (void *)BPF_FUNC_skb_store_bytes;
static long (*const bpf_change_tail)(void *skb, __u32 len,
                                     __u64 flags) = (void *)BPF_FUNC_skb_change_tail;
static long (*const bpf_adjust_room)(void *skb, __s32 by, __u32 mode,
                                     __u64 flags) = (void *)BPF_FUNC_skb_adjust_room;
static long (*const bpf_csum_diff)(const void *from, __u32 from_size, const void *to, __u32 to_size,
                                   __u32 seed) = (void *)BPF_FUNC_csum_diff;
static long (*const bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)BPF_FUNC_redirect;
static long (*const bpf_l4_csum)(void *skb, __u32 at, __u64 from, __u64 to,
                                 __u64 flags) = (void *)BPF_FUNC_l4_csum_replace;

/* The number of the port, patched in when the program is loaded. */
INLINE __u32 slot(void)
{
    __u64 value;
    asm volatile("%0 = " SLOT_MAGIC " ll" : "=r"(value));
    return (__u32)value;
}

#endif
