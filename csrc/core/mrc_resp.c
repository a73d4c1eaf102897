/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_resp.h"

enum {
    MRC_SACK_FLOOR_BYTES = 1024,      /* per packet, so that many small ones trigger too (B.4) */
    MRC_SACK_THRESHOLD_BYTES = 16384, /* H7 */
    MRC_STALE_DUP_PERIOD = 64,        /* H35 */
};

/* ---- creation ---- */

size_t mrc_resp_bytes(uint32_t window_max, uint32_t rq_depth)
{
    return mrc_align(mrc_rxtrack_bytes(window_max)) +
           mrc_align(mrc_pow2(rq_depth) * sizeof(uint64_t));
}

void mrc_resp_init(struct mrc_resp *r, void *mem, uint32_t window_max, uint32_t rq_depth,
                   uint16_t wimm_max, uint64_t seed)
{
    uint8_t *m = mem;
    memset(r, 0, sizeof *r);
    mrc_rxtrack_init(&r->rx, m, window_max);
    m += mrc_align(mrc_rxtrack_bytes(window_max));
    r->rq = (uint64_t *)(void *)m;
    r->rq_mask = mrc_pow2(rq_depth) - 1;
    r->due = r->due_own;
    r->nack = r->nack_own;
    r->due_mask = MRC_DUE_OWN - 1;
    r->stash = r->stash_own;
    r->stash_max = wimm_max;
    mrc_path_cursor_init(&r->cursor, seed);
}

void mrc_resp_start(struct mrc_resp *r, struct mrc_psn rq_psn, uint32_t window,
                    uint32_t sack_threshold_bytes, uint16_t max_wimm_dest)
{
    MRC_ASSERT(r->lent == 0);
    mrc_rxtrack_start(&r->rx, rq_psn, window);
    r->due_head = r->due_tail = 0;
    r->nack_head = r->nack_tail = 0;
    r->ack_due = false;
    r->nak_due = false;
    r->nak_syndrome = 0;
    r->sack_trigger_bytes = 0;
    mrc_resp_set_threshold(r, sack_threshold_bytes);
    r->prev_ar = false;
    r->any_received = false;
    r->stale_duplicates = 0;
    r->msn_done = 0;
    r->stash_count = 0;
    r->max_wimm_dest = max_wimm_dest;
    r->rqmsn_done = 0;
    r->rqmsn_known = false;
    r->restore_left = 0;
    mrc_rxev_start(&r->rxev);
    r->gap_told = false;
}

void mrc_resp_release(struct mrc_resp *r, struct mrc_env *env)
{
    env->rx.ooo_used -= r->rx.ooo_count;
    env->rx.imm_used -= r->stash_count;
    r->stash_count = 0;
    mrc_resp_imm_narrow(r, env);
    mrc_resp_due_narrow(r, env);
}

void mrc_resp_set_threshold(struct mrc_resp *r, uint32_t bytes)
{
    r->sack_threshold_bytes = bytes != 0 ? bytes : MRC_SACK_THRESHOLD_BYTES;
}

/* ---- what becomes due ---- */

static bool resp_plain(const struct mrc_sack_due *d)
{
    return d->mark == MRC_MARK_NONE && !d->rtx && !d->pr;
}

/* A SACK is a snapshot taken when it leaves, so triggers of one burst share one, unless they carry
 * news of their own: a mark, a retransmission echo, a probe's answer. */
static inline void resp_sack_due(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                 const struct mrc_sack_due *d)
{
    struct mrc_sack_due *const newest = &r->due[(r->due_tail - 1) & r->due_mask];
    r->sack_trigger_bytes = 0;
    if (r->due_head != r->due_tail && resp_plain(newest) && !d->pr)
        *newest = *d;
    else
        mrc_resp_due_sack(r, c->env, d);
}

/* Only a timestamp whose unit is ours may be corrected by our dwell time (H22). */
static struct mrc_sack_due resp_trigger(const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                                        uint32_t ev, uint8_t mark)
{
    const struct mrc_sack_due d = {.psn = mrc_psn(p->psn),
                                   .ev = ev,
                                   .timestamp = p->tx_timestamp,
                                   .arrived = mrc_timestamp(c->now),
                                   .mark = mark,
                                   .rtx = p->rtx,
                                   .timed = p->ts && !p->tsr};
    return d;
}

void mrc_resp_nack(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                   uint32_t ev, uint8_t reason)
{
    const struct mrc_nack_due d = {.psn = mrc_psn(p->psn),
                                   .ev = ev,
                                   .timestamp = p->tx_timestamp,
                                   .arrived = mrc_timestamp(c->now),
                                   .reason = reason,
                                   .timed = (p->ts || p->opcode == MRC_OP_PROBE) && !p->tsr};
    mrc_resp_due_nack(r, c->env, &d);
}

/* From here on no transport ACK may leave: cack can have passed what is refused (field report
 * 44). */
enum mrc_resp_result mrc_resp_nak(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                  struct mrc_psn psn, uint8_t syndrome, uint32_t ev,
                                  enum mrc_drop why)
{
    c->env->drops[why]++;
    r->nak_syndrome = syndrome;
    r->nak_psn = psn;
    r->nak_due = true;
    r->ack_due = false;
    r->ack_ev = ev;
    return MRC_RESP_FATAL;
}

/* What the answer says of the EV: congested, to be avoided, or nothing. */
static uint8_t resp_mark(struct mrc_resp *r, uint32_t ev, bool ce)
{
    if (r->rxev.used != 0 && mrc_rxev_good(&r->rxev, ev))
        return MRC_MARK_ALWAYS_SKIP;
    return ce ? MRC_MARK_SKIP : MRC_MARK_NONE;
}

/* ---- the chain ---- */

/* B.3, e <= 0 or bit set: place nothing, count nothing, answer. */
static void resp_duplicate(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                           const struct mrc_pkt *p, uint32_t ev, uint8_t mark)
{
    const struct mrc_psn psn = mrc_psn(p->psn);
    c->stats->duplicates_received++;
    const bool far = mrc_psn_diff(r->rx.cack, psn) > (int32_t)r->rx.window;
    if (far && !p->a && r->stale_duplicates++ % MRC_STALE_DUP_PERIOD != 0)
        return; /* H35; with A it asks for a lost transport ACK, which must not fail (H16) */
    const struct mrc_sack_due d = resp_trigger(c, p, ev, mark);
    resp_sack_due(r, c, &d);
    if (!p->a)
        return;
    if (mrc_psn_after(psn, r->rx.cack)) { /* answered when cack gets there */
        mrc_rxtrack_ask(&r->rx, psn);
        return;
    }
    r->ack_due = true;
    r->ack_ev = ev;
}

static bool resp_payload_fits(const struct mrc_resp_ctx *c, const struct mrc_pkt *p)
{
    const uint8_t f = mrc_opcode_flags(p->opcode);
    const uint32_t mtu = c->peer->path_mtu;
    if ((f & MRC_OPF_LAST) == 0)
        return p->payload_len == mtu; /* A.1: all but the last carry exactly one path MTU */
    if ((f & MRC_OPF_FIRST) != 0)
        return p->payload_len <= mtu;
    return p->payload_len >= 1 && p->payload_len <= mtu;
}

/* B.4: the triggers, for a packet that was accepted. True: a SACK is due. */
static inline bool resp_triggers(struct mrc_resp *r, const struct mrc_pkt *p, uint8_t mark)
{
    bool due = p->a || mark != MRC_MARK_NONE || p->rtx || !r->any_received;
    const uint32_t bytes = MRC_BTH_LEN + p->payload_len;
    r->any_received = true;
    r->sack_trigger_bytes += bytes > MRC_SACK_FLOOR_BYTES ? bytes : MRC_SACK_FLOOR_BYTES;
    if (r->sack_trigger_bytes >= r->sack_threshold_bytes)
        due = true;
    if (r->prev_ar && r->rx.ooo_count == 0) { /* trigger 6: the gap behind an AR closed */
        due = true;
        r->prev_ar = false;
    }
    if (p->a && r->rx.ooo_count > 0)
        r->prev_ar = true;
    return due;
}

static inline void resp_ack_policy(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                   const struct mrc_pkt *p, uint32_t ev, uint8_t mark)
{
    if (!resp_triggers(r, p, mark))
        return;
    const struct mrc_sack_due d = resp_trigger(c, p, ev, mark);
    resp_sack_due(r, c, &d);
}

/* B.3, no room: what would be needed of which there is none. What comes next in order needs
 * neither a bit nor a place in the stash, so that however small the pools are, the gap below
 * everything they hold can be filled. False: counted and NACKed, the packet is forgotten. */
static bool resp_room(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                      uint32_t ev)
{
    const struct mrc_rxload *l = &c->env->rx;
    const bool next = mrc_psn_diff(mrc_psn(p->psn), r->rx.cack) == 1;
    const bool imm = (mrc_opcode_flags(p->opcode) & MRC_OPF_IMM) != 0;
    enum mrc_drop why;
    uint8_t reason;
    if (l->paused || c->attr->rx_paused != 0) {
        why = MRC_DROP_PAUSED;
        reason = MRC_NACK_NO_RESOURCE;
    } else if (!next && mrc_rxload_full(r->rx.ooo_count, l->ooo_used, l->ooo_max)) {
        why = MRC_DROP_NO_BITMAP;
        reason = MRC_NACK_NO_BITMAP;
    } else if (!next && imm && mrc_rxload_full(r->stash_count, l->imm_used, l->imm_max)) {
        why = MRC_DROP_NO_BUFFER;
        reason = MRC_NACK_NO_PKT_BUFFER;
    } else {
        return true;
    }
    c->env->drops[why]++;
    mrc_resp_nack(r, c, p, ev, reason);
    return false;
}

/* Where this packet may be stored; NULL: nowhere. */
static uint8_t *resp_target(const struct mrc_resp_ctx *c, const struct mrc_pkt *p)
{
    const struct mrc_mr *mr = mrc_mr_find(&c->env->mrs, p->r_key, c->pd);
    if ((c->attr->access & MRC_ACCESS_REMOTE_WRITE) == 0 || mr == NULL ||
        !mrc_mr_allows(mr, p->va, p->payload_len, MRC_ACCESS_REMOTE_WRITE))
        return NULL;
    return mrc_mr_at(mr, p->va);
}

/* Everything that says whether this packet may be stored, and where. It is checked before the
 * packet is recorded, so that nothing refused is ever reported (field report 44). False: *out says
 * whether that ends the QP. */
static bool resp_admit(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                       uint32_t ev, uint8_t **to, enum mrc_resp_result *out)
{
    *out = MRC_RESP_OK;
    if (!resp_payload_fits(c, p)) {
        c->env->drops[MRC_DROP_PAYLOAD]++;
        return false;
    }
    if (!resp_room(r, c, p, ev))
        return false;
    *to = resp_target(c, p);
    if (*to == NULL) {
        *out = mrc_resp_nak(r, c, mrc_psn(p->psn), MRC_AETH_NAK_REMOTE_ACCESS, ev, MRC_DROP_ACCESS);
        return false;
    }
    return (mrc_opcode_flags(p->opcode) & MRC_OPF_IMM) == 0 || mrc_resp_imm_admit(r, c, p, ev, out);
}

/* B.3: it has arrived. */
static struct mrc_rx_advance resp_record(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                         const struct mrc_pkt *p)
{
    const uint8_t f = mrc_opcode_flags(p->opcode);
    const struct mrc_psn psn = mrc_psn(p->psn);
    const uint32_t nominal = mrc_nominal_bytes(mrc_data_hdr_len(p->opcode, p->ts), p->payload_len);
    const uint32_t held = r->rx.ooo_count;
    struct mrc_rx_advance adv;
    if ((f & MRC_OPF_IMM) != 0)
        mrc_resp_imm_stash(r, c, p);
    if (r->stash_count > 0 && mrc_psn_diff(psn, r->rx.cack) == 1) {
        mrc_rxtrack_mark(&r->rx, psn, nominal, p->a, (f & MRC_OPF_LAST) != 0);
        mrc_resp_imm_measure(r, c);
        adv = mrc_rxtrack_advance(&r->rx);
    } else {
        adv = mrc_rxtrack_accept(&r->rx, psn, nominal, p->a, (f & MRC_OPF_LAST) != 0);
    }
    c->env->rx.ooo_used += r->rx.ooo_count - held;
    c->stats->packets_received++;
    c->stats->bytes_received += p->payload_len;
    if (adv.psns == 0)
        c->stats->ooo_received++;
    r->msn_done = (r->msn_done + adv.messages) & 0xFFFFFF;
    return adv;
}

/* Mode rc (ADR 95): the window is one PSN wide, and what is cut is not that one. */
static enum mrc_rx_verdict resp_verdict(const struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                        struct mrc_psn psn, bool cut)
{
    const enum mrc_rx_verdict v = mrc_rxtrack_classify(&r->rx, psn);
    const bool due = mrc_psn_diff(psn, r->rx.cack) == 1 && !cut;
    return v == MRC_RX_NEW && c->attr->mode == MRC_MODE_RC && !due ? MRC_RX_OOR_WINDOW : v;
}

/* Outside the window. In mode rc the answer names the PSN that is due, once. */
static void resp_beyond(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                        uint32_t ev)
{
    struct mrc_pkt about = *p;
    c->env->drops[MRC_DROP_PSN_WINDOW]++;
    if (c->attr->mode == MRC_MODE_RC) {
        const struct mrc_psn due = mrc_psn_add(r->rx.cack, 1);
        if (r->gap_told && mrc_psn_eq(r->gap_psn, due))
            return;
        r->gap_told = true;
        r->gap_psn = due;
        about.psn = due.v;
    }
    mrc_resp_nack(r, c, &about, ev, MRC_NACK_PSN_OOR_WINDOW);
}

enum mrc_resp_result mrc_resp_data(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                   const struct mrc_pkt *p, uint32_t ev, bool ce)
{
    if (ce)
        c->stats->ce_received++;
    switch (resp_verdict(r, c, mrc_psn(p->psn), false)) {
    case MRC_RX_STALE: c->env->drops[MRC_DROP_PSN_STALE]++; return MRC_RESP_OK;
    case MRC_RX_OOR_WINDOW: resp_beyond(r, c, p, ev); return MRC_RESP_OK;
    case MRC_RX_DUPLICATE: resp_duplicate(r, c, p, ev, resp_mark(r, ev, ce)); return MRC_RESP_OK;
    case MRC_RX_NEW: break;
    }
    enum mrc_resp_result result;
    uint8_t *to;
    if (!resp_admit(r, c, p, ev, &to, &result))
        return result;
    if (p->payload_len > 0)
        memcpy(to, p->payload, p->payload_len);
    const struct mrc_rx_advance adv = resp_record(r, c, p);
    if (adv.ar_passed) {
        r->ack_due = true;
        r->ack_ev = ev;
    }
    resp_ack_policy(r, c, p, ev, resp_mark(r, ev, ce));
    return adv.psns > 0 && r->stash_count > 0 ? mrc_resp_imm_deliver(r, c, ev) : MRC_RESP_OK;
}

/* Not the next one, but new, and there is room for it. */
static bool resp_above(const struct mrc_resp *r, const struct mrc_resp_ctx *c, struct mrc_psn psn)
{
    const struct mrc_rxload *l = &c->env->rx;
    return resp_verdict(r, c, psn, false) == MRC_RX_NEW &&
           (mrc_psn_diff(psn, r->rx.cack) == 1 ||
            !mrc_rxload_full(r->rx.ooo_count, l->ooo_used, l->ooo_max));
}

bool mrc_resp_middle(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                     uint32_t ev)
{
    const struct mrc_psn psn = mrc_psn(p->psn);
    if (r->stash_count > 0 || p->a || c->env->rx.paused || c->attr->rx_paused != 0 ||
        p->payload_len != c->peer->path_mtu)
        return false;
    const bool next = mrc_rxtrack_is_next(&r->rx, psn);
    if (!next && !resp_above(r, c, psn))
        return false;
    uint8_t *const to = resp_target(c, p);
    if (to == NULL)
        return false;
    memcpy(to, p->payload, p->payload_len);
    if (!next) {
        if (resp_record(r, c, p).ar_passed) {
            r->ack_due = true;
            r->ack_ev = ev;
        }
    } else {
        mrc_rxtrack_next(&r->rx, mrc_nominal_bytes(mrc_data_hdr_len(MRC_OP_WRITE_MIDDLE, p->ts),
                                                   p->payload_len));
        c->stats->packets_received++;
        c->stats->bytes_received += p->payload_len;
    }
    resp_ack_policy(r, c, p, ev, resp_mark(r, ev, false));
    return true;
}

void mrc_resp_trimmed(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                      uint32_t ev, bool lasthop)
{
    c->stats->trims_received++;
    switch (resp_verdict(r, c, mrc_psn(p->psn), true)) {
    case MRC_RX_STALE: c->env->drops[MRC_DROP_PSN_STALE]++; return;
    case MRC_RX_DUPLICATE: /* B.7: already here, so say that instead; its CE says nothing (H33) */
        resp_duplicate(r, c, p, ev, MRC_MARK_NONE);
        return;
    case MRC_RX_OOR_WINDOW: resp_beyond(r, c, p, ev); return;
    case MRC_RX_NEW:
        mrc_resp_nack(r, c, p, ev, lasthop ? MRC_NACK_TRIMMED_LASTHOP : MRC_NACK_TRIMMED);
        return;
    }
}

/* H29. Whoever can forge such a packet knows the QP number, the window and a key, and could as well
 * write into the region: he gains nothing here. */
void mrc_resp_broken(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                     uint32_t ev)
{
    const int32_t e = mrc_psn_diff(mrc_psn(p->psn), r->rx.cack);
    if (e > (int32_t)r->rx.window || e < -(int32_t)r->rx.window || !resp_payload_fits(c, p) ||
        resp_target(c, p) == NULL)
        return;
    mrc_rxev_bad(&r->rxev, ev, c->env->icrc_skip_percent);
}

void mrc_resp_probe(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                    uint32_t ev, bool ce)
{
    if (!mrc_resp_due_probe(r, c->env)) {
        c->env->drops[MRC_DROP_PROBE_RATE]++;
        return;
    }
    struct mrc_sack_due d = resp_trigger(c, p, ev, ce ? MRC_MARK_SKIP : MRC_MARK_NONE);
    d.psn = r->rx.cack; /* a probe has none */
    d.probe_id = p->probe_id;
    d.rtx = false;
    d.pr = true;
    d.timed = !p->tsr;
    resp_sack_due(r, c, &d);
}

void mrc_resp_refuse(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                     uint32_t ev)
{
    r->due_head = r->due_tail;
    if (r->nak_syndrome != 0) {
        r->nak_due = true;
        r->ack_ev = ev;
    } else if (r->nack_head == r->nack_tail) {
        struct mrc_pkt about = *p;
        if (p->opcode == MRC_OP_PROBE) /* has no PSN of its own; name one the peer knows */
            about.psn = r->rx.cack.v;
        mrc_resp_nack(r, c, &about, ev, MRC_NACK_UNEXP_EVENT);
    }
}
