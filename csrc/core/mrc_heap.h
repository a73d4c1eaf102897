/* SPDX-License-Identifier: BSD-2-Clause */
/* Intrusive binary min-heap of deadlines. A node lives inside the object that has the deadline; the
 * heap owns nothing: the array of pointers is the caller's and bounds it. O(log n) set and remove,
 * O(1) min. Equal keys come out in an order that depends on the calls alone. */
#ifndef MRC_HEAP_H
#define MRC_HEAP_H

#include "mrc_base.h"

struct mrc_heap_node { /* zero-initialise: not in a heap */
    mrc_ns key;
    uint32_t pos; /* place in the array plus one; 0: not in a heap */
};

struct mrc_heap {
    struct mrc_heap_node **slot;
    uint32_t count;
    uint32_t max;
};

/* slots: room for max pointers; max nodes at a time is asserted. */
void mrc_heap_init(struct mrc_heap *h, struct mrc_heap_node **slots, uint32_t max);
/* Insert the node, or move it, to this key. MRC_NEVER takes it out. */
void mrc_heap_set(struct mrc_heap *h, struct mrc_heap_node *n, mrc_ns key);
/* No effect when it is not in the heap. */
void mrc_heap_remove(struct mrc_heap *h, struct mrc_heap_node *n);

/* Node of the smallest key, NULL when empty. */
static inline struct mrc_heap_node *mrc_heap_min(const struct mrc_heap *h)
{
    return h->count != 0 ? h->slot[0] : NULL;
}
/* The smallest key, MRC_NEVER when empty. */
static inline mrc_ns mrc_heap_key(const struct mrc_heap *h)
{
    return h->count != 0 ? h->slot[0]->key : MRC_NEVER;
}
static inline bool mrc_heap_has(const struct mrc_heap_node *n) { return n->pos != 0; }

#endif
