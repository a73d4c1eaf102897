/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_ep_priv.h"

#include "mrc_rand.h"

/* Two updates that overtook each other are told apart by their timestamps: 16 bits of 128 ns order
 * what lies less than half a wrap apart. */
static const mrc_ns EP_ORDER_NS = 4 * MRC_MSEC;

/* ---- memory ---- */

size_t mrc_ep_bytes(uint32_t path_max)
{
    return mrc_align(path_max * sizeof(struct ep_node)) +
           mrc_align(mrc_pow2(path_max) * sizeof(uint32_t)) +
           mrc_align((path_max + MRC_EP_PROBES) * sizeof(struct mrc_heap_node *));
}

void mrc_ep_init(struct mrc_ep *ep, void *mem, struct mrc_env *env, uint32_t path_max,
                 uint64_t seed)
{
    uint8_t *m = mem;
    ep->env = env;
    ep->node = (struct ep_node *)(void *)m;
    m += mrc_align(path_max * sizeof(struct ep_node));
    ep->bucket = (uint32_t *)(void *)m;
    m += mrc_align(mrc_pow2(path_max) * sizeof(uint32_t));
    ep->node_max = path_max;
    ep->bucket_mask = mrc_pow2(path_max) - 1;
    ep->seed = mrc_mix64(seed);
    ep->tell_next = (uint16_t)mrc_mix64(ep->seed);
    for (uint32_t i = 0; i <= ep->bucket_mask; i++)
        ep->bucket[i] = MRC_EP_NOWHERE;
    mrc_heap_init(&ep->timers, (struct mrc_heap_node **)(void *)m, path_max + MRC_EP_PROBES);
    mrc_list_init(&ep->telling);
    mrc_list_init(&ep->sending);
    mrc_list_init(&ep->reversing);
    mrc_list_init(&ep->done);
    mrc_list_init(&ep->unused);
    for (uint32_t i = 0; i < MRC_EP_PROBES; i++) {
        mrc_list_init(&ep->probe[i].link);
        mrc_list_push(&ep->unused, &ep->probe[i].link);
    }
}

/* ---- nodes ---- */

/* What is known of a node is what came from its first address: others may name it as one of theirs.
 */
static const struct ep_node *ep_known(const struct mrc_ep *ep, const uint8_t addr[16])
{
    const uint32_t slot = mrc_ep_first(ep, addr);
    return slot != MRC_EP_NOWHERE && mrc_ep_place(slot) == 0 ? &ep->node[mrc_ep_path(slot)] : NULL;
}

int mrc_ep_lead(struct mrc_ep *ep, uint32_t path, struct mrc_path_table *t,
                const struct mrc_ep_addr *to)
{
    static const uint8_t unspecified[16];
    if (path >= ep->node_max || t == NULL || ep->node[path].table != NULL ||
        memcmp(to->dst, unspecified, 16) == 0)
        return MRC_ERR_INVAL;
    const struct ep_node *known = ep_known(ep, to->dst);
    struct ep_node *n = &ep->node[path];
    memset(n, 0, sizeof *n);
    mrc_list_init(&n->due);
    mrc_list_init(&n->reverse);
    n->table = t;
    memcpy(n->peer.src, to->src, 16);
    memcpy(n->peer.dst, to->dst, 16);
    n->peer.dport = to->dport;
    n->peer.qpn = MRC_QPN_EP;
    n->peer.dest_qpn = MRC_QPN_EP;
    n->own_hint = (uint8_t)to->own_port;
    n->peer_hint = (uint8_t)to->dport;
    mrc_path_cursor_init(&n->cursor, ep->seed ^ path);
    n->local_up = MRC_PLANES_ALL;
    n->told = MRC_PLANES_ALL;
    n->remote_up = MRC_PLANES_ALL;
    if (known != NULL) {
        n->remote_up = known->remote_up;
        n->heard_ns = known->heard_ns;
        n->heard_ts = known->heard_ts;
    }
    if (n->remote_up != MRC_PLANES_ALL)
        mrc_path_set_planes(t, n->local_up, n->remote_up);
    ep_addrs_add(ep, path);
    return MRC_OK;
}

static void ep_finish(struct mrc_ep *ep, struct ep_probe *q, mrc_ns rtt)
{
    mrc_heap_remove(&ep->timers, &q->timer);
    mrc_list_remove(&q->link);
    q->step = EP_DONE;
    q->rsp.rtt_ns = rtt;
    mrc_list_push(&ep->done, &q->link);
}

void mrc_ep_forget(struct mrc_ep *ep, uint32_t path)
{
    struct ep_node *n = &ep->node[path];
    if (n->table == NULL)
        return;
    ep_addrs_remove(ep, path);
    mrc_heap_remove(&ep->timers, &n->timer);
    mrc_list_remove(&n->due);
    mrc_list_remove(&n->reverse);
    n->table = NULL;
    for (uint32_t i = ep->answer_out; i != ep->answer_in; i++) {
        struct ep_answer *a = &ep->answer[i % MRC_EP_ANSWERS];
        if (a->path == path)
            a->path = MRC_EP_NOWHERE;
    }
    for (uint32_t i = 0; i < MRC_EP_PROBES; i++) {
        struct ep_probe *q = &ep->probe[i];
        if ((q->step == EP_SEND || q->step == EP_WAIT) && q->req.path == path)
            ep_finish(ep, q, MRC_NEVER);
    }
}

static struct ep_node *ep_node(const struct mrc_ep *ep, uint32_t path)
{
    return path < ep->node_max && ep->node[path].table != NULL ? &ep->node[path] : NULL;
}

/* ---- what the peer is told of our planes ---- */

static void ep_told(struct mrc_ep *ep, struct ep_node *n)
{
    n->told = n->local_up;
    n->telling = false;
    mrc_heap_remove(&ep->timers, &n->timer);
    mrc_list_remove(&n->due);
}

int mrc_ep_set_planes(struct mrc_ep *ep, uint32_t path, uint32_t local_up, uint32_t remote_up)
{
    struct ep_node *n = ep_node(ep, path);
    if (n == NULL)
        return MRC_ERR_NOENT;
    const bool changed = n->local_up != (local_up & MRC_PLANES_ALL);
    n->local_up = local_up & MRC_PLANES_ALL;
    n->remote_up = remote_up & MRC_PLANES_ALL;
    mrc_path_set_planes(n->table, n->local_up, n->remote_up);
    if (changed) { /* a new id: an answer to the former update says nothing of this one */
        n->telling = true;
        n->tell_id = ep->tell_next++;
        n->tell_sends = 0;
        n->tell_tried = 0;
        mrc_heap_remove(&ep->timers, &n->timer);
        mrc_list_push(&ep->telling, &n->due);
    }
    return MRC_OK;
}

int mrc_ep_planes(const struct mrc_ep *ep, uint32_t path, struct mrc_ep_planes *out)
{
    const struct ep_node *n = ep_node(ep, path);
    if (n == NULL)
        return MRC_ERR_NOENT;
    *out = (struct mrc_ep_planes){.local_up = n->local_up,
                                  .remote_up = n->remote_up,
                                  .told = n->told,
                                  .pending = n->telling ? 1 : 0};
    return MRC_OK;
}

/* ---- rx ---- */

/* A table to answer on. Nodes are addresses, but on one machine several programs may share one; the
 * low byte of the asker's UDP port in vendor_info tells which table leads to it (ADR 0060). */
static uint32_t ep_asker(const struct mrc_ep *ep, uint32_t first, uint8_t hint, uint32_t ev)
{
    uint32_t best = first;
    int best_score = -1;
    for (uint32_t i = first; i != MRC_EP_NOWHERE; i = mrc_ep_next(ep, i)) {
        const struct ep_node *n = ep_of(ep, i);
        const int score =
            (n->peer_hint == hint ? 2 : 0) + (mrc_path_find(n->table, ev) != MRC_EV_NONE ? 1 : 0);
        if (score > best_score) {
            best = i;
            best_score = score;
        }
        if (score == 3)
            break;
    }
    return mrc_ep_path(best);
}

/* A burst, then a steady pace, for each node: a storm costs the others nothing. */
static bool ep_admit(struct mrc_ep *ep, uint32_t first, mrc_ns now)
{
    struct ep_slot *s = ep_slot(ep, first);
    if (ep->answer_in - ep->answer_out == MRC_EP_ANSWERS ||
        s->pace_ns > now + (MRC_EP_BURST - 1) * MRC_EP_PACE_NS)
        return false;
    s->pace_ns = mrc_max64(s->pace_ns, now) + ep_share(ep, first) * MRC_EP_PACE_NS;
    return true;
}

static bool ep_stale(const struct ep_node *n, const struct mrc_pkt *p, mrc_ns now)
{
    return n->heard_ns != 0 && now - n->heard_ns < EP_ORDER_NS && !p->tsr &&
           (int16_t)(uint16_t)(p->tx_timestamp - n->heard_ts) < 0;
}

/* A change of planes costs us work in each table and entry: a node has a few at once, then a steady
 * pace. Beyond that an update is not heard, and not answered, so that the node repeats it. */
static bool ep_flaps(struct mrc_ep *ep, uint32_t first, const struct mrc_pkt *p, mrc_ns now)
{
    struct ep_slot *s = ep_slot(ep, first);
    bool changes = false;
    for (uint32_t i = first; i != MRC_EP_NOWHERE && !changes; i = mrc_ep_next(ep, i))
        changes = ep_of(ep, i)->remote_up != (p->port_status_mask & MRC_PLANES_ALL) &&
                  !ep_stale(ep_of(ep, i), p, now);
    if (!changes)
        return false;
    if (s->flap_ns > now + (MRC_EP_FLAPS - 1) * MRC_EP_FLAP_PACE_NS)
        return true;
    s->flap_ns = mrc_max64(s->flap_ns, now) + ep_share(ep, first) * MRC_EP_FLAP_PACE_NS;
    return false;
}

/* D.7, H19: bit N is port N, and port N is plane N. */
static bool ep_status(struct mrc_ep *ep, uint32_t first, const struct mrc_pkt *p, mrc_ns now)
{
    bool changed = false;
    for (uint32_t i = first; i != MRC_EP_NOWHERE; i = mrc_ep_next(ep, i)) {
        struct ep_node *n = ep_of(ep, i);
        if (ep_stale(n, p, now))
            continue;
        n->heard_ns = now;
        n->heard_ts = p->tx_timestamp;
        if (n->remote_up == (p->port_status_mask & MRC_PLANES_ALL))
            continue;
        n->remote_up = p->port_status_mask & MRC_PLANES_ALL;
        mrc_path_set_planes(n->table, n->local_up, n->remote_up);
        changed = true;
    }
    return changed;
}

static bool ep_rx_request(struct mrc_ep *ep, uint32_t first, const struct mrc_rx_pkt *rx,
                          const struct mrc_pkt *p, mrc_ns now)
{
    if (p->ep_op > MRC_EP_OP_EV_PROBE) {
        ep->env->drops[MRC_DROP_EP_UNKNOWN]++;
        return false;
    }
    if ((p->ep_op == MRC_EP_OP_PORT_STATUS && ep_flaps(ep, first, p, now)) ||
        !ep_admit(ep, first, now)) {
        ep->env->drops[MRC_DROP_PROBE_RATE]++;
        return false;
    }
    const uint32_t ev = mrc_wire_ev(rx->flow_label, rx->sport);
    ep->answer[ep->answer_in++ % MRC_EP_ANSWERS] =
        (struct ep_answer){.path = ep_asker(ep, first, p->vendor_info, ev),
                           .ev = ev,
                           .id = (uint16_t)p->psn,
                           .timestamp = p->tx_timestamp,
                           .arrived = mrc_timestamp(now),
                           .op = p->ep_op,
                           .timed = !p->tsr};
    return p->ep_op == MRC_EP_OP_PORT_STATUS && ep_status(ep, first, p, now);
}

static struct ep_node *ep_find_told(struct mrc_ep *ep, uint32_t first, uint16_t id)
{
    for (uint32_t i = first; i != MRC_EP_NOWHERE; i = mrc_ep_next(ep, i))
        if (ep_of(ep, i)->telling && ep_of(ep, i)->tell_sends > 0 && ep_of(ep, i)->tell_id == id)
            return ep_of(ep, i);
    return NULL;
}

/* Of the node with this address, and of this id, on its way or about to be. */
static struct ep_probe *ep_find_probe(struct mrc_ep *ep, const uint8_t addr[16], uint16_t id)
{
    for (uint32_t i = 0; i < MRC_EP_PROBES; i++) {
        struct ep_probe *q = &ep->probe[i];
        if ((q->step == EP_WAIT || q->step == EP_SEND) && q->req.id == id &&
            ep_has(&ep->node[q->req.path], addr))
            return q;
    }
    return NULL;
}

static struct ep_node *ep_find_reverse(struct mrc_ep *ep, uint32_t first, uint16_t id)
{
    for (uint32_t i = first; i != MRC_EP_NOWHERE; i = mrc_ep_next(ep, i))
        if (ep_of(ep, i)->reverse_waiting && ep_of(ep, i)->reverse_id == id)
            return ep_of(ep, i);
    return NULL;
}

void mrc_ep_reverse(struct mrc_ep *ep, uint32_t path, uint16_t entry)
{
    struct ep_node *n = ep_node(ep, path);
    if (n == NULL)
        return;
    n->reverse_entry = entry;
    n->reverse_waiting = false;
    mrc_list_push(&ep->reversing, &n->reverse);
}

/* H11: by how much the node moved our timestamp is how long it had the request. More than the whole
 * round trip is no service time. */
static mrc_ns ep_rtt(struct ep_probe *q, uint16_t reflected, mrc_ns now)
{
    const mrc_ns whole = now - q->sent_ns;
    const mrc_ns service = (mrc_ns)(uint16_t)(reflected - mrc_timestamp(q->sent_ns)) << 7;
    if (q->req.service_time == 0 || service > whole)
        return whole;
    q->rsp.adjusted = 1;
    return whole - service;
}

/* The id identifies the request, the op helps where both kinds have the same one: readers differ on
 * its position in the header, so it is never a reason to refuse (H3). */
static void ep_rx_response(struct mrc_ep *ep, uint32_t first, const struct mrc_rx_pkt *rx,
                           const struct mrc_pkt *p, mrc_ns now)
{
    const uint16_t id = (uint16_t)p->psn;
    struct ep_node *n = ep_find_told(ep, first, id);
    struct ep_probe *q = ep_find_probe(ep, rx->src, id);
    if (q != NULL && q->step != EP_WAIT)
        q = NULL;
    const bool probe = q != NULL && q->req.port_status == 0;
    if (n != NULL && (q == NULL || (probe && p->ep_op == MRC_EP_OP_PORT_STATUS))) {
        ep_told(ep, n);
    } else if (q != NULL) {
        q->rsp.port =
            mrc_path_plane(ep->node[q->req.path].table, mrc_wire_ev(rx->flow_label, rx->sport));
        ep_finish(ep, q, ep_rtt(q, p->tx_timestamp, now));
    } else if ((n = ep_find_reverse(ep, first, id)) != NULL) {
        n->reverse_waiting = false;
        mrc_path_on_reverse(n->table, n->reverse_entry, now - n->reverse_sent_ns);
    } else {
        ep->env->drops[MRC_DROP_EP_STALE]++;
    }
}

bool mrc_ep_rx(struct mrc_ep *ep, const struct mrc_rx_pkt *rx, const struct mrc_pkt *p, mrc_ns now)
{
    const uint32_t first = mrc_ep_first(ep, rx->src);
    if (first == MRC_EP_NOWHERE || p->dqp != MRC_QPN_EP) {
        ep->env->drops[MRC_DROP_EP_UNKNOWN]++;
        return false;
    }
    if (p->opcode == MRC_OP_EP_REQUEST)
        return ep_rx_request(ep, first, rx, p, now);
    ep_rx_response(ep, first, rx, p, now);
    return false;
}

/* ---- time ---- */

static bool ep_is_probe(const struct mrc_ep *ep, const struct mrc_heap_node *node)
{
    const uintptr_t a = (uintptr_t)node;
    return a >= (uintptr_t)ep->probe && a < (uintptr_t)(ep->probe + MRC_EP_PROBES);
}

/* Each timer due leaves the heap: bounded by their number. */
void mrc_ep_tick(struct mrc_ep *ep, mrc_ns now)
{
    while (mrc_heap_key(&ep->timers) <= now) {
        struct mrc_heap_node *node = mrc_heap_min(&ep->timers);
        if (ep_is_probe(ep, node)) {
            ep_finish(ep, MRC_LIST_OWNER(node, struct ep_probe, timer), MRC_NEVER);
            continue;
        }
        mrc_heap_remove(&ep->timers, node);
        mrc_list_push(&ep->telling, &MRC_LIST_OWNER(node, struct ep_node, timer)->due);
    }
}

/* ---- tx ---- */

/* On a reverse EV (D.8). */
static bool ep_tx_answer(struct mrc_ep *ep, struct mrc_tx_pkt *out, mrc_ns now)
{
    const struct ep_answer *a = &ep->answer[ep->answer_out++ % MRC_EP_ANSWERS];
    if (a->path == MRC_EP_NOWHERE)
        return false;
    struct ep_node *n = &ep->node[a->path];
    const uint16_t i = mrc_path_reverse(n->table, &n->cursor, a->ev);
    if (i == MRC_EV_NONE)
        return false; /* no way back: the asker takes it for a loss, which it is */
    struct mrc_pkt p = {
        .opcode = MRC_OP_EP_RESPONSE, .psn = a->id, .ep_op = a->op, .tx_timestamp = a->timestamp};
    if (a->timed)
        p.tx_timestamp = mrc_env_reflect(ep->env, a->timestamp, a->arrived, now);
    mrc_emit(ep->env, &n->peer, mrc_path_entry(n->table, i), ep->env->tclass_control, &p, out);
    return true;
}

static void ep_emit_request(const struct mrc_ep *ep, const struct ep_node *n, uint16_t entry,
                            uint8_t tclass, struct mrc_pkt *p, mrc_ns now, struct mrc_tx_pkt *out)
{
    p->opcode = MRC_OP_EP_REQUEST;
    p->vendor_info = n->own_hint;
    p->tx_timestamp = mrc_timestamp(now);
    p->ftype = 1;
    mrc_emit(ep->env, &n->peer, mrc_path_entry(n->table, entry), tclass, p, out);
}

/* F.1: on a working EV, each time of another plane while there is one, never of a failed one. */
static bool ep_tx_status(struct mrc_ep *ep, struct ep_node *n, struct mrc_tx_pkt *out, mrc_ns now)
{
    const uint32_t doublings =
        n->tell_sends < MRC_EP_REPEATS ? 0 : mrc_min32(n->tell_sends - MRC_EP_REPEATS + 1u, 16);
    const mrc_ns gap = mrc_min64(MRC_EP_GAP_NS << doublings, MRC_EP_GAP_MAX_NS);
    mrc_heap_set(&ep->timers, &n->timer, now + gap);
    uint16_t i =
        mrc_path_select(n->table, &n->cursor, n->local_up & ~n->tell_tried, MRC_EV_NONE, now);
    if (i == MRC_EV_NONE) {
        n->tell_tried = 0;
        i = mrc_path_select(n->table, &n->cursor, n->local_up, MRC_EV_NONE, now);
    }
    if (i == MRC_EV_NONE)
        return false;
    n->tell_tried |= 1u << mrc_path_entry(n->table, i)->plane;
    n->tell_sends = (uint8_t)mrc_min32(n->tell_sends + 1u, UINT8_MAX);
    struct mrc_pkt p = {
        .psn = n->tell_id, .ep_op = MRC_EP_OP_PORT_STATUS, .port_status_mask = n->local_up};
    ep_emit_request(ep, n, i, ep->env->tclass_control, &p, now, out);
    return true;
}

static void ep_tx_probe(struct mrc_ep *ep, struct ep_probe *q, struct mrc_tx_pkt *out, mrc_ns now)
{
    const uint8_t ecn = ep->env->tclass_data & 3;
    uint8_t tclass = ep->env->tclass_control;
    if (q->req.dscp != MRC_EP_DSCP_CONTROL)
        tclass = (uint8_t)(q->req.dscp << 2 | ecn);
    struct mrc_pkt p = {.psn = q->req.id, .ep_op = MRC_EP_OP_EV_PROBE};
    if (q->req.port_status != 0) {
        p.ep_op = MRC_EP_OP_PORT_STATUS;
        p.port_status_mask = q->req.port_status_mask;
    }
    ep_emit_request(ep, &ep->node[q->req.path], q->entry, tclass, &p, now, out);
    q->sent_ns = now;
    q->step = EP_WAIT;
}

/* D.8: on the entry that the table drew, in the class of what is to follow it. */
static void ep_tx_reverse(struct mrc_ep *ep, struct ep_node *n, struct mrc_tx_pkt *out, mrc_ns now)
{
    ep->reverse_next = (uint16_t)((ep->reverse_next + 1) | MRC_EP_ID_OWN);
    n->reverse_id = ep->reverse_next;
    n->reverse_sent_ns = now;
    n->reverse_waiting = true;
    struct mrc_pkt p = {.psn = n->reverse_id, .ep_op = MRC_EP_OP_EV_PROBE};
    ep_emit_request(ep, n, n->reverse_entry, ep->env->tclass_control, &p, now, out);
}

size_t mrc_ep_tx(struct mrc_ep *ep, struct mrc_tx_pkt *out, size_t max, mrc_ns now)
{
    size_t n = 0;
    while (n < max && ep->answer_out != ep->answer_in)
        n += ep_tx_answer(ep, &out[n], now);
    while (n < max && !mrc_list_empty(&ep->telling)) {
        struct mrc_link *l = mrc_list_pop(&ep->telling);
        n += ep_tx_status(ep, MRC_LIST_OWNER(l, struct ep_node, due), &out[n], now);
    }
    while (n < max && !mrc_list_empty(&ep->sending)) {
        struct mrc_link *l = mrc_list_pop(&ep->sending);
        ep_tx_probe(ep, MRC_LIST_OWNER(l, struct ep_probe, link), &out[n++], now);
    }
    while (n < max && !mrc_list_empty(&ep->reversing)) {
        struct mrc_link *l = mrc_list_pop(&ep->reversing);
        ep_tx_reverse(ep, MRC_LIST_OWNER(l, struct ep_node, reverse), &out[n++], now);
    }
    return n;
}

bool mrc_ep_tx_pending(const struct mrc_ep *ep)
{
    return ep->answer_out != ep->answer_in || !mrc_list_empty(&ep->telling) ||
           !mrc_list_empty(&ep->sending) || !mrc_list_empty(&ep->reversing);
}

/* ---- probes of our own ---- */

static int ep_post_one(struct mrc_ep *ep, const struct mrc_ep_req *req, mrc_ns now)
{
    const struct ep_node *n = ep_node(ep, req->path);
    const uint16_t entry = n != NULL ? mrc_path_find(n->table, req->ev) : MRC_EV_NONE;
    if (entry == MRC_EV_NONE)
        return MRC_ERR_NOENT;
    if ((req->dscp > 63 && req->dscp != MRC_EP_DSCP_CONTROL) || req->timeout_ns == 0 ||
        req->timeout_ns > MRC_EP_TIMEOUT_MAX_NS || req->service_time > 1)
        return MRC_ERR_INVAL;
    if (ep_find_probe(ep, n->peer.dst, req->id) != NULL)
        return MRC_ERR_BUSY;
    struct mrc_link *l = mrc_list_pop(&ep->unused);
    if (l == NULL)
        return MRC_ERR_FULL;
    struct ep_probe *q = MRC_LIST_OWNER(l, struct ep_probe, link);
    q->req = *req;
    q->entry = entry;
    q->step = EP_SEND;
    q->rsp = (struct mrc_ep_rsp){.rtt_ns = MRC_NEVER,
                                 .path = req->path,
                                 .ev = req->ev,
                                 .id = req->id,
                                 .plane = mrc_path_entry(n->table, entry)->plane};
    mrc_heap_set(&ep->timers, &q->timer, now + req->timeout_ns);
    mrc_list_push(&ep->sending, &q->link);
    return MRC_OK;
}

int mrc_ep_post(struct mrc_ep *ep, const struct mrc_ep_req *req, int n, mrc_ns now)
{
    for (int i = 0; i < n; i++) {
        const int err = ep_post_one(ep, &req[i], now);
        if (err != MRC_OK)
            return i > 0 ? i : err;
    }
    return n;
}

int mrc_ep_take(struct mrc_ep *ep, struct mrc_ep_rsp *out, int max)
{
    int n = 0;
    while (n < max && !mrc_list_empty(&ep->done)) {
        struct ep_probe *q = MRC_LIST_OWNER(mrc_list_pop(&ep->done), struct ep_probe, link);
        out[n++] = q->rsp;
        q->step = EP_FREE;
        mrc_list_push(&ep->unused, &q->link);
    }
    return n;
}
