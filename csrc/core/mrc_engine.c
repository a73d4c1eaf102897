/* SPDX-License-Identifier: BSD-2-Clause */
/* The three doors. Objects and their tables: mrc_engine_obj.c; whose turn it is to send:
 * mrc_engine_sched.c. */
#include "mrc_engine_int.h"

/* ---- bookkeeping after anything happened to a QP ---- */

void mrc_engine_touch_one(struct mrc_engine *e, struct mrc_qp *q)
{
    mrc_heap_set(&e->timers, &q->timer, mrc_qp_deadline(q));
    if (mrc_qp_control_due(q))
        mrc_list_push(&e->control, &q->control);
    if (q->attr.state == MRC_QPS_ERR && q->cc != NULL)
        mrc_sched_wake(e,
                       &e->cc[q->attr.cc]); /* an end gives the window back, whatever caused it */
    if (q->attr.state != MRC_QPS_RTS)
        mrc_sched_withdraw(q);
    else if (mrc_sched_has_data(q) || mrc_req_urgent(&q->req))
        mrc_sched_offer(e, q);
    if (q->path != NULL) {
        struct mrc_path_slot *p = &e->path[q->attr.path];
        mrc_heap_set(&e->timers, &p->timer, mrc_path_deadline(p->table));
        if (mrc_path_probe_pending(p->table))
            mrc_list_push(&e->probing, &p->probing);
        mrc_engine_tell_paths(e, q->attr.path);
    }
}

void mrc_engine_touch(struct mrc_engine *e, struct mrc_qp *q)
{
    mrc_engine_touch_one(e, q);
    if (e->env.cqs.failed > 0)
        mrc_engine_cq_failed(e);
}

void mrc_engine_touch_path(struct mrc_engine *e, uint32_t path)
{
    struct mrc_path_slot *p = &e->path[path];
    for (struct mrc_link *l = p->users.next; l != &p->users; l = l->next)
        mrc_engine_touch(e, MRC_LIST_OWNER(l, struct mrc_qp, path_link));
    mrc_heap_set(&e->timers, &p->timer, mrc_path_deadline(p->table));
    if (mrc_path_probe_pending(p->table))
        mrc_list_push(&e->probing, &p->probing);
    mrc_engine_tell_paths(e, path);
}

/* ---- rx ---- */

static enum mrc_drop engine_wire_drop(enum mrc_wire_err err)
{
    switch (err) {
    case MRC_WIRE_OK:
    case MRC_WIRE_SHORT: return MRC_DROP_SHORT;
    case MRC_WIRE_TVER: return MRC_DROP_TVER;
    case MRC_WIRE_OPCODE: return MRC_DROP_OPCODE;
    case MRC_WIRE_LENGTH: return MRC_DROP_LENGTH;
    }
    return MRC_DROP_SHORT;
}

/* Packets that came one after the other, from one peer for one QP, in the middle of one message. */
struct engine_flow {
    struct mrc_qp *q; /* NULL: none */
    const struct mrc_rx_pkt *last;
    struct mrc_pkt pkt;       /* that, decoded */
    uint32_t begin;           /* its iCRC up to the BTH */
    struct mrc_qp *untouched; /* has got packets since mrc_engine_touch; NULL: none */
    bool any;                 /* packet was for a QP, from its peer */
};

/* What packets change of a QP is asked for by the other two doors only: one touch for all in a row
 * is enough. */
static void engine_flow_end(struct mrc_engine *e, struct engine_flow *f)
{
    if (f->untouched != NULL)
        mrc_engine_touch(e, f->untouched);
    f->untouched = NULL;
}

/* A packet came for q, and the last one that is untouched, if any, is q. */
static void engine_flow_packet(struct mrc_engine *e, struct engine_flow *f, struct mrc_qp *q)
{
    f->untouched = q;
    f->any = true;
    if (e->env.cqs.failed > 0) /* the QPs of that queue must not go on */
        engine_flow_end(e, f);
}

static uint32_t engine_icrc_begin(const struct mrc_engine *e, const struct mrc_rx_pkt *p)
{
    return mrc_icrc6_begin(e->env.crc, p->src, p->dst, p->sport, p->dport, p->udp_len);
}

static bool engine_icrc_ok(const struct mrc_engine *e, const struct mrc_rx_pkt *p, uint32_t reg)
{
    uint8_t want[MRC_ICRC_LEN];
    reg = mrc_icrc_bth(e->env.crc, reg, p->bytes, p->len - MRC_ICRC_LEN);
    mrc_icrc_end(reg, want);
    return memcmp(want, p->bytes + p->len - MRC_ICRC_LEN, MRC_ICRC_LEN) == 0;
}

/* The address that most packets have first, then those of the planes. */
static bool engine_from_peer(const struct mrc_qp *q, const uint8_t src[16])
{
    return memcmp(q->attr.dst, src, 16) == 0 || (q->path != NULL && mrc_path_from(q->path, src));
}

/* B.15, steps 6 and 7. NULL: counted. */
static struct mrc_qp *engine_qp_of(struct mrc_engine *e, uint32_t dqp, const uint8_t src[16])
{
    struct mrc_qp *q = mrc_engine_qp(e, dqp);
    if (q == NULL) {
        e->env.drops[MRC_DROP_QPN]++;
        return NULL;
    }
    if (q->attr.state == MRC_QPS_RESET || q->attr.state == MRC_QPS_INIT) {
        e->env.drops[MRC_DROP_QP_STATE]++;
        return NULL;
    }
    if (!engine_from_peer(q, src)) {
        e->env.drops[MRC_DROP_PEER]++;
        return NULL;
    }
    return q;
}

static void engine_rx_trimmed(struct mrc_engine *e, const struct mrc_rx_pkt *p, bool lasthop,
                              mrc_ns now)
{
    struct mrc_pkt pkt;
    const enum mrc_wire_err err = mrc_wire_decode(&pkt, p->bytes, p->len, true);
    if (err != MRC_WIRE_OK) {
        e->env.drops[engine_wire_drop(err)]++;
        return;
    }
    if ((mrc_opcode_flags(pkt.opcode) & MRC_OPF_DATA) == 0) {
        e->env.drops[MRC_DROP_OPCODE]++;
        return;
    }
    if (mrc_engine_qp(e, pkt.dqp) == NULL) { /* no iCRC vouches for this number */
        e->env.drops[MRC_DROP_TRIM_OFF]++;
        return;
    }
    struct mrc_qp *q = engine_qp_of(e, pkt.dqp, p->src);
    if (q == NULL)
        return;
    mrc_qp_rx_trimmed(q, &pkt, mrc_wire_ev(p->flow_label, p->sport), lasthop, now);
    mrc_engine_touch(e, q);
}

/* Its iCRC is wrong. H29: which EV of which peer breaks packets? The QP decides whether it believes
 * this one. */
static void engine_rx_broken(struct mrc_engine *e, const struct mrc_rx_pkt *p, mrc_ns now)
{
    struct mrc_pkt pkt;
    e->env.drops[MRC_DROP_ICRC]++;
    if (e->env.icrc_skip_percent == 0 ||
        mrc_wire_decode(&pkt, p->bytes, p->len, false) != MRC_WIRE_OK ||
        (mrc_opcode_flags(pkt.opcode) & MRC_OPF_DATA) == 0)
        return;
    struct mrc_qp *q = mrc_engine_qp(e, pkt.dqp);
    if (q != NULL && engine_from_peer(q, p->src))
        mrc_qp_rx_broken(q, &pkt, mrc_wire_ev(p->flow_label, p->sport), now);
}

/* B.15, step 6: no queue pair is touched, unless paths to the node went or came back. */
static void engine_rx_ep(struct mrc_engine *e, const struct mrc_rx_pkt *rx, const struct mrc_pkt *p,
                         mrc_ns now)
{
    const bool planes = mrc_ep_rx(&e->ep, rx, p, now);
    mrc_engine_ep_timer(e);
    if (!planes)
        return;
    for (uint32_t i = mrc_ep_first(&e->ep, rx->src); i != MRC_EP_NOWHERE;
         i = mrc_ep_next(&e->ep, i)) {
        mrc_engine_tell_planes(e, mrc_ep_path(i));
        mrc_engine_touch_path(e, mrc_ep_path(i));
    }
}

/* Is what follows this packet likely to be the next of its message? */
static void engine_flow_begin(struct engine_flow *f, struct mrc_qp *q, const struct mrc_rx_pkt *p,
                              bool ce)
{
    const uint8_t op = f->pkt.opcode;
    f->q = !ce && (op == MRC_OP_WRITE_FIRST || op == MRC_OP_WRITE_MIDDLE) ? q : NULL;
    f->last = p;
}

/* B.15: the order of checks is the order of cost and of trust. */
static void engine_rx_one(struct mrc_engine *e, struct engine_flow *f, const struct mrc_rx_pkt *p,
                          mrc_ns now)
{
    const uint8_t dscp = p->tclass >> 2;
    f->q = NULL;
    if (e->env.dscp_trimmed != 0 && dscp != 0 && /* 0: not used here */
        (dscp == e->env.dscp_trimmed || dscp == e->env.dscp_trimmed_lasthop)) {
        engine_flow_end(e, f);
        engine_rx_trimmed(e, p, dscp == e->env.dscp_trimmed_lasthop, now);
        return;
    }
    if (p->len + 8 != p->udp_len) {
        e->env.drops[MRC_DROP_UDP_LEN]++;
        return;
    }
    if (p->len < MRC_BTH_LEN + MRC_ICRC_LEN) {
        e->env.drops[MRC_DROP_SHORT]++;
        return;
    }
    f->begin = engine_icrc_begin(e, p);
    if (!engine_icrc_ok(e, p, f->begin)) {
        engine_rx_broken(e, p, now);
        return;
    }
    struct mrc_pkt *const pkt = &f->pkt;
    const enum mrc_wire_err err = mrc_wire_decode(pkt, p->bytes, p->len, false);
    if (err != MRC_WIRE_OK) {
        e->env.drops[engine_wire_drop(err)]++;
        return;
    }
    if (pkt->opcode == MRC_OP_EP_REQUEST || pkt->opcode == MRC_OP_EP_RESPONSE) {
        engine_flow_end(e, f);
        engine_rx_ep(e, p, pkt, now);
        return;
    }
    struct mrc_qp *q = engine_qp_of(e, pkt->dqp, p->src);
    if (q == NULL)
        return;
    const bool ce = (p->tclass & 3) == 3 || p->outer_ce; /* A.13.1 */
    if (q != f->untouched)
        engine_flow_end(e, f);
    mrc_qp_rx(q, pkt, mrc_wire_ev(p->flow_label, p->sport), ce, now);
    engine_flow_packet(e, f, q);
    if ((mrc_opcode_flags(pkt->opcode) & MRC_OPF_DATA) != 0)
        engine_flow_begin(f, q, p, ce);
    else if (q->cc != NULL)
        mrc_sched_wake(e, &e->cc[q->attr.cc]);
}

/* Same length, class and ends as the last one, which passed all checks: what is left of them.
 * False: nothing was done. */
static bool engine_rx_next(struct mrc_engine *e, struct engine_flow *f, const struct mrc_rx_pkt *p,
                           mrc_ns now)
{
    const struct mrc_rx_pkt *l = f->last;
    if (p->len != l->len || p->udp_len != l->udp_len || p->tclass != l->tclass || p->outer_ce ||
        p->dport != l->dport || memcmp(p->src, l->src, 16) != 0 ||
        memcmp(p->dst, l->dst, 16) != 0 || !mrc_wire_follows(&f->pkt, l->bytes, p->bytes))
        return false;
    const uint32_t begin = p->sport == l->sport ? f->begin : engine_icrc_begin(e, p);
    if (!engine_icrc_ok(e, p, begin)) { /* *f does not know of it */
        engine_rx_broken(e, p, now);
        return true;
    }
    mrc_wire_follow(&f->pkt, l->bytes, p->bytes);
    f->begin = begin;
    f->last = p;
    if (mrc_qp_rx_middle(f->q, &f->pkt, mrc_wire_ev(p->flow_label, p->sport), now)) {
        f->untouched = f->q;
        return true;
    }
    mrc_qp_rx(f->q, &f->pkt, mrc_wire_ev(p->flow_label, p->sport), false, now);
    engine_flow_packet(e, f, f->q);
    if (f->q->attr.state == MRC_QPS_ERR)
        f->q = NULL;
    return true;
}

bool mrc_engine_rx(struct mrc_engine *e, const struct mrc_rx_pkt *pkts, size_t n, mrc_ns now)
{
    struct engine_flow f;
    f.q = NULL;
    f.untouched = NULL;
    f.any = false;
    e->now = now;
    for (size_t i = 0; i < n; i++) {
        if (f.q != NULL && engine_rx_next(e, &f, &pkts[i], now))
            continue;
        engine_rx_one(e, &f, &pkts[i], now);
    }
    engine_flow_end(e, &f);
    return f.any;
}

/* ---- tick ---- */

static void engine_tick_path(struct mrc_engine *e, struct mrc_path_slot *p, mrc_ns now)
{
    const uint32_t active = mrc_path_active(p->table);
    mrc_path_tick(p->table, now);
    if (mrc_path_active(p->table) != active)
        mrc_engine_touch_path(e, (uint32_t)(p - e->path));
    const uint16_t reverse = mrc_path_reverse_probe(p->table);
    if (reverse != MRC_EV_NONE)
        mrc_ep_reverse(&e->ep, (uint32_t)(p - e->path), reverse);
    mrc_heap_set(&e->timers, &p->timer, mrc_path_deadline(p->table));
    if (mrc_path_probe_pending(p->table))
        mrc_list_push(&e->probing, &p->probing);
}

void mrc_engine_tick(struct mrc_engine *e, mrc_ns now)
{
    e->now = now;
    /* Each object is visited at most once: after its visit its deadline lies ahead, or it is out.
     */
    for (uint32_t n = e->timers.count; n > 0 && mrc_heap_key(&e->timers) <= now; n--) {
        struct mrc_heap_node *node = mrc_heap_min(&e->timers);
        if (node == &e->ep_timer) {
            mrc_ep_tick(&e->ep, now);
            mrc_engine_ep_timer(e);
            continue;
        }
        if (mrc_engine_is_path_timer(e, node)) {
            engine_tick_path(e, MRC_LIST_OWNER(node, struct mrc_path_slot, timer), now);
            continue;
        }
        struct mrc_qp *q = MRC_LIST_OWNER(node, struct mrc_qp, timer);
        mrc_qp_tick(q, now);
        mrc_engine_touch(e, q);
        if (q->cc != NULL)
            mrc_sched_wake(e, &e->cc[q->attr.cc]);
        if (mrc_heap_has(&q->timer) && q->timer.key <= now)
            mrc_heap_set(&e->timers, &q->timer, now + 1); /* more to do than one tick may */
    }
}

mrc_ns mrc_engine_deadline(const struct mrc_engine *e) { return mrc_heap_key(&e->timers); }

/* ---- tx ---- */

static void engine_path_timer(struct mrc_engine *e, const struct mrc_qp *q)
{
    if (q->path == NULL)
        return;
    struct mrc_path_slot *p = &e->path[q->attr.path];
    mrc_heap_set(&e->timers, &p->timer, mrc_path_deadline(p->table));
}

static size_t engine_tx_control(struct mrc_engine *e, struct mrc_tx_pkt *out, size_t max,
                                mrc_ns now)
{
    size_t n = 0;
    for (struct mrc_link *l = e->control.next; l != &e->control && n < max;) {
        struct mrc_qp *q = MRC_LIST_OWNER(l, struct mrc_qp, control);
        l = l->next;
        n += mrc_qp_tx_control(q, &out[n], max - n, now);
        engine_path_timer(e, q); /* an answer may begin a round of the reverse set (D.8) */
        if (n < max)
            mrc_list_remove(
                &q->control); /* nothing due, or no path: the next packet in tries again */
    }
    return n;
}

enum { ENGINE_PROBERS = 8 }; /* among so many neighbours the QP for a probe is drawn */

/* Probes ride on any QP that uses the table: they test the path, not the QP. Not always on the same
 * one, whose peer may not answer, and not in turn, or the same entry could meet it every time. */
static struct mrc_qp *engine_prober(struct mrc_engine *e, struct mrc_path_slot *p)
{
    for (uint32_t n = mrc_rand_below(&e->rand, ENGINE_PROBERS); n > 0; n--) {
        struct mrc_link *first = p->users.next;
        mrc_list_remove(first);
        mrc_list_push(&p->users, first);
    }
    for (struct mrc_link *l = p->users.next; l != &p->users; l = l->next) {
        struct mrc_qp *q = MRC_LIST_OWNER(l, struct mrc_qp, path_link);
        if (q->attr.state == MRC_QPS_RTS)
            return q;
    }
    return NULL;
}

static size_t engine_tx_probes(struct mrc_engine *e, struct mrc_tx_pkt *out, size_t max, mrc_ns now)
{
    size_t n = 0;
    while (n < max && !mrc_list_empty(&e->probing)) {
        struct mrc_path_slot *p = MRC_LIST_OWNER(e->probing.next, struct mrc_path_slot, probing);
        struct mrc_qp *q = NULL;
        uint16_t id = 0;
        uint16_t entry = MRC_EV_NONE;
        while (n < max && (q = engine_prober(e, p)) != NULL &&
               (entry = mrc_path_probe_due(p->table, &id, now)) != MRC_EV_NONE)
            mrc_qp_tx_probe(q, entry, id, &out[n++], now);
        mrc_heap_set(&e->timers, &p->timer, mrc_path_deadline(p->table));
        if (entry != MRC_EV_NONE)
            break; /* out is full */
        mrc_list_remove(
            &p->probing); /* without a prober: the next event of a user brings it back */
    }
    return n;
}

/* All but data. */
static size_t engine_tx_answers(struct mrc_engine *e, struct mrc_tx_pkt *out, size_t max,
                                mrc_ns now)
{
    size_t n = engine_tx_control(e, out, max, now);
    if (mrc_ep_tx_pending(&e->ep)) {
        n += mrc_ep_tx(&e->ep, out + n, max - n, now);
        mrc_engine_ep_timer(e);
    }
    return n + engine_tx_probes(e, out + n, max - n, now);
}

/* Answers go first, but peers who ask for many must not stop our data: a quarter is kept for it
 * while some waits. */
size_t mrc_engine_tx(struct mrc_engine *e, struct mrc_tx_pkt *out, size_t max, mrc_ns now)
{
    size_t n = engine_tx_answers(e, out, mrc_sched_pending(e) ? max - max / 4 : max, now);
    n += mrc_sched_tx(e, out + n, max - n, now);
    return n + engine_tx_answers(e, out + n, max - n, now); /* what data had no use for */
}

bool mrc_engine_tx_pending(const struct mrc_engine *e)
{
    return !mrc_list_empty(&e->control) || mrc_sched_pending(e) || !mrc_list_empty(&e->probing) ||
           mrc_ep_tx_pending(&e->ep);
}

void mrc_engine_lane_failed(struct mrc_engine *e, uint8_t port, uint32_t lane,
                            enum mrc_ev_reason why, mrc_ns now)
{
    for (uint32_t i = 0; i < e->cfg.path_max; i++) {
        struct mrc_path_slot *p = &e->path[i];
        if (p->table == NULL)
            continue;
        for (uint16_t k = 0; k < mrc_path_count(p->table); k++) {
            const struct mrc_path_entry_cfg *entry = mrc_path_entry(p->table, k);
            if (entry->port != port || entry->lane != lane)
                continue;
            mrc_path_on_loss(p->table, k, why, now, now);
            for (struct mrc_link *l = p->users.next; l != &p->users; l = l->next) {
                struct mrc_qp *q = MRC_LIST_OWNER(l, struct mrc_qp, path_link);
                mrc_qp_lane_failed(q, k, now);
                mrc_engine_touch(e, q);
                if (q->cc != NULL) /* what was in flight there is not any more */
                    mrc_sched_wake(e, &e->cc[q->attr.cc]);
            }
        }
    }
}
