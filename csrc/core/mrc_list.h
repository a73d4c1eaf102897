/* SPDX-License-Identifier: BSD-2-Clause */
/* Intrusive doubly linked ring with a sentinel. A link that points at itself is in no list. */
#ifndef MRC_LIST_H
#define MRC_LIST_H

#include "mrc_base.h"

struct mrc_link {
    struct mrc_link *prev;
    struct mrc_link *next;
};

#define MRC_LIST_OWNER(link, type, member)                                                         \
    ((type *)(void *)((uint8_t *)(link)-offsetof(type, member)))

static inline void mrc_list_init(struct mrc_link *l)
{
    l->prev = l;
    l->next = l;
}
static inline bool mrc_list_empty(const struct mrc_link *l) { return l->next == l; }
static inline void mrc_list_remove(struct mrc_link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    mrc_list_init(l);
}
/* At the end, unless it is in a list already. */
static inline void mrc_list_push(struct mrc_link *head, struct mrc_link *l)
{
    if (!mrc_list_empty(l))
        return;
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}
/* The same at the beginning. */
static inline void mrc_list_push_front(struct mrc_link *head, struct mrc_link *l)
{
    if (!mrc_list_empty(l))
        return;
    l->prev = head;
    l->next = head->next;
    head->next->prev = l;
    head->next = l;
}
static inline struct mrc_link *mrc_list_pop(struct mrc_link *head)
{
    if (mrc_list_empty(head))
        return NULL;
    struct mrc_link *l = head->next;
    mrc_list_remove(l);
    return l;
}

#endif
