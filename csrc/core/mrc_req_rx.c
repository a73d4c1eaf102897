/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester, feedback: SACK (B.5), round trips (E.7), NACK (B.7), transport ACK (B.6). */
#include "mrc_req.h"

/* rcvd_bytes says more than was in flight only through rounding and late originals. Below this the
 * share in flight never falls, or one lie after the other would open the window without end. */
enum { MRC_RCVD_SLACK_BYTES = 1 << 16 };

/* ---- newly received packets ---- */

/* True when that was news. echo: the SACK was triggered by this very packet, being a
 * retransmission. */
static bool req_received(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_psn psn,
                         bool echo)
{
    const struct mrc_slot *s = mrc_txtrack_slot(&r->tx, psn);
    if (!mrc_txtrack_ack(&r->tx, psn, echo))
        return false;
    if (s->rtx == 0 || (echo && s->rtx == 1)) { /* nothing else can have been acknowledged */
        mrc_req_report_time(r, c->now - s->sent_ns, 1);
        mrc_path_size_passed(c->path, s->ev, s->nominal);
    }
    mrc_txtrack_touch(&r->tx, s->ev);
    return true;
}

/* Most packets are acknowledged in the order in which they left, by the train. */
static uint32_t req_received_trains(struct mrc_req *r, const struct mrc_req_ctx *c,
                                    struct mrc_psn cack)
{
    const struct mrc_slot *s;
    struct mrc_psn before;
    uint32_t news = 0;
    do {
        for (uint32_t n; (n = mrc_txtrack_take(&r->tx, cack, &s)) > 0; news += n) {
            mrc_req_report_time(r, c->now - s->sent_ns, n);
            mrc_path_sizes_passed(c->path, s->ev, s->nominal, n);
            mrc_txtrack_touch(&r->tx, s->ev);
        }
        before = r->tx.unack;
        mrc_txtrack_advance(&r->tx, before); /* past what was known already */
    } while (!mrc_psn_eq(before, r->tx.unack));
    return news;
}

/* Everything up to cack has arrived. Returns how many of them are news. */
static uint32_t req_received_upto(struct mrc_req *r, const struct mrc_req_ctx *c,
                                  struct mrc_psn cack, struct mrc_psn echo_psn, bool echo)
{
    uint32_t news = req_received_trains(r, c, cack);
    for (struct mrc_psn p = mrc_psn_add(r->tx.unack, 1); mrc_psn_diff(p, cack) <= 0;
         p = mrc_psn_add(p, 1))
        news += req_received(r, c, p, echo && mrc_psn_eq(p, echo_psn)) ? 1 : 0;
    mrc_txtrack_advance(&r->tx, cack);
    return news;
}

/* ---- SACK ---- */

struct req_sack {
    struct mrc_psn cack;
    struct mrc_psn ack; /* the packet that triggered it; meaningless when pr */
    struct mrc_psn base;
    uint64_t bitmap;
    bool old; /* made before one that was seen already: only its positive bits count */
    bool echo;
};

/* No PSN that was never sent may be acknowledged. */
static bool req_sack_sane(const struct mrc_req *r, const struct mrc_pkt *p,
                          const struct req_sack *k)
{
    if (mrc_psn_after(k->cack, r->tx.max_sent))
        return false;
    if (mrc_psn_diff(r->tx.unack, k->cack) > (1 << 16))
        return false; /* of a former life of this QP number */
    if (!p->pr && mrc_psn_after(k->ack, r->tx.max_sent))
        return false;
    if (k->bitmap == 0)
        return true;
    const int top = 63 - __builtin_clzll(k->bitmap);
    return !mrc_psn_after(mrc_psn_add(k->base, top), r->tx.max_sent);
}

/* The peer counts what it has above cack. When we know as many, we know them all, and whatever else
 * is in flight had not arrived when the SACK was made. When we know fewer, a SACK was lost or the
 * next part of the window is still to come; then only what the bitmap covers is certain. */
static struct mrc_req_view req_view(const struct mrc_req *r, const struct mrc_pkt *p,
                                    const struct req_sack *k)
{
    struct mrc_req_view v = {.base = k->base, .bitmap = k->bitmap, .top = -1};
    if (k->bitmap != 0)
        v.top = 63 - __builtin_clzll(k->bitmap);
    v.ooo = p->ooo_count;
    v.complete = p->ooo_count < 0x7FFF && p->ooo_count == r->tx.acked_count;
    return v;
}

/* ---- round trips (E.7) ---- */

enum { MRC_TICK_TURN = 1 << 16 }; /* a timestamp repeats after 8.4 ms */

/* One transmission, and its answer: the time between, less what the peer says it took itself (it
 * adds that to the timestamp it reflects, H11: `stamped`, where it said it would). A turn of the
 * counter later that can no longer be told. */
static mrc_ns req_rtt_of(mrc_ns sent_ns, mrc_ns now, bool stamped, uint16_t stamp)
{
    const mrc_ns took = now - sent_ns;
    const mrc_ns dwell = (mrc_ns)(uint16_t)(stamp - (uint16_t)mrc_tick(sent_ns)) * 128;
    return stamped && took < (mrc_ns)MRC_TICK_TURN * 128 && dwell <= took ? took - dwell : took;
}

/* How long ago, in ticks, the copy left that this reflected timestamp is of. False: the oldest copy
 * is older than a turn of the counter, so it may be any; or it is of none. */
static bool req_stamp_age(const struct mrc_req *r, const struct mrc_slot *s, mrc_ns now,
                          uint16_t stamp, uint32_t *ticks)
{
    const uint64_t oldest = (uint64_t)mrc_tick(now) - s->first_tick;
    *ticks = (uint16_t)((uint16_t)mrc_tick(now) - stamp);
    return r->timestamps && oldest < MRC_TICK_TURN && *ticks <= oldest;
}

/* The sample that a SACK gives, if it is the first to report the packet that triggered it: a copy
 * of a SACK would only add the time by which it is late. Of one transmission the send-time table
 * knows the answer to the nanosecond; which of several was answered, only a timestamp tells. *ev:
 * whose sample it is. */
static bool req_rtt(const struct mrc_req *r, const struct mrc_req_ctx *c, const struct mrc_pkt *p,
                    const struct req_sack *k, bool ack_is_news, mrc_ns *rtt, uint16_t *ev)
{
    const struct mrc_slot *s = &r->tx.slot[k->ack.v & r->tx.mask];
    uint32_t ticks;
    if (p->pr || !ack_is_news || s->psn != k->ack.v || c->now < s->sent_ns)
        return false;
    if ((s->rtx == 0 && !p->rtx) || (s->rtx == 1 && p->rtx)) {
        *rtt = req_rtt_of(s->sent_ns, c->now, r->timestamps && c->service_time, p->tx_timestamp);
        *ev = s->ev;
        return true;
    }
    if (s->rtx == 0 || !req_stamp_age(r, s, c->now, p->tx_timestamp, &ticks))
        return false;
    *rtt = (mrc_ns)ticks * 128;
    *ev = mrc_path_find(c->path, p->entropy);
    return true;
}

/* Newly received bytes as the peer counts them (B.1, E.1). */
static uint32_t req_new_bytes(struct mrc_req *r, const struct mrc_pkt *p, bool *old)
{
    const int32_t delta = (int32_t)((p->rcvd_bytes - r->prev_rcvd) << 8) >> 8;
    *old = delta < 0;
    if (delta <= 0)
        return 0;
    r->prev_rcvd = p->rcvd_bytes;
    const int64_t most = r->inflight + MRC_RCVD_SLACK_BYTES;
    if (most <= 0)
        return 0;
    return (uint32_t)mrc_min64((uint64_t)delta * 256, (uint64_t)most);
}

/* What the SACK says about EVs: the mark of the reflected one, the answer to a probe. */
static void req_sack_paths(struct mrc_req *r, const struct mrc_req_ctx *c, const struct mrc_pkt *p)
{
    if (p->mark != MRC_MARK_NONE) {
        c->stats->ecn_marks += p->mark == MRC_MARK_SKIP ? 1 : 0;
        mrc_path_on_mark(c->path, mrc_path_find(c->path, p->entropy), p->mark, c->now);
    }
    if (!p->pr)
        return;
    if ((p->probe_id & MRC_PROBE_ID_TAIL) == 0) {
        mrc_path_on_probe(c->path, p->probe_id, p->mark, c->now);
        return;
    }
    for (uint32_t i = 0; i < MRC_PROBE_RING; i++) {
        struct mrc_req_probe *rec = &r->probes[i];
        if (rec->sent_ns == 0 || rec->id != p->probe_id)
            continue;
        const struct mrc_req_probe probe = *rec;
        const mrc_ns rtt = req_rtt_of(probe.sent_ns, c->now, c->service_time, p->tx_timestamp);
        rec->sent_ns = 0;
        mrc_path_on_answer(c->path, probe.ev, p->mark, c->now);
        if (probe.base) {
            mrc_cc_on_base_rtt(c->cc, rtt);
        } else {
            mrc_path_on_rtt(c->path, probe.ev, rtt);
            mrc_req_probe_answered(r, c, probe.sent_ns);
        }
        return;
    }
}

/* The packet that triggered the SACK came by the EV it tells, whatever became of other copies. */
static void req_came_by(const struct mrc_req *r, const struct mrc_req_ctx *c,
                        const struct mrc_pkt *p, const struct req_sack *k)
{
    const struct mrc_slot *s = &r->tx.slot[k->ack.v & r->tx.mask];
    const bool known = s->state != MRC_SLOT_FREE && s->psn == k->ack.v;
    if (!p->pr && (!known || s->rtx > 0))
        mrc_path_size_passed(c->path, mrc_path_find(c->path, p->entropy),
                             known ? s->nominal : UINT32_MAX);
}

/* Positive information. Returns how many packets are news; *ack_news: the trigger is one of them.
 */
static uint32_t req_sack_positive(struct mrc_req *r, const struct mrc_req_ctx *c,
                                  const struct mrc_pkt *p, const struct req_sack *k, bool *ack_news)
{
    uint32_t news = 0;
    *ack_news = false;
    if (!p->pr && mrc_psn_after(k->ack, r->tx.unack)) {
        struct mrc_slot *s = mrc_txtrack_find(&r->tx, k->ack);
        /* The original of a packet that was sent again has arrived: the copy was spurious. */
        if (s != NULL && s->rtx > 0 && !k->echo && s->state != MRC_SLOT_ACKED)
            r->tx.spurious++;
        if (s != NULL && s->state == MRC_SLOT_INFLIGHT && s->rtx == 0 &&
            !mrc_psn_after(k->ack, k->cack)) {
            *ack_news = true; /* it comes with the others up to cack, by the train */
        } else {
            *ack_news = req_received(r, c, k->ack, k->echo);
            news += *ack_news ? 1 : 0;
        }
    }
    for (uint64_t b = k->bitmap; b != 0; b &= b - 1) {
        const struct mrc_psn psn = mrc_psn_add(k->base, __builtin_ctzll(b));
        if (mrc_psn_after(psn, r->tx.unack))
            news += req_received(r, c, psn, false) ? 1 : 0;
    }
    return news + req_received_upto(r, c, k->cack, k->ack, k->echo);
}

/* B.12: the peer's window as it is now; 0 is no news. What is out beyond a smaller one stays out;
 * req_new_allowed and mrc_req_tx hold back the rest. */
static void req_mpr(struct mrc_req *r, const struct mrc_req_ctx *c, const struct mrc_pkt *p)
{
    if (!c->dynamic_mpr || p->mpr == 0)
        return;
    const uint32_t window = (uint32_t)p->mpr * MRC_MPR_UNIT;
    r->window = mrc_min32(window, r->window_own);
}

enum mrc_wc_status mrc_req_sack(struct mrc_req *r, const struct mrc_req_ctx *c,
                                const struct mrc_pkt *p)
{
    struct req_sack k = {.cack = mrc_psn(p->cack_psn), .bitmap = p->sack_bitmap};
    k.ack = p->pr ? k.cack : mrc_psn_add(k.cack, p->ack_psn_offset);
    k.base = mrc_psn_add(k.cack, p->sack_offset);
    k.echo = p->rtx && !p->pr;
    if (!req_sack_sane(r, p, &k)) {
        c->env->drops[MRC_DROP_SACK_RANGE]++;
        return MRC_WC_SUCCESS;
    }
    c->stats->sacks_received++;
    mrc_req_unpark(r, c);
    const bool cack_old = mrc_psn_diff(k.cack, r->tx.unack) < 0;
    const struct mrc_psn before = r->tx.unack;
    bool ack_news;
    const mrc_ns report_max_ns = r->report_max_ns;
    req_came_by(r, c, p, &k);
    const uint32_t news = req_sack_positive(r, c, p, &k, &ack_news);
    if (p->pr) /* we had to ask: that is not how long a report takes by itself */
        r->report_max_ns = report_max_ns;

    struct mrc_cc_sack s = {.now = c->now, .marked = p->mark == MRC_MARK_SKIP};
    s.new_bytes = cack_old ? 0 : req_new_bytes(r, p, &k.old);
    s.penalty = p->rcv_cwnd_pen;
    s.restore = p->restore_cwnd;
    uint16_t rtt_ev = MRC_EV_NONE;
    s.rtt_valid = req_rtt(r, c, p, &k, ack_news, &s.rtt_ns, &rtt_ev);
    r->inflight -= s.new_bytes;
    mrc_cc_on_sack(c->cc, &s);
    if (s.rtt_valid) {
        mrc_path_on_rtt(c->path, rtt_ev, s.rtt_ns);
        r->srtt_ns = r->srtt_ns == 0 ? s.rtt_ns : r->srtt_ns - r->srtt_ns / 16 + s.rtt_ns / 16;
    }
    if (mrc_cc_wants_base_rtt(c->cc))
        r->base_probe_due = true;
    if (!cack_old && !k.old)
        req_mpr(r, c, p);
    if (news > 0 || !mrc_psn_eq(before, r->tx.unack))
        mrc_req_progress(r, c->now);
    if (news > 0)
        mrc_req_room_news(r, news);
    req_sack_paths(r, c, p);
    if (!cack_old && !k.old && !c->in_order) {
        const struct mrc_req_view v = req_view(r, p, &k);
        mrc_req_infer(r, c, &v);
    }
    mrc_req_rearm(r, c);
    return MRC_WC_SUCCESS;
}

/* ---- NACK ---- */

/* Is the NACK about the last transmission of the packet? Not when it names another EV, or when its
 * timestamp is of an earlier copy. And a packet that was sent again is not sent once more before
 * the refusal of that copy can have come back: a peer that refuses everything at once would have
 * one packet of us for every one of its own (field report 21). */
static bool req_nack_is_news(const struct mrc_req *r, const struct mrc_req_ctx *c,
                             const struct mrc_pkt *p, const struct mrc_slot *s)
{
    uint32_t ticks;
    if (mrc_path_find(c->path, p->entropy) != s->ev)
        return false;
    if (s->rtx == 0)
        return true;
    if (req_stamp_age(r, s, c->now, p->tx_timestamp, &ticks) &&
        ticks > mrc_tick(c->now) - mrc_tick(s->sent_ns))
        return false;
    const mrc_ns base = mrc_cc_base_rtt(c->cc);
    /* A little less than the shortest: one packet alone may be quicker than all reports so far. */
    const mrc_ns quick = r->report_min_ns - r->report_min_ns / 8;
    return c->now - s->sent_ns >= mrc_max64(mrc_min64(quick, base), base / 16);
}

static bool req_nack_rtt(const struct mrc_req *r, const struct mrc_req_ctx *c,
                         const struct mrc_pkt *p, const struct mrc_slot *s, mrc_ns *rtt)
{
    uint32_t ticks;
    if (s->rtx <= 1) { /* that it names the EV says which one it was */
        *rtt = req_rtt_of(s->sent_ns, c->now, r->timestamps && c->service_time, p->tx_timestamp);
        return true;
    }
    if (!req_stamp_age(r, s, c->now, p->tx_timestamp, &ticks))
        return false;
    *rtt = (mrc_ns)ticks * 128;
    return true;
}

enum mrc_wc_status mrc_req_nack(struct mrc_req *r, const struct mrc_req_ctx *c,
                                const struct mrc_pkt *p)
{
    const struct mrc_psn psn = mrc_psn(p->cack_psn);
    const int32_t ahead = mrc_psn_diff(psn, r->tx.max_sent);
    if (ahead > 0 || ahead < -(1 << 16)) {
        c->env->drops[MRC_DROP_NACK_RANGE]++;
        return MRC_WC_SUCCESS;
    }
    c->stats->nacks_received++;
    if (p->nack_reason == MRC_NACK_UNEXP_EVENT)
        return MRC_WC_REM_OP_ERR;
    struct mrc_slot *s = mrc_txtrack_find(&r->tx, psn);
    if (s == NULL || s->state == MRC_SLOT_ACKED || !req_nack_is_news(r, c, p, s))
        return MRC_WC_SUCCESS;
    if (c->in_order)
        return mrc_req_gbn_nack(r, c, p, s);
    /* Reasons that nobody knows are taken for NO_RESOURCE (H10): sending again is always safe. */
    const bool trimmed =
        p->nack_reason == MRC_NACK_TRIMMED || p->nack_reason == MRC_NACK_TRIMMED_LASTHOP;
    if (!trimmed)
        mrc_req_room_short(r, c, psn);
    if (s->state == MRC_SLOT_LOST) /* taken for lost before: what there was to do is done */
        return trimmed ? MRC_WC_SUCCESS : mrc_req_nack_retry(r, c->now, mrc_cc_base_rtt(c->cc));
    mrc_req_unpark(r, c);
    mrc_ns rtt = 0;
    const bool rtt_valid = req_nack_rtt(r, c, p, s, &rtt);
    mrc_cc_on_nack(c->cc, s->nominal, trimmed, rtt_valid, rtt, c->now);
    r->inflight -= s->nominal;
    if (p->nack_reason == MRC_NACK_TRIMMED)
        mrc_path_on_trim(c->path, s->ev, c->now);
    mrc_txtrack_lose(&r->tx, s);
    return mrc_req_nack_retry(r, c->now, mrc_cc_base_rtt(c->cc));
}

/* ---- transport ACK and NAK ---- */

/* Complete, in posting order, what the cumulative PSN covers (B.13). False: the CQ is overrun. */
static bool req_complete_upto(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_psn psn)
{
    while (r->head != r->next) {
        const struct mrc_wqe *w = &r->sq[r->head & r->sq_mask];
        if (mrc_psn_after(mrc_wqe_last(w), psn))
            break;
        if ((w->flags & MRC_SEND_SIGNALED) != 0) {
            const struct mrc_wc wc = {.wr_id = w->wr_id,
                                      .qpn = c->peer->qpn,
                                      .byte_len = w->length,
                                      .status = MRC_WC_SUCCESS,
                                      .opcode = MRC_WC_RDMA_WRITE};
            if (!mrc_cq_push(&c->env->cqs, c->send_cq, &wc))
                return false;
        }
        if (w->length > 0)
            mrc_mr_find(&c->env->mrs, w->lkey, c->pd)->refs--;
        if (w->opcode == MRC_WR_RDMA_WRITE_WITH_IMM)
            r->wimm_out--;
        c->stats->bytes_acked += w->length;
        r->head++;
        r->ack_at = MRC_NEVER; /* the wait for the next one begins anew */
        r->ack_shift = 0;
        r->ack_retry = 0;
        r->retry = 0;
    }
    return true;
}

static enum mrc_wc_status req_nak_status(uint8_t syndrome)
{
    if (syndrome == MRC_AETH_NAK_INVALID_REQUEST)
        return MRC_WC_REM_INV_REQ_ERR;
    if (syndrome == MRC_AETH_NAK_REMOTE_ACCESS)
        return MRC_WC_REM_ACCESS_ERR;
    return MRC_WC_REM_OP_ERR;
}

enum mrc_wc_status mrc_req_ack(struct mrc_req *r, const struct mrc_req_ctx *c,
                               const struct mrc_pkt *p)
{
    const struct mrc_psn psn = mrc_psn(p->psn);
    const int32_t ahead = mrc_psn_diff(psn, r->tx.max_sent);
    if (ahead > 0 || ahead < -(1 << 22)) {
        c->env->drops[MRC_DROP_ACK_RANGE]++;
        return MRC_WC_SUCCESS;
    }
    const uint8_t kind = p->syndrome & 0x60;
    if (kind != 0 && kind != 0x60) { /* RNR and the reserved kind never occur (A.6) */
        c->env->drops[MRC_DROP_ACK_RANGE]++;
        return MRC_WC_SUCCESS;
    }
    c->stats->acks_received++;
    if (kind != 0) {
        /* What came before the refused packet was fine and completes as such. */
        const bool beyond = mrc_psn_after(psn, r->tx.unack);
        return req_complete_upto(r, c, beyond ? r->tx.unack : mrc_psn_add(psn, -1))
                   ? req_nak_status(p->syndrome)
                   : MRC_WC_LOC_QP_OP_ERR;
    }
    mrc_req_unpark(r, c);
    const uint32_t head = r->head;
    const bool news = mrc_psn_after(psn, r->tx.unack) && /* the SACK before it told as much */
                      req_received_upto(r, c, psn, psn, false) > 0;
    if (news)
        mrc_req_progress(r, c->now);
    if (!req_complete_upto(r, c, psn))
        return MRC_WC_LOC_QP_OP_ERR;
    if (news || r->head != head) /* one heard before does not quicken the probes of the tail */
        mrc_req_rearm(r, c);
    return MRC_WC_SUCCESS;
}
