/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester, time: loss inference (B.10), local ACK timer and retry budget (B.9), tail probes
 * (B.11). */
#include "mrc_req.h"

enum {
    MRC_AGE_WALK_MAX = 64,   /* slots looked at by the age rule after one SACK */
    MRC_UNPROVEN_MAX = 256,  /* slots of one EV passed over without proof after one SACK */
    MRC_TICK_LOSE_MAX = 256, /* timed-out slots taken by one tick */
    MRC_PROBE_SHIFT_MAX = 8,
};
#define MRC_PROBE_FLOOR_NS (100 * MRC_USEC) /* software (B.11) */

/* ---- loss inference ---- */

void mrc_req_lose(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_slot *s,
                  enum mrc_ev_reason why)
{
    const uint16_t ev = s->ev;
    mrc_txtrack_lose(&r->tx, s);
    mrc_cc_on_loss(c->cc, s->nominal, c->now);
    r->inflight -= s->nominal;
    mrc_path_on_loss(c->path, ev, why, s->sent_ns, c->now);
    if (why == MRC_EV_R_LOSS)
        c->stats->losses_inferred++;
}

/* Normal time from departure to report on this EV; the RTT of a path is its own (field report 17).
 * Of a path that never reported nobody knows what is normal: there only the timer speaks. */
static mrc_ns req_path_time(const struct mrc_req *r, const struct mrc_req_ctx *c, uint16_t ev)
{
    const mrc_ns srtt = mrc_path_srtt(c->path, ev);
    return srtt != 0 ? srtt + 4 * mrc_path_rttvar(c->path, ev) : mrc_req_timeout_ns(r);
}

/* SACK-age rule: that much later than normal a report is no reordering between paths any more. */
static mrc_ns req_margin(const struct mrc_req *r, const struct mrc_req_ctx *c, uint16_t ev)
{
    const mrc_ns floor = mrc_cc_base_rtt(c->cc) + 4 * mrc_cc_target_delay(c->cc);
    return mrc_max64(floor, req_path_time(r, c, ev));
}

/* Does the report prove that this packet had not arrived when it was made? */
static bool req_proven_absent(const struct mrc_req *r, const struct mrc_req_view *v,
                              const struct mrc_slot *s)
{
    const struct mrc_psn psn = mrc_psn(s->psn);
    if (v->complete || mrc_psn_diff(psn, r->tx.unack) == 1) /* cack + 1 is missing by definition */
        return true;
    const int32_t bit = mrc_psn_diff(psn, v->base);
    return bit >= 0 && bit < v->top && ((v->bitmap >> bit) & 1u) == 0;
}

/* No proof, but so late that the report of its arrival must have been lost: twice what is normal,
 * and longer than any report took of late, whichever way it came back. */
static bool req_overdue(const struct mrc_req *r, const struct mrc_req_ctx *c,
                        const struct mrc_slot *s)
{
    return c->now - s->sent_ns > mrc_max64(2 * req_margin(r, c, s->ev), r->report_max_ns);
}

/* Packets of one EV and class stay in order: what left before the newest arrival on it and had not
 * arrived itself is lost; without proof of the latter only after a while. True: look again at the
 * next report. */
static bool req_infer_ev(struct mrc_req *r, const struct mrc_req_ctx *c,
                         const struct mrc_req_view *v, uint16_t ev, uint32_t cls)
{
    const struct mrc_ev_sent *e = &r->tx.ev[ev];
    uint16_t i = e->head[cls];
    uint32_t unproven = 0; /* a peer that proves nothing must not make us walk the whole window */
    while (i != MRC_SLOT_NIL && unproven < MRC_UNPROVEN_MAX) {
        struct mrc_slot *s = &r->tx.slot[i];
        i = s->ev_next;
        if (!e->acked_any[cls] || (int32_t)(e->acked_order[cls] - s->order) <= 0)
            break;
        if (req_proven_absent(r, v, s) || req_overdue(r, c, s))
            mrc_req_lose(r, c, s, MRC_EV_R_LOSS);
        else
            unproven++;
    }
    return unproven > 0;
}

/* A path that died reports nothing: what left long before something that has arrived elsewhere. */
static void req_infer_age(struct mrc_req *r, const struct mrc_req_ctx *c,
                          const struct mrc_req_view *v)
{
    const mrc_ns floor = mrc_cc_base_rtt(c->cc) + 4 * mrc_cc_target_delay(c->cc);
    uint16_t i = r->tx.head;
    for (uint32_t n = 0; i != MRC_SLOT_NIL && n < MRC_AGE_WALK_MAX; n++) {
        struct mrc_slot *s = &r->tx.slot[i];
        i = s->next;
        if (r->tx.newest_acked_ns <= s->sent_ns + floor)
            return; /* the list is in send order */
        const mrc_ns age = r->tx.newest_acked_ns - s->sent_ns;
        const mrc_ns margin = req_margin(r, c, s->ev);
        if (age > margin && (req_proven_absent(r, v, s) || req_overdue(r, c, s)))
            mrc_req_lose(r, c, s, MRC_EV_R_LOSS);
    }
}

void mrc_req_infer(struct mrc_req *r, const struct mrc_req_ctx *c, const struct mrc_req_view *v)
{
    uint16_t kept = 0;
    for (uint16_t n = 0; n < r->touched_count; n++) {
        const uint16_t ev = r->touched[n];
        const bool first = req_infer_ev(r, c, v, ev, 0);
        const bool second = req_infer_ev(r, c, v, ev, 1);
        r->tx.ev[ev].touched = first || second;
        if (first || second)
            r->touched[kept++] = ev;
    }
    r->touched_count = kept;
    req_infer_age(r, c, v);
}

/* B.11: the answer left the peer after the probe came in, so what left before the probe and has had
 * its path's normal time is lost. Repairs a lost tail in about two round trips. */
void mrc_req_probe_answered(struct mrc_req *r, const struct mrc_req_ctx *c, mrc_ns sent_ns)
{
    const mrc_ns rtt = mrc_cc_base_rtt(c->cc) + mrc_cc_target_delay(c->cc);
    const mrc_ns floor = mrc_max64(rtt, r->report_max_ns); /* its report may take another way */
    uint16_t i = r->tx.head;
    for (uint32_t n = 0; i != MRC_SLOT_NIL && n < MRC_TICK_LOSE_MAX; n++) {
        struct mrc_slot *s = &r->tx.slot[i];
        i = s->next;
        if (s->sent_ns >= sent_ns)
            return;
        if (c->now - s->sent_ns > mrc_max64(floor, req_path_time(r, c, s->ev)))
            mrc_req_lose(r, c, s, MRC_EV_R_LOSS);
    }
}

void mrc_req_ev_failed(struct mrc_req *r, const struct mrc_req_ctx *c, uint16_t ev)
{
    if (ev >= r->tx.ev_max)
        return;
    for (uint32_t cls = 0; cls < 2; cls++)
        while (r->tx.ev[ev].head[cls] != MRC_SLOT_NIL)
            mrc_req_lose(r, c, &r->tx.slot[r->tx.ev[ev].head[cls]], MRC_EV_R_SEND_ERROR);
}

/* ---- local ACK timer ---- */

/* B.9: T(i) = T0 x 2^max(0, i - linear_cnt), capped at 1.024 us x 2^24. T0 is what was configured,
 * but never less than the reports seen took: a timer that runs out before an answer can come sends
 * everything twice, and the queue that makes it too short only grows by that. */
mrc_ns mrc_req_timeout_ns(const struct mrc_req *r)
{
    const mrc_ns most = (mrc_ns)1024 << 24;
    const mrc_ns seen = r->report_max_ns + r->report_max_ns / 2;
    const mrc_ns base = mrc_min64(mrc_max64((mrc_ns)1024 << r->timeout, seen), most);
    const uint32_t shift = r->backoff > r->linear_cnt ? r->backoff - r->linear_cnt : 0;
    return mrc_min64(base << mrc_min32(shift, 24), most);
}

/* A decaying maximum over all paths (field report 17); it halves in about 45000 packets. */
void mrc_req_report_time(struct mrc_req *r, mrc_ns took_ns)
{
    r->report_max_ns = mrc_max64(took_ns, r->report_max_ns - r->report_max_ns / 65536);
}

enum mrc_wc_status mrc_req_spend_retry(struct mrc_req *r, mrc_ns now, mrc_ns pace_ns)
{
    if (now - r->retry_counted_ns < pace_ns)
        return MRC_WC_SUCCESS;
    r->retry_counted_ns = now;
    if (r->exp_cnt != 25 && r->retry >= (uint32_t)r->linear_cnt + r->exp_cnt)
        return MRC_WC_RETRY_EXC_ERR;
    if (r->retry < 64)
        r->retry++;
    return MRC_WC_SUCCESS;
}

/* A timeout: spend a retry and wait longer for the next answer. */
static enum mrc_wc_status req_timed_out(struct mrc_req *r, mrc_ns now, mrc_ns pace_ns)
{
    if (now - r->backoff_ns >= pace_ns && r->backoff < 64) {
        r->backoff++;
        r->backoff_ns = now;
    }
    return mrc_req_spend_retry(r, now, pace_ns);
}

/* The timer of a packet starts at its transmission; T is the QP's, so the oldest expires first. */
static mrc_ns req_timer(const struct mrc_req *r)
{
    if (r->tx.head == MRC_SLOT_NIL)
        return MRC_NEVER;
    return r->tx.slot[r->tx.head].sent_ns + mrc_req_timeout_ns(r);
}

mrc_ns mrc_req_deadline(const struct mrc_req *r)
{
    return mrc_min64(mrc_min64(req_timer(r), r->probe_at), r->ack_at);
}

/* All packets whose timer has run out, as one timeout event. */
static enum mrc_wc_status req_expire(struct mrc_req *r, const struct mrc_req_ctx *c)
{
    const mrc_ns t = mrc_req_timeout_ns(r);
    c->stats->timeouts++;
    for (uint32_t n = 0; n < MRC_TICK_LOSE_MAX && r->tx.head != MRC_SLOT_NIL; n++) {
        struct mrc_slot *s = &r->tx.slot[r->tx.head];
        if (s->sent_ns + t > c->now)
            break;
        mrc_req_lose(r, c, s, MRC_EV_R_TIMEOUT);
    }
    return req_timed_out(r, c->now, t / 2);
}

/* ---- tail probe, transport ACK ---- */

/* Interval until the next tail probe: short when nothing else will bring a SACK (B.11). */
static mrc_ns req_probe_interval(const struct mrc_req *r, const struct mrc_req_ctx *c)
{
    const mrc_ns rtt = mrc_cc_base_rtt(c->cc);
    const bool tail = r->next == r->tail && r->tx.lost_count == 0;
    mrc_ns t = tail ? rtt + mrc_cc_target_delay(c->cc) : 3 * rtt;
    if (r->probe_shift > 0)
        t = (5 * rtt) << (r->probe_shift - 1);
    return mrc_max64(t, MRC_PROBE_FLOOR_NS);
}

/* The transport ACK leaves right behind the SACK that said "all here", so its absence shows early;
 * asked for again ever more slowly, up to the local ACK timer (B.6, H16). */
static mrc_ns req_ack_interval(const struct mrc_req *r, const struct mrc_req_ctx *c)
{
    const mrc_ns t = mrc_cc_base_rtt(c->cc) + mrc_cc_target_delay(c->cc);
    return mrc_min64(mrc_max64(t, MRC_PROBE_FLOOR_NS) << r->ack_shift, mrc_req_timeout_ns(r));
}

void mrc_req_rearm(struct mrc_req *r, const struct mrc_req_ctx *c)
{
    r->probe_shift = 0;
    r->probe_at =
        mrc_txtrack_outstanding(&r->tx) > 0 ? c->now + req_probe_interval(r, c) : MRC_NEVER;
    if (mrc_txtrack_outstanding(&r->tx) == 0 && r->inflight != 0) {
        mrc_cc_release(c->cc, r->inflight);
        r->inflight = 0;
    }
    const struct mrc_wqe *w = &r->sq[r->head & r->sq_mask];
    const bool all_here = r->head != r->next && mrc_psn_diff(mrc_wqe_last(w), r->tx.unack) <= 0;
    if (!all_here)
        r->ack_at = MRC_NEVER;
    else if (r->ack_at == MRC_NEVER)
        r->ack_at = c->now + req_ack_interval(r, c);
    if (r->ack_at == MRC_NEVER)
        r->ack_shift = 0;
}

enum mrc_wc_status mrc_req_tick(struct mrc_req *r, const struct mrc_req_ctx *c)
{
    enum mrc_wc_status status = MRC_WC_SUCCESS;
    if (r->probe_at <= c->now) {
        r->probe_due = true;
        if (r->probe_shift < MRC_PROBE_SHIFT_MAX)
            r->probe_shift++;
        r->probe_at = c->now + req_probe_interval(r, c);
    }
    if (r->ack_at <= c->now) {
        r->ack_query_due = true;
        status = req_timed_out(r, c->now, mrc_req_timeout_ns(r) / 2);
        if (r->ack_shift < MRC_PROBE_SHIFT_MAX)
            r->ack_shift++;
        r->ack_at = c->now + req_ack_interval(r, c);
    }
    if (status == MRC_WC_SUCCESS && req_timer(r) <= c->now)
        status = req_expire(r, c);
    return status;
}
