/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that the core borrows from the pump. */
#include "mrc_pages.h"
#include "mrc_pump_int.h"

#include <stdlib.h>

enum { PUMP_PAGES_BYTES = 128 << 10 }; /* from here on a block has pages of its own */

void *pump_alloc(struct mrc_pump *p, size_t size)
{
    const size_t whole = (sizeof(struct pump_block) + size + 63) & ~(size_t)63;
    const size_t pages = whole >= PUMP_PAGES_BYTES ? whole : 0;
    struct pump_block *b = whole <= size ? NULL
                           : pages != 0  ? mrc_pages_get(pages)
                                         : aligned_alloc(64, whole);
    if (b == NULL)
        return NULL;
    if (pages == 0)
        memset(b, 0, whole);
    b->pages = pages;
    b->next = p->blocks;
    b->link = &p->blocks;
    if (b->next != NULL)
        b->next->link = &b->next;
    p->blocks = b;
    return b->bytes;
}

void pump_free(struct mrc_pump *p, void *bytes)
{
    (void)p;
    struct pump_block *b =
        (struct pump_block *)(void *)((uint8_t *)bytes - offsetof(struct pump_block, bytes));
    *b->link = b->next;
    if (b->next != NULL)
        b->next->link = b->link;
    if (b->pages != 0)
        mrc_pages_put(b, b->pages);
    else
        free(b);
}
