/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_txtrack.h"

size_t mrc_txtrack_bytes(uint32_t window_max, uint32_t own, uint16_t ev_max)
{
    const uint32_t cap = mrc_bits_capacity(window_max);
    return mrc_align(mrc_min32(cap, own) * sizeof(struct mrc_slot)) +
           mrc_align(mrc_bits_bytes(cap)) + mrc_align(ev_max * sizeof(struct mrc_ev_sent));
}

void mrc_txtrack_init(struct mrc_txtrack *t, void *mem, uint32_t window_max, uint32_t own,
                      uint16_t ev_max)
{
    const uint32_t cap = mrc_bits_capacity(window_max);
    own = mrc_min32(cap, own);
    uint8_t *m = mem;
    MRC_ASSERT(cap < MRC_SLOT_NIL);
    memset(t, 0, sizeof *t);
    t->slot = t->own = (struct mrc_slot *)(void *)m;
    m += mrc_align(own * sizeof(struct mrc_slot));
    t->mask = t->own_mask = own - 1;
    mrc_bits_init(&t->lost, m, cap);
    m += mrc_align(mrc_bits_bytes(cap));
    t->ev = (struct mrc_ev_sent *)(void *)m;
    t->ev_max = ev_max;
    mrc_txtrack_start(t, mrc_psn(0));
}

void mrc_txtrack_start(struct mrc_txtrack *t, struct mrc_psn sq_psn)
{
    memset(t->slot, 0, (t->mask + 1) * sizeof *t->slot);
    mrc_bits_init(&t->lost, t->lost.word, t->lost.mask + 1);
    for (uint32_t i = 0; i < t->ev_max; i++) {
        const struct mrc_ev_sent none = {{0, 0},
                                         {false, false},
                                         false,
                                         MRC_SLOT_NIL,
                                         {MRC_SLOT_NIL, MRC_SLOT_NIL},
                                         {MRC_SLOT_NIL, MRC_SLOT_NIL}};
        t->ev[i] = none;
    }
    t->lost_count = 0;
    t->inflight_count = 0;
    t->acked_count = 0;
    t->order = 0;
    t->head = MRC_SLOT_NIL;
    t->tail = MRC_SLOT_NIL;
    t->unack = mrc_psn_add(sq_psn, -1);
    t->max_sent = t->unack;
    t->ar_passed = mrc_psn_add(t->unack, -1); /* none yet */
    t->newest_acked_ns = 0;
    t->touched_head = t->touched_tail = MRC_SLOT_NIL;
    t->touched_count = 0;
}

/* ---- room ---- */

/* The same places in the order of sending, in the larger ring. */
static void tx_move(struct mrc_txtrack *t, struct mrc_slot *to, uint32_t mask)
{
    struct mrc_slot *const from = t->slot;
    const struct mrc_psn end = mrc_psn_add(t->max_sent, 1);
#define TX_MOVED(i) ((i) == MRC_SLOT_NIL ? MRC_SLOT_NIL : (uint16_t)(from[i].psn & mask))
    for (struct mrc_psn p = mrc_psn_add(t->unack, 1); !mrc_psn_eq(p, end); p = mrc_psn_add(p, 1)) {
        struct mrc_slot *const s = &from[p.v & t->mask];
        struct mrc_slot *const d = &to[p.v & mask];
        *d = *s;
        s->state = MRC_SLOT_FREE; /* the own ring is as good as new when it is used again */
        if (d->state != MRC_SLOT_INFLIGHT)
            continue;
        struct mrc_ev_sent *const e = &t->ev[s->ev];
        d->prev = TX_MOVED(s->prev);
        d->next = TX_MOVED(s->next);
        d->ev_prev = TX_MOVED(s->ev_prev);
        d->ev_next = TX_MOVED(s->ev_next);
        if (s->ev_prev == MRC_SLOT_NIL)
            e->head[s->cls] = (uint16_t)(p.v & mask);
        if (s->ev_next == MRC_SLOT_NIL)
            e->tail[s->cls] = (uint16_t)(p.v & mask);
    }
    t->head = TX_MOVED(t->head);
    t->tail = TX_MOVED(t->tail);
#undef TX_MOVED
}

void mrc_txtrack_widen(struct mrc_txtrack *t, struct mrc_pool *p, uint32_t room)
{
    const uint32_t most = t->lost.mask + 1;
    uint32_t n = t->mask + 1;
    while (n < room && n < most)
        n *= 4; /* so that moving costs a packet little, however many are out in the end */
    n = mrc_min32(n, most);
    if (n == t->mask + 1)
        return;
    const uint8_t order = mrc_pool_order(n * sizeof(struct mrc_slot));
    struct mrc_slot *const to = mrc_pool_take(p, order);
    if (to == NULL)
        return; /* tries again in its next turn */
    memset(to, 0, n * sizeof *to);
    tx_move(t, to, n - 1);
    if (mrc_txtrack_borrows(t))
        mrc_pool_give(p, t->slot, t->block_order);
    t->slot = to;
    t->mask = n - 1;
    t->block_order = order;
}

void mrc_txtrack_narrow(struct mrc_txtrack *t, struct mrc_pool *p)
{
    if (!mrc_txtrack_borrows(t))
        return;
    mrc_pool_give(p, t->slot, t->block_order);
    t->slot = t->own;
    t->mask = t->own_mask;
}

/* ---- EVs to look at ---- */

void mrc_txtrack_touch(struct mrc_txtrack *t, uint16_t ev)
{
    struct mrc_ev_sent *const e = &t->ev[ev];
    if (e->touched)
        return;
    e->touched = true;
    e->touched_next = MRC_SLOT_NIL;
    if (t->touched_tail != MRC_SLOT_NIL)
        t->ev[t->touched_tail].touched_next = ev;
    else
        t->touched_head = ev;
    t->touched_tail = ev;
    t->touched_count++;
}

bool mrc_txtrack_touched(struct mrc_txtrack *t, uint16_t *ev)
{
    if (t->touched_head == MRC_SLOT_NIL)
        return false;
    *ev = t->touched_head;
    struct mrc_ev_sent *const e = &t->ev[*ev];
    e->touched = false;
    t->touched_head = e->touched_next;
    if (t->touched_head == MRC_SLOT_NIL)
        t->touched_tail = MRC_SLOT_NIL;
    t->touched_count--;
    return true;
}

/* ---- packets ---- */

struct mrc_slot *mrc_txtrack_find(struct mrc_txtrack *t, struct mrc_psn psn)
{
    struct mrc_slot *s = mrc_txtrack_slot(t, psn);
    return s->state != MRC_SLOT_FREE && s->psn == psn.v ? s : NULL;
}

static void tx_link(struct mrc_txtrack *t, struct mrc_slot *s)
{
    const uint16_t i = (uint16_t)(s->psn & t->mask);
    struct mrc_ev_sent *e = &t->ev[s->ev];
    s->prev = t->tail;
    s->next = MRC_SLOT_NIL;
    if (t->tail != MRC_SLOT_NIL)
        t->slot[t->tail].next = i;
    else
        t->head = i;
    t->tail = i;
    s->ev_prev = e->tail[s->cls];
    s->ev_next = MRC_SLOT_NIL;
    if (e->tail[s->cls] != MRC_SLOT_NIL)
        t->slot[e->tail[s->cls]].ev_next = i;
    else
        e->head[s->cls] = i;
    e->tail[s->cls] = i;
    t->inflight_count++;
}

static void tx_unlink(struct mrc_txtrack *t, struct mrc_slot *s)
{
    struct mrc_ev_sent *e = &t->ev[s->ev];
    if (s->prev != MRC_SLOT_NIL)
        t->slot[s->prev].next = s->next;
    else
        t->head = s->next;
    if (s->next != MRC_SLOT_NIL)
        t->slot[s->next].prev = s->prev;
    else
        t->tail = s->prev;
    if (s->ev_prev != MRC_SLOT_NIL)
        t->slot[s->ev_prev].ev_next = s->ev_next;
    else
        e->head[s->cls] = s->ev_next;
    if (s->ev_next != MRC_SLOT_NIL)
        t->slot[s->ev_next].ev_prev = s->ev_prev;
    else
        e->tail[s->cls] = s->ev_prev;
    MRC_ASSERT(t->inflight_count > 0);
    t->inflight_count--;
}

/* All up to s, both lists begin with, have arrived. */
static void tx_heads(struct mrc_txtrack *t, struct mrc_ev_sent *e, const struct mrc_slot *s)
{
    t->head = s->next;
    if (s->next != MRC_SLOT_NIL)
        t->slot[s->next].prev = MRC_SLOT_NIL;
    else
        t->tail = MRC_SLOT_NIL;
    e->head[s->cls] = s->ev_next;
    if (s->ev_next != MRC_SLOT_NIL)
        t->slot[s->ev_next].ev_prev = MRC_SLOT_NIL;
    else
        e->tail[s->cls] = MRC_SLOT_NIL;
}

static void tx_unlose(struct mrc_txtrack *t, struct mrc_slot *s)
{
    mrc_bits_clear(&t->lost, s->psn);
    MRC_ASSERT(t->lost_count > 0);
    t->lost_count--;
}

static bool tx_joins(const struct mrc_txtrack *t, const struct mrc_slot *s)
{
    if (t->tail == MRC_SLOT_NIL || s->rtx != 0)
        return false;
    const struct mrc_slot *p = &t->slot[t->tail];
    return p->psn == mrc_psn_add(mrc_psn(s->psn), -1).v && p->rtx == 0 && p->ev == s->ev &&
           p->cls == s->cls && p->nominal == s->nominal && p->sent_ns == s->sent_ns;
}

struct mrc_slot *mrc_txtrack_sent(struct mrc_txtrack *t, struct mrc_psn psn, uint32_t wqe,
                                  uint16_t ev, uint8_t cls, uint16_t nominal, mrc_ns now)
{
    struct mrc_slot *s = mrc_txtrack_slot(t, psn);
    MRC_ASSERT(ev < t->ev_max && cls < 2);
    if (s->state == MRC_SLOT_LOST && s->psn == psn.v) {
        tx_unlose(t, s);
        if (s->rtx < UINT8_MAX)
            s->rtx++;
    } else {
        MRC_ASSERT(s->state == MRC_SLOT_FREE);
        MRC_ASSERT(mrc_psn_diff(psn, t->max_sent) == 1);
        s->psn = psn.v;
        s->wqe = wqe;
        s->nominal = nominal;
        s->rtx = 0;
        s->first_tick = (uint64_t)mrc_tick(now);
        t->max_sent = psn;
    }
    s->state = MRC_SLOT_INFLIGHT;
    s->sent_ns = now;
    s->order = ++t->order;
    s->ev = ev;
    s->cls = cls;
    s->joined = tx_joins(t, s);
    tx_link(t, s);
    return s;
}

struct mrc_slot *mrc_txtrack_sent_next(struct mrc_txtrack *t, uint16_t ev)
{
    const struct mrc_psn psn = mrc_psn_add(t->max_sent, 1);
    const uint16_t i = (uint16_t)(psn.v & t->mask);
    const uint16_t before = t->tail;
    struct mrc_slot *const p = &t->slot[before];
    struct mrc_slot *const s = &t->slot[i];
    MRC_ASSERT(ev < t->ev_max && s->state == MRC_SLOT_FREE && p->psn == t->max_sent.v);
    struct mrc_ev_sent *const e = &t->ev[ev];
    *s = *p;
    s->psn = psn.v;
    s->joined = ev == p->ev;
    s->ev = ev;
    s->order = ++t->order;
    s->prev = before;
    p->next = i;
    t->tail = i;
    s->ev_prev = e->tail[s->cls];
    s->ev_next = MRC_SLOT_NIL;
    if (s->ev_prev != MRC_SLOT_NIL)
        t->slot[s->ev_prev].ev_next = i;
    else
        e->head[s->cls] = i;
    e->tail[s->cls] = i;
    t->max_sent = psn;
    t->inflight_count++;
    return s;
}

static void tx_note_arrival(struct mrc_txtrack *t, const struct mrc_slot *s)
{
    struct mrc_ev_sent *e = &t->ev[s->ev];
    if (!e->acked_any[s->cls] || s->order > e->acked_order[s->cls]) {
        e->acked_order[s->cls] = s->order;
        e->acked_any[s->cls] = true;
    }
    if (s->sent_ns > t->newest_acked_ns)
        t->newest_acked_ns = s->sent_ns;
}

bool mrc_txtrack_ack(struct mrc_txtrack *t, struct mrc_psn psn, bool echoed)
{
    struct mrc_slot *s = mrc_txtrack_find(t, psn);
    if (s == NULL || s->state == MRC_SLOT_ACKED)
        return false;
    if (s->state == MRC_SLOT_INFLIGHT) {
        tx_unlink(t, s);
        if (s->rtx == 0 || (echoed && s->rtx == 1)) /* else it may have been an earlier copy */
            tx_note_arrival(t, s);
    } else {
        tx_unlose(t, s);
    }
    s->state = MRC_SLOT_ACKED;
    t->acked_count++;
    return true;
}

void mrc_txtrack_advance(struct mrc_txtrack *t, struct mrc_psn cack)
{
    MRC_ASSERT(mrc_psn_diff(cack, t->max_sent) <= 0);
    for (;;) {
        const struct mrc_psn psn = mrc_psn_add(t->unack, 1);
        struct mrc_slot *s = mrc_txtrack_slot(t, psn);
        const bool acked = s->state == MRC_SLOT_ACKED && s->psn == psn.v;
        MRC_ASSERT(acked || !mrc_psn_after(cack, t->unack));
        if (!acked)
            break;
        t->unack = psn;
        s->state = MRC_SLOT_FREE;
        t->acked_count--;
        if (s->ar)
            t->ar_passed = t->unack;
    }
}

uint32_t mrc_txtrack_take(struct mrc_txtrack *t, struct mrc_psn cack, const struct mrc_slot **last)
{
    uint32_t i = (t->unack.v + 1) & t->mask;
    struct mrc_slot *s = &t->slot[i];
    const int32_t upto = mrc_psn_diff(cack, t->unack);
    if (upto <= 0 || s->state != MRC_SLOT_INFLIGHT || t->head != i || s->rtx != 0)
        return 0;
    struct mrc_ev_sent *const e = &t->ev[s->ev];
    MRC_ASSERT(e->head[s->cls] == i);
    uint32_t n = 1;
    uint32_t ar = s->ar ? 1 : 0; /* the last that has one */
    s->state = MRC_SLOT_FREE;
    const uint32_t most = mrc_min32((uint32_t)upto, t->mask + 1 - i); /* where the ring ends */
    for (; n < most && s->next == ++i && s[1].joined; n++) {
        s++;
        s->state = MRC_SLOT_FREE;
        ar = s->ar ? n + 1 : ar;
    }
    MRC_ASSERT(t->inflight_count >= n);
    t->inflight_count -= n;
    tx_heads(t, e, s);
    tx_note_arrival(t, s);
    if (ar > 0)
        t->ar_passed = mrc_psn_add(t->unack, (int32_t)ar);
    t->unack = mrc_psn(s->psn);
    *last = s;
    return n;
}

void mrc_txtrack_lose(struct mrc_txtrack *t, struct mrc_slot *s)
{
    MRC_ASSERT(s->state == MRC_SLOT_INFLIGHT);
    tx_unlink(t, s);
    s->state = MRC_SLOT_LOST;
    mrc_bits_set(&t->lost, s->psn);
    t->lost_count++;
}

bool mrc_txtrack_next_lost(const struct mrc_txtrack *t, struct mrc_psn *psn)
{
    if (t->lost_count == 0)
        return false;
    const struct mrc_psn from = mrc_psn_add(t->unack, 1);
    const uint32_t span = (uint32_t)mrc_psn_diff(t->max_sent, t->unack);
    const uint32_t skip = mrc_bits_next(&t->lost, from.v, span);
    MRC_ASSERT(skip < span);
    *psn = mrc_psn_add(from, (int32_t)skip);
    return true;
}
