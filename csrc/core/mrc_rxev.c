/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_rxev.h"

enum {
    MRC_RXEV_BAD_MIN = 8, /* fewer than that are an accident, whatever their share */
    MRC_RXEV_TOTAL = 512, /* packets after which the past counts half */
};

void mrc_rxev_start(struct mrc_rxev *x) { memset(x, 0, sizeof *x); }

static struct mrc_rxev_slot *rxev_find(struct mrc_rxev *x, uint32_t ev)
{
    for (uint32_t i = 0; i < MRC_RXEV_SLOTS; i++)
        if (x->slot[i].bad != 0 && x->slot[i].ev == ev)
            return &x->slot[i];
    return NULL;
}

/* A free slot, or that of the EV with the least against it. */
static struct mrc_rxev_slot *rxev_take(struct mrc_rxev *x, uint32_t ev)
{
    struct mrc_rxev_slot *s = &x->slot[0];
    for (uint32_t i = 1; i < MRC_RXEV_SLOTS; i++)
        if (x->slot[i].bad < s->bad)
            s = &x->slot[i];
    if (s->bad == 0)
        x->used++;
    const struct mrc_rxev_slot fresh = {.ev = ev};
    *s = fresh;
    return s;
}

static void rxev_age(struct mrc_rxev *x, struct mrc_rxev_slot *s)
{
    if ((uint32_t)s->good + s->bad < MRC_RXEV_TOTAL)
        return;
    s->good /= 2;
    s->bad /= 2;
    if (s->bad == 0)
        x->used--;
}

void mrc_rxev_bad(struct mrc_rxev *x, uint32_t ev, uint32_t percent)
{
    struct mrc_rxev_slot *s = rxev_find(x, ev);
    if (s == NULL)
        s = rxev_take(x, ev);
    s->bad++;
    const uint32_t total = (uint32_t)s->good + s->bad;
    if (s->bad >= MRC_RXEV_BAD_MIN && s->bad * 100u > percent * total)
        s->tell = true;
    rxev_age(x, s);
}

bool mrc_rxev_good(struct mrc_rxev *x, uint32_t ev)
{
    struct mrc_rxev_slot *s = rxev_find(x, ev);
    if (s == NULL)
        return false;
    if (s->tell) { /* the peer will test it; what comes after that is judged anew */
        s->bad = 0;
        x->used--;
        return true;
    }
    s->good++;
    rxev_age(x, s);
    return false;
}
