/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens next: a heap with four children a node, of sources that have something due. Ties go
 * to who was set first, so that the order depends on the calls alone. */
#include "fab_int.h"

static bool heap_before(const struct fab_heap_item *a, const struct fab_heap_item *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void heap_put(struct fab_heap *h, uint32_t at, const struct fab_heap_item *item)
{
    h->item[at] = *item;
    h->place[item->source] = at + 1;
}

static void heap_up(struct fab_heap *h, uint32_t at, struct fab_heap_item item)
{
    while (at > 0) {
        const uint32_t parent = (at - 1) / 4;
        if (!heap_before(&item, &h->item[parent]))
            break;
        heap_put(h, at, &h->item[parent]);
        at = parent;
    }
    heap_put(h, at, &item);
}

static void heap_down(struct fab_heap *h, uint32_t at, struct fab_heap_item item)
{
    for (;;) {
        const uint32_t first = 4 * at + 1;
        if (first >= h->count)
            break;
        const uint32_t end = mrc_min32(first + 4, h->count);
        uint32_t best = first;
        for (uint32_t i = first + 1; i < end; i++)
            if (heap_before(&h->item[i], &h->item[best]))
                best = i;
        if (!heap_before(&h->item[best], &item))
            break;
        heap_put(h, at, &h->item[best]);
        at = best;
    }
    heap_put(h, at, &item);
}

static void heap_remove(struct fab_heap *h, uint32_t at)
{
    const struct fab_heap_item last = h->item[--h->count];
    h->place[h->item[at].source] = 0;
    if (at == h->count)
        return;
    if (at > 0 && heap_before(&last, &h->item[(at - 1) / 4]))
        heap_up(h, at, last);
    else
        heap_down(h, at, last);
}

void fab_heap_set(struct fab_heap *h, uint32_t source, mrc_ns at)
{
    const uint32_t place = h->place[source];
    if (at == MRC_NEVER) {
        if (place != 0)
            heap_remove(h, place - 1);
        return;
    }
    const struct fab_heap_item item = {.at = at, .seq = h->seq++, .source = source};
    if (place == 0)
        heap_up(h, h->count++, item);
    else if (h->item[place - 1].at == at)
        return; /* keeps its turn */
    else if (at < h->item[place - 1].at)
        heap_up(h, place - 1, item);
    else
        heap_down(h, place - 1, item);
}
