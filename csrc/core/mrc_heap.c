/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_heap.h"

void mrc_heap_init(struct mrc_heap *h, struct mrc_heap_node **slots, uint32_t max)
{
    h->slot = slots;
    h->count = 0;
    h->max = max;
}

static void heap_place(struct mrc_heap *h, uint32_t at, struct mrc_heap_node *n)
{
    h->slot[at] = n;
    n->pos = at + 1;
}

/* n belongs at `at` or above it: later parents come down. */
static void heap_up(struct mrc_heap *h, uint32_t at, struct mrc_heap_node *n)
{
    while (at != 0) {
        const uint32_t parent = (at - 1) / 2;
        if (h->slot[parent]->key <= n->key)
            break;
        heap_place(h, at, h->slot[parent]);
        at = parent;
    }
    heap_place(h, at, n);
}

/* n belongs at `at` or below it: the earlier child comes up. */
static void heap_down(struct mrc_heap *h, uint32_t at, struct mrc_heap_node *n)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= h->count)
            break;
        if (child + 1 < h->count && h->slot[child + 1]->key < h->slot[child]->key)
            child++;
        if (n->key <= h->slot[child]->key)
            break;
        heap_place(h, at, h->slot[child]);
        at = child;
    }
    heap_place(h, at, n);
}

static void heap_settle(struct mrc_heap *h, uint32_t at, struct mrc_heap_node *n)
{
    if (at != 0 && n->key < h->slot[(at - 1) / 2]->key)
        heap_up(h, at, n);
    else
        heap_down(h, at, n);
}

void mrc_heap_set(struct mrc_heap *h, struct mrc_heap_node *n, mrc_ns key)
{
    if (key == MRC_NEVER) {
        mrc_heap_remove(h, n);
        return;
    }
    if (n->key == key && n->pos != 0)
        return;
    n->key = key;
    if (n->pos == 0) {
        MRC_ASSERT(h->count < h->max);
        heap_up(h, h->count++, n);
        return;
    }
    MRC_ASSERT(n->pos <= h->count && h->slot[n->pos - 1] == n);
    heap_settle(h, n->pos - 1, n);
}

void mrc_heap_remove(struct mrc_heap *h, struct mrc_heap_node *n)
{
    if (n->pos == 0)
        return;
    const uint32_t at = n->pos - 1;
    MRC_ASSERT(at < h->count && h->slot[at] == n);
    n->pos = 0;
    struct mrc_heap_node *const last = h->slot[--h->count];
    if (last != n)
        heap_settle(h, at, last);
}
