/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_rxtrack.h"

/* H8: within this distance beyond the window a sender may be honest (its window shrank). */
enum { MRC_RX_NACK_REACH = 1 << 22 };

size_t mrc_rxtrack_bytes(uint32_t window_max)
{
    return 4 * mrc_bits_bytes(mrc_bits_capacity(window_max));
}

void mrc_rxtrack_init(struct mrc_rxtrack *t, void *mem, uint32_t window_max)
{
    const uint32_t cap = mrc_bits_capacity(window_max);
    uint8_t *m = mem;
    memset(t, 0, sizeof *t);
    t->capacity = cap;
    mrc_bits_init(&t->got, m, cap);
    mrc_bits_init(&t->ar, m + mrc_bits_bytes(cap), cap);
    mrc_bits_init(&t->last, m + 2 * mrc_bits_bytes(cap), cap);
    mrc_bits_init(&t->news, m + 3 * mrc_bits_bytes(cap), cap);
}

void mrc_rxtrack_start(struct mrc_rxtrack *t, struct mrc_psn rq_psn, uint32_t window)
{
    MRC_ASSERT(window >= 1 && window <= t->capacity);
    mrc_bits_init(&t->got, t->got.word, t->capacity);
    mrc_bits_init(&t->ar, t->ar.word, t->capacity);
    mrc_bits_init(&t->last, t->last.word, t->capacity);
    mrc_bits_init(&t->news, t->news.word, t->capacity);
    t->cack = mrc_psn_add(rq_psn, -1);
    t->max_rcv = t->cack;
    t->unsacked = rq_psn;
    t->message = rq_psn;
    t->window = window;
    t->target = window;
    t->ooo_count = 0;
    t->news_count = 0;
    t->rcvd_bytes = 0;
}

void mrc_rxtrack_resize(struct mrc_rxtrack *t, uint32_t window)
{
    MRC_ASSERT(window >= 1 && window <= t->capacity);
    t->target = window;
    if (window > t->window)
        t->window = window;
}

/* cack has moved by psns: the right edge moves only when the window that was last given reaches
 * beyond it. */
static void rx_slide(struct mrc_rxtrack *t, uint32_t psns)
{
    const uint32_t left = t->window > psns ? t->window - psns : 0;
    t->window = left > t->target ? left : t->target;
}

enum mrc_rx_verdict mrc_rxtrack_classify(const struct mrc_rxtrack *t, struct mrc_psn psn)
{
    const int32_t e = mrc_psn_diff(psn, t->cack);
    if (e <= 0)
        return -e <= MRC_RX_NACK_REACH ? MRC_RX_DUPLICATE : MRC_RX_STALE;
    if (e > (int32_t)t->window)
        return e - (int32_t)t->window < MRC_RX_NACK_REACH ? MRC_RX_OOR_WINDOW : MRC_RX_STALE;
    return mrc_bits_test(&t->got, psn.v) ? MRC_RX_DUPLICATE : MRC_RX_NEW;
}

void mrc_rxtrack_next(struct mrc_rxtrack *t, uint32_t nominal_bytes)
{
    const struct mrc_psn psn = mrc_psn_add(t->cack, 1);
    t->rcvd_bytes += nominal_bytes;
    t->cack = psn;
    t->max_rcv = psn;
    t->unsacked = mrc_psn_add(psn, 1);
    if (t->window != t->target)
        rx_slide(t, 1);
}

/* Nothing is out of order, so no bit is set and none has to be. */
static struct mrc_rx_advance rx_accept_in_order(struct mrc_rxtrack *t, uint32_t nominal_bytes,
                                                bool ar, bool last)
{
    const struct mrc_rx_advance adv = {1, last ? 1 : 0, ar};
    mrc_rxtrack_next(t, nominal_bytes);
    if (last)
        t->message = t->unsacked;
    return adv;
}

void mrc_rxtrack_mark(struct mrc_rxtrack *t, struct mrc_psn psn, uint32_t nominal_bytes, bool ar,
                      bool last)
{
    MRC_ASSERT(mrc_rxtrack_classify(t, psn) == MRC_RX_NEW);
    mrc_bits_set(&t->got, psn.v);
    if (ar)
        mrc_bits_set(&t->ar, psn.v);
    if (last)
        mrc_bits_set(&t->last, psn.v);
    t->rcvd_bytes += nominal_bytes;
    if (mrc_psn_after(psn, t->max_rcv))
        t->max_rcv = psn;
    if (mrc_psn_diff(psn, t->cack) == 1)
        return;
    t->ooo_count++;
    t->news_count++;
    mrc_bits_set(&t->news, psn.v);
    if (mrc_psn_after(t->unsacked, psn))
        t->unsacked = psn;
}

uint32_t mrc_rxtrack_run(const struct mrc_rxtrack *t)
{
    return mrc_bits_run(&t->got, mrc_psn_add(t->cack, 1).v, t->window);
}

struct mrc_psn mrc_rxtrack_message(const struct mrc_rxtrack *t, struct mrc_psn psn)
{
    const uint32_t before = (uint32_t)mrc_psn_diff(psn, t->cack) - 1;
    const uint32_t down = mrc_bits_prev(&t->last, psn.v - 1, before);
    return down == before ? t->message : mrc_psn_add(psn, -(int32_t)down);
}

struct mrc_rx_advance mrc_rxtrack_advance(struct mrc_rxtrack *t)
{
    const struct mrc_psn first = mrc_psn_add(t->cack, 1);
    const uint32_t run = mrc_rxtrack_run(t);
    struct mrc_rx_advance adv = {run, 0, false};
    if (run == 0)
        return adv;
    t->cack = mrc_psn_add(t->cack, (int32_t)run);
    const uint32_t down = mrc_bits_prev(&t->last, t->cack.v, run);
    if (down != run)
        t->message = mrc_psn_add(t->cack, 1 - (int32_t)down);
    mrc_bits_take(&t->got, first.v, run);
    adv.ar_passed = mrc_bits_take(&t->ar, first.v, run) > 0;
    adv.messages = mrc_bits_take(&t->last, first.v, run);
    if (t->news_count > 0)
        t->news_count -= mrc_bits_take(&t->news, first.v, run);
    t->ooo_count -= run - 1;
    if (!mrc_psn_after(t->unsacked, t->cack))
        t->unsacked = mrc_psn_add(t->cack, 1);
    if (t->window != t->target)
        rx_slide(t, run);
    return adv;
}

void mrc_rxtrack_ask(struct mrc_rxtrack *t, struct mrc_psn psn) { mrc_bits_set(&t->ar, psn.v); }

struct mrc_rx_advance mrc_rxtrack_accept(struct mrc_rxtrack *t, struct mrc_psn psn,
                                         uint32_t nominal_bytes, bool ar, bool last)
{
    MRC_ASSERT(mrc_rxtrack_classify(t, psn) == MRC_RX_NEW);
    if (mrc_rxtrack_is_next(t, psn))
        return rx_accept_in_order(t, nominal_bytes, ar, last);
    const struct mrc_rx_advance still = {0, 0, false};
    const bool next = mrc_psn_diff(psn, t->cack) == 1;
    mrc_rxtrack_mark(t, psn, nominal_bytes, ar, last);
    return next ? mrc_rxtrack_advance(t) : still;
}

/* MRC B.4, H36: from cack+1 while everything fits in 64 bits; else from the lowest PSN that no SACK
 * has reported, but not so high that the newest arrival falls out. The SACKs of a window wider than
 * 64 PSNs so walk over all of it, once: were a late arrival to start another walk over what was
 * told already, one small packet would be answered by a hundred. */
struct mrc_sack_map mrc_rxtrack_sack(struct mrc_rxtrack *t)
{
    struct mrc_sack_map map = {1, 0, false};
    const int32_t span = mrc_psn_diff(t->max_rcv, t->cack);
    if (span <= 0)
        return map;
    int32_t base = 1;
    if (span > 64) {
        base = span - 63;
        if (t->news_count > 0) {
            const int32_t from = mrc_psn_diff(t->unsacked, t->cack);
            const uint32_t left = (uint32_t)(span - from + 1);
            const int32_t lowest = from + (int32_t)mrc_bits_next(&t->news, t->unsacked.v, left);
            base = lowest < base ? lowest : base;
        }
    }
    const struct mrc_psn first = mrc_psn_add(t->cack, base);
    const uint32_t covered = mrc_min32(64, (uint32_t)(span - base + 1));
    map.offset = (int16_t)base;
    map.bitmap = mrc_bits_export64(&t->got, first.v);
    /* Bits above max_rcv: the ring may be smaller than base + 63 and show low PSNs again. */
    map.bitmap &= ~(uint64_t)0 >> (64 - covered);
    if (t->news_count > 0)
        t->news_count -= mrc_bits_take(&t->news, first.v, covered);
    const struct mrc_psn next = mrc_psn_add(first, (int32_t)covered);
    if (mrc_psn_after(next, t->unsacked))
        t->unsacked = next;
    map.more = t->news_count > 0;
    return map;
}

uint32_t mrc_rxtrack_rcvd_units(const struct mrc_rxtrack *t)
{
    return (uint32_t)((t->rcvd_bytes + 255) / 256) & 0xFFFFFF;
}
