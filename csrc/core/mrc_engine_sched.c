/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose turn it is to send (MRC E.5, figure 4). Turns go round the QPCCs that are READY, and inside
 * one round its QPs, those with packets to send again first; a turn is a train. A window that
 * closes or a burst that is full breaks a turn off, it goes on with the same QP. A QP held back by
 * MPR or the WIMM limit gives its turn to the next one of its QPCC.
 *
 * The four states are functions of a few counts; the counts are added up when somebody asks, not
 * for each packet. */
#include "mrc_engine_int.h"

/* ---- who may have something ---- */

static bool sched_urgent(const struct mrc_qp *q) { return mrc_req_urgent(&q->req); }

void mrc_sched_offer(struct mrc_engine *e, struct mrc_qp *q)
{
    struct mrc_cc_slot *s = &e->cc[q->attr.cc];
    const bool again = q->req.tx.lost_count > 0;
    if (sched_urgent(q))
        mrc_list_push(&e->urgent, &q->urgent);
    if (!mrc_sched_has_data(q))
        return;
    if (again && !q->again)
        mrc_list_remove(&q->data);
    if (mrc_list_empty(&q->data)) {
        q->again = again;
        mrc_list_push(again ? &s->again : &s->fresh, &q->data);
    }
    mrc_list_push(&e->ready, &s->ready);
}

static void sched_leave(struct mrc_qp *q)
{
    mrc_list_remove(&q->data);
    q->again = false;
    q->turn_left = 0;
}

void mrc_sched_withdraw(struct mrc_qp *q)
{
    sched_leave(q);
    mrc_list_remove(&q->urgent);
}

void mrc_sched_wake(struct mrc_engine *e, struct mrc_cc_slot *s)
{
    s->blocked = false;
    if (!mrc_list_empty(&s->again) || !mrc_list_empty(&s->fresh))
        mrc_list_push(&e->ready, &s->ready);
}

bool mrc_sched_pending(const struct mrc_engine *e)
{
    return !mrc_list_empty(&e->ready) || !mrc_list_empty(&e->urgent);
}

/* ---- figure 4 ---- */

int mrc_cc_query(const struct mrc_engine *e, uint32_t cc, struct mrc_cc_info *out)
{
    if (cc >= e->cfg.cc_max || e->cc[cc].cc == NULL)
        return MRC_ERR_NOENT;
    const struct mrc_cc_slot *s = &e->cc[cc];
    bool waiting = false;
    *out = (struct mrc_cc_info){.cwnd_bytes = mrc_cc_cwnd(s->cc),
                                .max_wnd_bytes = mrc_cc_max_wnd(s->cc),
                                .inflight_bytes = s->cc->inflight,
                                .base_rtt_ns = mrc_cc_shortest_rtt(s->cc),
                                .avg_delay_ns = mrc_cc_avg_delay(s->cc),
                                .qps = s->refs,
                                .kind = s->cc->cfg.kind};
    for (const struct mrc_link *l = s->users.next; l != &s->users; l = l->next) {
        const struct mrc_qp *q = MRC_LIST_OWNER(l, const struct mrc_qp, cc_link);
        if (q->attr.state != MRC_QPS_RTS)
            continue;
        const struct mrc_req_load load = mrc_req_load(&q->req, q->peer.path_mtu);
        out->backlog_bytes += load.backlog_bytes;
        out->rtx_bytes += load.rtx_bytes;
        out->waiting_rtx += q->req.tx.lost_count;
        out->inflight_pkts += q->req.tx.inflight_count;
        waiting = waiting || mrc_sched_has_data(q); /* a message of no bytes waits as well */
    }
    if (!waiting)
        out->state = out->inflight_pkts == 0 ? MRC_CCS_IDLE : MRC_CCS_PENDING;
    else
        out->state = s->blocked ? MRC_CCS_ACTIVE : MRC_CCS_READY;
    return MRC_OK;
}

/* ---- turns ---- */

/* Up to `most` packets of one QP; how many, and why not more. */
static size_t sched_send(struct mrc_engine *e, struct mrc_qp *q, struct mrc_tx_pkt *out,
                         size_t most, mrc_ns now, enum mrc_req_block *why)
{
    size_t n = 0;
    *why = mrc_qp_tx_data(q, out, most, now, &n);
    const mrc_ns next = mrc_qp_deadline(q); /* what one tick left over is due in the next */
    mrc_heap_set(&e->timers, &q->timer, next > now ? next : now + 1);
    return n;
}

/* Probes and queries leave before anything else of their QP, whatever the window says. */
static size_t sched_tx_urgent(struct mrc_engine *e, struct mrc_tx_pkt *out, size_t max, mrc_ns now)
{
    size_t n = 0;
    while (n < max && !mrc_list_empty(&e->urgent)) {
        struct mrc_qp *q = MRC_LIST_OWNER(mrc_list_pop(&e->urgent), struct mrc_qp, urgent);
        enum mrc_req_block why;
        n += sched_send(e, q, out + n, 1, now, &why);
        if (why == MRC_REQ_SENT && sched_urgent(q))
            mrc_list_push(&e->urgent, &q->urgent);
    }
    return n;
}

static struct mrc_qp *sched_next_qp(struct mrc_cc_slot *s)
{
    struct mrc_link *list = mrc_list_empty(&s->again) ? &s->fresh : &s->again;
    return mrc_list_empty(list) ? NULL : MRC_LIST_OWNER(list->next, struct mrc_qp, data);
}

/* One turn of one QP of this QPCC. Returns how many packets. */
static size_t sched_turn(struct mrc_engine *e, struct mrc_cc_slot *s, struct mrc_qp *q,
                         struct mrc_tx_pkt *out, size_t max, mrc_ns now)
{
    if (q->again && q->req.tx.lost_count == 0) { /* it had arrived after all */
        sched_leave(q);
        mrc_sched_offer(e, q);
        return 0;
    }
    if (q->turn_left == 0)
        q->turn_left =
            (uint8_t)(q->req.tx.lost_count > 0 ? mrc_min32(q->req.tx.lost_count, MRC_TRAIN_MAX)
                                               : MRC_TRAIN_MAX);
    const size_t most = q->turn_left < max ? q->turn_left : max;
    enum mrc_req_block why;
    const size_t n = sched_send(e, q, out, most, now, &why);
    q->turn_left = (uint8_t)(q->turn_left - n);
    switch (why) {
    case MRC_REQ_SENT:
        if (q->turn_left == 0) {
            sched_leave(q);
            mrc_sched_offer(e, q); /* behind the others */
        }
        break;
    case MRC_REQ_NO_CREDIT: s->blocked = true; break; /* ACTIVE: its turn waits with it */
    case MRC_REQ_IDLE:
    case MRC_REQ_NO_PATH: sched_leave(q); break; /* an event of its own brings it back */
    }
    return n;
}

size_t mrc_sched_tx(struct mrc_engine *e, struct mrc_tx_pkt *out, size_t max, mrc_ns now)
{
    size_t n = sched_tx_urgent(e, out, max, now);
    while (n < max && !mrc_list_empty(&e->ready)) {
        struct mrc_cc_slot *s = MRC_LIST_OWNER(mrc_list_pop(&e->ready), struct mrc_cc_slot, ready);
        struct mrc_qp *q = sched_next_qp(s);
        s->blocked = false;
        if (q == NULL)
            continue;
        n += sched_turn(e, s, q, out + n, max - n, now);
        if (s->blocked || sched_next_qp(s) == NULL)
            mrc_list_remove(&s->ready);
        else if (q->turn_left != 0) /* the burst is full, not the turn over */
            mrc_list_push_front(&e->ready, &s->ready);
        else
            mrc_list_push(&e->ready, &s->ready);
    }
    return n;
}
