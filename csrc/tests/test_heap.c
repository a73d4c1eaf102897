/* SPDX-License-Identifier: BSD-2-Clause */
#include "t.h"

#include "../core/mrc_heap.h"
#include "../core/mrc_rand.h"

enum { NODES = 300 };

static struct mrc_heap_node *heap_slots[NODES];
static struct mrc_heap_node heap_nodes[NODES];

static struct mrc_heap heap_new(void)
{
    struct mrc_heap h;
    memset(heap_nodes, 0, sizeof heap_nodes);
    mrc_heap_init(&h, heap_slots, NODES);
    return h;
}

/* Parents not later than children, every node knows its place. */
static void heap_check(const struct mrc_heap *h)
{
    for (uint32_t i = 0; i < h->count; i++) {
        CHECK_EQ(h->slot[i]->pos, i + 1);
        CHECK(i == 0 || h->slot[(i - 1) / 2]->key <= h->slot[i]->key);
    }
}

TEST(heap__is_empty_at_first)
{
    const struct mrc_heap h = heap_new();
    CHECK(mrc_heap_min(&h) == NULL);
    CHECK_EQ(mrc_heap_key(&h), MRC_NEVER);
    CHECK(!mrc_heap_has(&heap_nodes[0]));
}

TEST(heap_set__gives_the_keys_back_in_order)
{
    struct mrc_heap h = heap_new();
    struct mrc_rand r;
    mrc_rand_seed(&r, 1);
    for (uint32_t i = 0; i < NODES; i++)
        mrc_heap_set(&h, &heap_nodes[i], mrc_rand_below(&r, 100));
    CHECK_EQ(h.count, NODES);
    heap_check(&h);
    mrc_ns last = 0;
    while (h.count != 0) {
        struct mrc_heap_node *n = mrc_heap_min(&h);
        CHECK(n->key >= last);
        last = n->key;
        mrc_heap_remove(&h, n);
        CHECK(!mrc_heap_has(n));
        heap_check(&h);
    }
}

TEST(heap_set__moves_a_node_both_ways)
{
    struct mrc_heap h = heap_new();
    for (uint32_t i = 0; i < 10; i++)
        mrc_heap_set(&h, &heap_nodes[i], 100 + i);
    mrc_heap_set(&h, &heap_nodes[7], 5);
    CHECK(mrc_heap_min(&h) == &heap_nodes[7]);
    mrc_heap_set(&h, &heap_nodes[7], 500);
    CHECK(mrc_heap_min(&h) == &heap_nodes[0]);
    CHECK_EQ(h.count, 10);
    heap_check(&h);
}

TEST(heap_set__never_takes_the_node_out)
{
    struct mrc_heap h = heap_new();
    mrc_heap_set(&h, &heap_nodes[0], 1);
    mrc_heap_set(&h, &heap_nodes[1], 2);
    mrc_heap_set(&h, &heap_nodes[0], MRC_NEVER);
    CHECK(!mrc_heap_has(&heap_nodes[0]));
    CHECK(mrc_heap_min(&h) == &heap_nodes[1]);
    mrc_heap_set(&h, &heap_nodes[0], MRC_NEVER); /* not in it: nothing happens */
    mrc_heap_remove(&h, &heap_nodes[0]);
    CHECK_EQ(h.count, 1);
}

TEST(heap__agrees_with_a_plain_array_under_random_calls)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct mrc_heap h = heap_new();
        struct mrc_rand r;
        mrc_ns keys[NODES];
        memset(keys, 0xFF, sizeof keys);
        mrc_rand_seed(&r, seed);
        for (int step = 0; step < 3000; step++) {
            const uint32_t i = mrc_rand_below(&r, NODES);
            keys[i] = mrc_rand_below(&r, 3) == 0 ? MRC_NEVER : mrc_rand_below(&r, 1000);
            mrc_heap_set(&h, &heap_nodes[i], keys[i]);
            mrc_ns min = MRC_NEVER;
            for (uint32_t k = 0; k < NODES; k++)
                min = mrc_min64(min, keys[k]);
            CHECK_EQ(mrc_heap_key(&h), min);
        }
        heap_check(&h);
    }
}
