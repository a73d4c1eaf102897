/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester, what is lost: by the order on each path, by age, by a probe's answer, by a gap that
 * has grown too wide (MRC B.10, B.11; ADR 30, 33, 70). */
#include "mrc_req.h"

enum {
    MRC_AGE_WALK_MAX = 64,       /* slots looked at by the age rule after one SACK */
    MRC_UNPROVEN_MAX = 256,      /* slots passed over without proof after one SACK */
    MRC_PROBE_WALK_MAX = 256,    /* slots looked at when a probe is answered */
    MRC_RECOVERY_WALK_MAX = 256, /* slots looked at by the recovery after one SACK */
    MRC_PROBE_REPAIRS = 4,       /* copies of a packet that probes alone may ask for */
};

static void req_forget(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_slot *s)
{
    mrc_req_unpark(r, c);
    mrc_txtrack_lose(&r->tx, s);
    mrc_cc_on_loss(c->cc, s->nominal, c->now);
    r->inflight -= s->nominal;
}

void mrc_req_lose(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_slot *s,
                  enum mrc_ev_reason why)
{
    req_forget(r, c, s);
    if (why != MRC_EV_R_SEND_ERROR)
        mrc_path_size_lost(c->path, s->ev, s->nominal);
    mrc_path_on_loss(c->path, s->ev, why, s->sent_ns, c->now);
    if (why == MRC_EV_R_LOSS)
        c->stats->losses_inferred++;
}

/* Lost on a path that has delivered a later packet: alive, at any rate. */
static void req_lose_gap(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_slot *s)
{
    req_forget(r, c, s);
    mrc_path_size_lost(c->path, s->ev, s->nominal);
    mrc_path_on_gap(c->path, s->ev, s->sent_ns, c->now);
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
                         const struct mrc_req_view *v, uint16_t ev, uint32_t cls, uint32_t *budget)
{
    const struct mrc_ev_sent *e = &r->tx.ev[ev];
    uint16_t i = e->head[cls];
    bool unproven = false;
    while (i != MRC_SLOT_NIL) {
        struct mrc_slot *s = &r->tx.slot[i];
        i = s->ev_next;
        if (!e->acked_any[cls] || e->acked_order[cls] <= s->order)
            break;
        if (req_proven_absent(r, v, s) || req_overdue(r, c, s)) {
            req_lose_gap(r, c, s);
            continue;
        }
        unproven = true;
        if (*budget == 0)
            break;
        --*budget;
    }
    return unproven;
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

/* ---- the gap that has grown too wide ---- */

static uint64_t req_packet_bytes(const struct mrc_req *r, const struct mrc_req_ctx *c)
{
    return mrc_nominal_bytes(mrc_data_hdr_len(MRC_OP_WRITE_MIDDLE, r->timestamps),
                             c->peer->path_mtu);
}

/* B.10, S17: ooo_count >= max(min(1.5 x cwnd, maxwnd), 5 x pkt) / pkt. Half of the PSN window
 * counts as a window too: a gap stops us there, however large cwnd is. */
static bool req_gap_is_loss(const struct mrc_req *r, const struct mrc_req_ctx *c, uint16_t ooo)
{
    const uint64_t pkt = req_packet_bytes(r, c);
    if (ooo < 5)
        return false;
    const uint64_t most = mrc_min64(mrc_cc_max_wnd(c->cc), (uint64_t)r->window * pkt / 2);
    const uint64_t cwnd = mrc_min64(mrc_cc_cwnd(c->cc), most);
    return (uint64_t)ooo * pkt >= mrc_min64(cwnd + cwnd / 2, most);
}

/* How late is too late in recovery: less than the age rule grants, because the gap speaks too; and
 * of a path that never reported, twice what the slowest of the others took. */
static mrc_ns req_recovery_margin(const struct mrc_req *r, const struct mrc_req_ctx *c, uint16_t ev)
{
    if (mrc_path_srtt(c->path, ev) != 0)
        return req_path_time(r, c, ev);
    return 2 * mrc_max64(r->report_max_ns, mrc_cc_base_rtt(c->cc) + mrc_cc_target_delay(c->cc));
}

static bool req_recovery_wants(const struct mrc_req *r, const struct mrc_req_ctx *c,
                               const struct mrc_req_view *v, const struct mrc_slot *s)
{
    if (r->recovery == MRC_RECOVERY_PLAIN)
        return true;
    return r->tx.newest_acked_ns > s->sent_ns &&
           r->tx.newest_acked_ns - s->sent_ns > req_recovery_margin(r, c, s->ev) &&
           (req_proven_absent(r, v, s) || req_overdue(r, c, s));
}

/* From there until unack reaches what was the last PSN then: what is missing within a window above
 * cack, and has not been sent again since, is lost. */
static void req_recover(struct mrc_req *r, const struct mrc_req_ctx *c,
                        const struct mrc_req_view *v)
{
    if (!r->recovering) {
        if (r->recovery == MRC_RECOVERY_OFF || !req_gap_is_loss(r, c, v->ooo))
            return;
        r->recovering = true;
        r->recovery_psn = r->tx.max_sent;
        r->recovery_order = r->tx.order;
    }
    const uint64_t reach = mrc_min64(mrc_cc_cwnd(c->cc) / req_packet_bytes(r, c), r->window);
    const struct mrc_psn edge = mrc_psn_add(r->tx.unack, (int32_t)mrc_max64(reach, 1));
    uint16_t i = r->tx.head;
    for (uint32_t n = 0; i != MRC_SLOT_NIL && n < MRC_RECOVERY_WALK_MAX; n++) {
        struct mrc_slot *s = &r->tx.slot[i];
        i = s->next;
        if (s->order > r->recovery_order)
            break;
        if (!mrc_psn_after(mrc_psn(s->psn), edge) && req_recovery_wants(r, c, v, s))
            mrc_req_lose(r, c, s, MRC_EV_R_LOSS);
    }
    if (mrc_psn_diff(r->tx.unack, r->recovery_psn) >= 0)
        r->recovering = false;
}

/* A peer that proves nothing must not make us walk the whole window for each of its packets: one
 * budget for all EVs, and those that it did not reach come first the next time. */
static void req_infer_touched(struct mrc_req *r, const struct mrc_req_ctx *c,
                              const struct mrc_req_view *v)
{
    uint32_t budget = MRC_UNPROVEN_MAX;
    uint16_t ev;
    for (uint32_t n = r->tx.touched_count; n > 0 && budget > 0; n--) {
        if (!mrc_txtrack_touched(&r->tx, &ev))
            break;
        const struct mrc_ev_sent *e = &r->tx.ev[ev];
        const bool first = e->head[0] != MRC_SLOT_NIL && req_infer_ev(r, c, v, ev, 0, &budget);
        const bool second = e->head[1] != MRC_SLOT_NIL && req_infer_ev(r, c, v, ev, 1, &budget);
        if (first || second)
            mrc_txtrack_touch(&r->tx, ev);
    }
}

void mrc_req_infer(struct mrc_req *r, const struct mrc_req_ctx *c, const struct mrc_req_view *v)
{
    req_infer_touched(r, c, v);
    req_infer_age(r, c, v);
    req_recover(r, c, v);
}

/* ---- what else tells of losses ---- */

/* B.11: the answer left the peer after the probe came in, so what left before the probe and has had
 * its path's normal time is lost. Repairs a lost tail in about two round trips. The first packets
 * on a path have no normal time to go by: there the answer's own round trip serves, if it was short
 * enough to say that nothing is queued. Answers to probes say nothing of data, which may never get
 * through (it is larger): copies of a packet that nobody ever reports end in waiting for the timer,
 * which spends the retries. */
static bool req_probe_may_lose(const struct mrc_req *r, const struct mrc_slot *s)
{
    return s->rtx < MRC_PROBE_REPAIRS || r->news_ns >= s->sent_ns;
}

void mrc_req_probe_answered(struct mrc_req *r, const struct mrc_req_ctx *c, mrc_ns sent_ns)
{
    const mrc_ns calm = mrc_cc_base_rtt(c->cc) + mrc_cc_target_delay(c->cc);
    const mrc_ns took = c->now - sent_ns;
    const mrc_ns floor = mrc_max64(calm, r->report_max_ns); /* its report may take another way */
    uint16_t i = r->tx.head;
    for (uint32_t n = 0; i != MRC_SLOT_NIL && n < MRC_PROBE_WALK_MAX; n++) {
        struct mrc_slot *s = &r->tx.slot[i];
        i = s->next;
        if (s->sent_ns >= sent_ns)
            return;
        const bool known = mrc_path_srtt(c->path, s->ev) != 0 || took > calm;
        const mrc_ns normal = known ? req_path_time(r, c, s->ev) : 2 * took;
        if (c->now - s->sent_ns > mrc_max64(floor, normal) && req_probe_may_lose(r, s))
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
