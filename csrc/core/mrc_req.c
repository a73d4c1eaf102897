/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_req.h"

enum {
    REQ_AHEAD_MAX = 1 << 22, /* PSNs sent beyond the last of the oldest request */
    REQ_TRAIN_BYTES = 65527, /* what one UDP message holds */
    REQ_TRAIN_PATHS = 16,    /* trains under way that are even enough over the planes */
};
#define MRC_TRAIN_NS (32 * MRC_USEC) /* a train that passes in this time is not too long */

/* ---- creation ---- */

size_t mrc_req_bytes(uint32_t window_max, uint32_t sq_depth, uint16_t ev_max)
{
    return mrc_align(mrc_txtrack_bytes(window_max, MRC_SLOTS_OWN, ev_max)) +
           mrc_align(mrc_pow2(sq_depth) * sizeof(struct mrc_wqe));
}

void mrc_req_init(struct mrc_req *r, void *mem, uint32_t window_max, uint32_t sq_depth,
                  uint16_t ev_max, uint64_t seed)
{
    uint8_t *m = mem;
    memset(r, 0, sizeof *r);
    mrc_txtrack_init(&r->tx, m, window_max, MRC_SLOTS_OWN, ev_max);
    m += mrc_align(mrc_txtrack_bytes(window_max, MRC_SLOTS_OWN, ev_max));
    r->sq = (struct mrc_wqe *)(void *)m;
    r->sq_mask = mrc_pow2(sq_depth) - 1;
    r->sq_depth = sq_depth;
    mrc_path_cursor_init(&r->cursor, seed);
    r->no_path_since = MRC_NEVER;
    r->probe_at = MRC_NEVER;
    r->ack_at = MRC_NEVER;
    r->train_ev = MRC_EV_NONE;
}

void mrc_req_set_window(struct mrc_req *r, uint16_t mpr)
{
    r->window_own = (uint32_t)mpr * MRC_MPR_UNIT;
    r->window = r->window_own;
}

void mrc_req_start(struct mrc_req *r, struct mrc_psn sq_psn, mrc_ns now)
{
    mrc_txtrack_start(&r->tx, sq_psn);
    r->head = r->next = r->tail = 0;
    r->backlog = 0;
    r->next_pkt = 0;
    r->msn = 0;
    r->rqmsn = 0;
    r->wimm_out = 0;
    r->retry = 0;
    r->nack_counted_ns = 0;
    r->backoff = 0;
    r->backoff_ns = now;
    r->retry_spent_ns = now;
    r->report_max_ns = 0;
    r->srtt_ns = 0;
    r->report_min_ns = MRC_NEVER;
    r->prev_rcvd = 0;
    r->inflight = 0;
    r->parked = 0;
    r->train_ev = MRC_EV_NONE;
    r->train_left = 0;
    r->probe_at = MRC_NEVER;
    r->probe_shift = 0;
    r->probe_due = false;
    memset(r->probes, 0, sizeof r->probes);
    r->base_probe_due = false;
    r->no_path_since = MRC_NEVER;
    r->ack_at = MRC_NEVER;
    r->ack_shift = 0;
    r->ack_query_due = false;
    r->recovering = false;
    mrc_req_room_start(r);
    r->news_ns = 0;
    r->quiet_since = now;
    r->stalled_since = MRC_NEVER;
    r->ack_retry = 0;
    r->error = MRC_WC_SUCCESS;
}

/* ---- posting ---- */

int mrc_req_post(struct mrc_req *r, const struct mrc_req_ctx *c, const struct mrc_send_wr *wr)
{
    if (wr->opcode > MRC_WR_RDMA_WRITE_WITH_IMM || wr->length > (uint32_t)MRC_MSG_BYTES_MAX)
        return MRC_ERR_INVAL;
    if (wr->opcode == MRC_WR_RDMA_WRITE_WITH_IMM && r->max_wimm == 0)
        return MRC_ERR_INVAL;
    if (r->tail - r->head >= r->sq_depth)
        return MRC_ERR_FULL;
    const uint8_t *from = NULL;
    if (wr->length > 0) {
        struct mrc_mr *mr = mrc_mr_find(&c->env->mrs, wr->lkey, c->pd);
        if (mr == NULL || !mrc_mr_allows(mr, wr->laddr, wr->length, 0))
            return MRC_ERR_ACCESS;
        mr->refs++;
        from = mrc_mr_at(mr, wr->laddr);
    }
    struct mrc_wqe *w = &r->sq[r->tail++ & r->sq_mask];
    memset(w, 0, sizeof *w);
    w->wr_id = wr->wr_id;
    w->from = from;
    w->raddr = wr->raddr;
    w->length = wr->length;
    w->lkey = wr->lkey;
    w->rkey = wr->rkey;
    w->imm = wr->imm;
    w->opcode = wr->opcode;
    w->flags = wr->flags;
    w->npkts = wr->length == 0 ? 1 : (wr->length - 1) / c->peer->path_mtu + 1;
    r->backlog += w->npkts;
    c->cc->queued += w->npkts;
    return MRC_OK;
}

/* ---- building ---- */

static uint8_t req_opcode(const struct mrc_wqe *w, uint32_t k)
{
    const bool first = k == 0;
    const bool last = k == w->npkts - 1;
    const bool imm = w->opcode == MRC_WR_RDMA_WRITE_WITH_IMM;
    if (first && last)
        return imm ? MRC_OP_WRITE_ONLY_IMM : MRC_OP_WRITE_ONLY;
    if (last)
        return imm ? MRC_OP_WRITE_LAST_IMM : MRC_OP_WRITE_LAST;
    return first ? MRC_OP_WRITE_FIRST : MRC_OP_WRITE_MIDDLE;
}

static uint32_t req_payload_len(const struct mrc_wqe *w, uint32_t k, uint32_t mtu)
{
    return mrc_min32(w->length - k * mtu, mtu);
}

/* Packet k of a work request; all but A, rtx and the EV follow from it. */
static void req_build(const struct mrc_req *r, const struct mrc_req_ctx *c, const struct mrc_wqe *w,
                      uint32_t k, bool ar, bool rtx, uint16_t ev, struct mrc_tx_pkt *out)
{
    struct mrc_pkt p;
    const uint32_t mtu = c->peer->path_mtu;
    memset(&p, 0, sizeof p);
    p.opcode = req_opcode(w, k);
    p.psn = mrc_psn_add(w->first, (int32_t)k).v;
    p.a = ar;
    p.rtx = rtx;
    if (r->timestamps) { /* A.5; tsr 0: 128 ns (H22) */
        p.ts = true;
        p.tx_timestamp = (uint16_t)mrc_tick(c->now);
        p.ftype = 1;
    }
    p.se = k == w->npkts - 1 && (w->flags & MRC_SEND_SOLICITED) != 0;
    p.msn = w->msn;
    p.rqmsn = w->rqmsn;
    p.va = w->raddr + (uint64_t)k * mtu;
    p.r_key = w->rkey;
    p.dmalen = w->length;
    p.imm = w->imm;
    p.payload_len = req_payload_len(w, k, mtu);
    p.payload = p.payload_len > 0 ? w->from + (size_t)k * mtu : NULL;
    const uint8_t tclass = mrc_env_tclass(c->env, c->no_trim, rtx);
    mrc_emit(c->env, c->peer, mrc_path_entry(c->path, ev), tclass, &p, out);
    out->train = r->train_max;
    c->stats->packets_sent++;
    c->stats->bytes_sent += p.payload_len;
    if (rtx)
        c->stats->packets_retransmitted++;
    mrc_path_on_sent(c->path, ev, p.payload_len, rtx);
}

/* ---- what may leave next ---- */

/* How many packets may follow each other on one EV. So bulk gets offload and short messages get
 * spraying. Never more than the EV's fair share of what is queued and of the window. The queue
 * counts, not the message: a train goes on in the next one, for if trains were cut where messages
 * end, sizes that beat against the rotation of the planes would load some twice as much as others.
 * And all that the QPs of the controller have queued counts: each has its own place in the
 * rotation, so that many with little to send load the paths as evenly as one with much (ADR 124).
 * And of that share a quarter where time allows, so that a path is not idle while the others have
 * their turns, nor finds its whole window in its queue at once; but what passes in MRC_TRAIN_NS
 * saves nothing by being cut. Where nobody knows the fabric and it does not mark, the round trip
 * may be that of a busy host, which wants long trains (ADR 114).
 * The share of one of very many paths would be less than a packet: that of REQ_TRAIN_PATHS is
 * enough to keep so many trains under way; and where time cuts, it leaves one packet more, or
 * single packets would never be fast enough for two (ADR 112). */
static uint16_t req_train_len(const struct mrc_req *r, const struct mrc_req_ctx *c,
                              uint32_t nominal)
{
    if (r->train_max != 0) /* 16 full packets would be two messages, of 15 and of one */
        return (uint16_t)mrc_min32(r->train_max, REQ_TRAIN_BYTES / nominal);
    const uint64_t active = mrc_max64(1, mrc_path_active(c->path));
    const bool many = active > REQ_TRAIN_PATHS;
    const uint64_t cwnd = mrc_min64(mrc_cc_cwnd(c->cc), (uint64_t)r->window * nominal) / nominal;
    const uint64_t queued = mrc_min64(cwnd, c->cc->queued);
    const uint64_t share = queued / (many ? REQ_TRAIN_PATHS : active);
    const uint64_t most = mrc_max64(1, mrc_min64(share, MRC_TRAIN_MAX - 1));
    if (r->srtt_ns == 0 || !mrc_cc_knows_fabric(c->cc))
        return (uint16_t)most;
    const uint64_t timed = cwnd * MRC_TRAIN_NS / r->srtt_ns + (many ? 1 : 0);
    return (uint16_t)mrc_min64(most, mrc_max64(mrc_max64(1, queued / active / 4), timed));
}

static uint16_t req_select(struct mrc_req *r, const struct mrc_req_ctx *c, uint16_t avoid)
{
    const uint16_t ev = mrc_path_select(c->path, &r->cursor, UINT32_MAX, avoid, c->now);
    return ev < r->tx.ev_max ? ev : MRC_EV_NONE;
}

/* The EV of a new packet: the train's, while that lasts and its entry is still good. */
static uint16_t req_train_ev(struct mrc_req *r, const struct mrc_req_ctx *c, uint32_t nominal)
{
    if (r->train_left > 0 && mrc_path_state(c->path, r->train_ev) == MRC_EV_GOOD) {
        r->train_left--;
        return r->train_ev;
    }
    r->train_ev = req_select(r, c, MRC_EV_NONE);
    r->train_left = 0;
    if (r->train_ev != MRC_EV_NONE)
        r->train_left = (uint16_t)(req_train_len(r, c, nominal) - 1);
    return r->train_ev;
}

static void req_sent(struct mrc_req *r, const struct mrc_req_ctx *c, uint32_t nominal)
{
    mrc_cc_on_send(c->cc, nominal);
    r->inflight += nominal;
}

/* Is there a first transmission that MPR and the WIMM limit allow? */
static bool req_new_allowed(const struct mrc_req *r)
{
    if (r->next == r->tail)
        return false;
    const struct mrc_psn psn = mrc_psn_add(r->tx.max_sent, 1);
    if (mrc_psn_diff(psn, r->tx.unack) > mrc_req_reach(r))
        return false;
    const struct mrc_wqe *w = &r->sq[r->next & r->sq_mask];
    if (r->head != r->next && /* beyond, nobody could tell whether that one is behind or ahead */
        mrc_psn_diff(psn, mrc_wqe_last(&r->sq[r->head & r->sq_mask])) > REQ_AHEAD_MAX)
        return false;
    return r->next_pkt > 0 || w->opcode != MRC_WR_RDMA_WRITE_WITH_IMM || r->wimm_out < r->max_wimm;
}

static void req_begin(struct mrc_req *r, struct mrc_wqe *w)
{
    w->first = mrc_psn_add(r->tx.max_sent, 1);
    w->msn = ++r->msn;
    if (w->opcode == MRC_WR_RDMA_WRITE_WITH_IMM) {
        w->rqmsn = ++r->rqmsn;
        r->wimm_out++;
    }
}

static enum mrc_req_block req_tx_new(struct mrc_req *r, const struct mrc_req_ctx *c,
                                     struct mrc_tx_pkt *out)
{
    struct mrc_wqe *w = &r->sq[r->next & r->sq_mask];
    const uint32_t k = r->next_pkt;
    const uint32_t len = req_payload_len(w, k, c->peer->path_mtu);
    const uint32_t nominal =
        mrc_nominal_bytes(mrc_data_hdr_len(req_opcode(w, k), r->timestamps), len);
    if (!mrc_cc_can_send(c->cc, nominal))
        return MRC_REQ_NO_CREDIT;
    const uint16_t ev = req_train_ev(r, c, nominal);
    if (ev == MRC_EV_NONE)
        return MRC_REQ_NO_PATH;
    if (k == 0)
        req_begin(r, w);
    const struct mrc_psn psn = mrc_psn_add(w->first, (int32_t)k);
    const bool last = k == w->npkts - 1;
    const uint32_t wqe = r->next;
    req_sent(r, c, nominal);
    struct mrc_slot *s = mrc_txtrack_sent(&r->tx, psn, wqe, ev, 0, (uint16_t)nominal, c->now);
    r->backlog--;
    c->cc->queued--;
    r->next_pkt++;
    if (last) {
        r->next++;
        r->next_pkt = 0;
    }
    /* B.2.4: on the last packet of a signalled request, and when nothing more can follow it. */
    s->ar = (last && (w->flags & MRC_SEND_SIGNALED) != 0) || !req_new_allowed(r) ||
            mrc_cc_want_ack(c->cc);
    req_build(r, c, w, k, s->ar, false, ev, out);
    return MRC_REQ_SENT;
}

static enum mrc_req_block req_tx_again(struct mrc_req *r, const struct mrc_req_ctx *c,
                                       struct mrc_psn psn, struct mrc_tx_pkt *out)
{
    struct mrc_slot *s = mrc_txtrack_slot(&r->tx, psn);
    const struct mrc_wqe *w = &r->sq[s->wqe & r->sq_mask];
    if (!mrc_cc_can_send(c->cc, s->nominal))
        return MRC_REQ_NO_CREDIT;
    const uint16_t ev = req_select(r, c, s->ev); /* B.2.3: a new EV */
    if (ev == MRC_EV_NONE)
        return MRC_REQ_NO_PATH;
    req_sent(r, c, s->nominal);
    mrc_txtrack_sent(&r->tx, psn, s->wqe, ev, mrc_env_retx_class(c->env, c->no_trim), s->nominal,
                     c->now);
    req_build(r, c, w, (uint32_t)mrc_psn_diff(psn, w->first), s->ar, true, ev, out);
    return MRC_REQ_SENT;
}

/* H16: all data of the oldest request has arrived but it did not complete: ask again with its last
 * packet, which the responder answers as a duplicate. */
static bool req_tx_ack_query(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_tx_pkt *out)
{
    r->ack_query_due = false;
    if (r->head == r->next)
        return false;
    const struct mrc_wqe *w = &r->sq[r->head & r->sq_mask];
    if (mrc_psn_diff(mrc_wqe_last(w), r->tx.unack) > 0)
        return false;
    const uint16_t ev = req_select(r, c, MRC_EV_NONE);
    if (ev == MRC_EV_NONE)
        return false;
    req_build(r, c, w, w->npkts - 1, true, true, ev, out);
    return true;
}

static void req_probe_packet(const struct mrc_req_ctx *c, uint16_t ev, uint16_t id, uint8_t tclass,
                             struct mrc_tx_pkt *out)
{
    struct mrc_pkt p;
    memset(&p, 0, sizeof p);
    p.opcode = MRC_OP_PROBE;
    p.probe_id = id;
    p.ftype = 1;
    p.tx_timestamp = (uint16_t)mrc_tick(c->now);
    mrc_emit(c->env, c->peer, mrc_path_entry(c->path, ev), tclass, &p, out);
    c->stats->probes_sent++;
}

void mrc_req_path_probe(struct mrc_req *r, const struct mrc_req_ctx *c, uint16_t ev, uint16_t id,
                        struct mrc_tx_pkt *out)
{
    (void)r;
    req_probe_packet(c, ev, id, mrc_env_tclass(c->env, c->no_trim, false), out);
}

/* A probe of this QP: `base` for the round trip without queues (E.7), else for the tail (B.11). */
static bool req_tx_probe(struct mrc_req *r, const struct mrc_req_ctx *c, bool base,
                         struct mrc_tx_pkt *out)
{
    const uint16_t ev = req_select(r, c, MRC_EV_NONE);
    if (ev == MRC_EV_NONE)
        return false;
    const uint16_t seq = r->probe_seq++;
    const struct mrc_req_probe rec = {c->now, (uint16_t)(MRC_PROBE_ID_TAIL | (seq & 0x7FFF)), ev,
                                      base};
    r->probes[seq % MRC_PROBE_RING] = rec;
    const uint8_t data = mrc_env_tclass(c->env, c->no_trim, false);
    req_probe_packet(c, ev, rec.id, base ? c->env->tclass_control : data, out);
    return true;
}

static bool req_tx_tail_probe(struct mrc_req *r, const struct mrc_req_ctx *c,
                              struct mrc_tx_pkt *out)
{
    r->probe_due = false;
    return mrc_txtrack_outstanding(&r->tx) > 0 && req_tx_probe(r, c, false, out);
}

static bool req_tx_base_probe(struct mrc_req *r, const struct mrc_req_ctx *c,
                              struct mrc_tx_pkt *out)
{
    r->base_probe_due = false;
    return req_tx_probe(r, c, true, out);
}

/* rcvd_bytes counts in units of 256, so a share that should be nothing may be a little: with a
 * window of one packet that little would forbid the next one for ever. */
static void req_settle(struct mrc_req *r, const struct mrc_req_ctx *c)
{
    if (r->tx.inflight_count > 0 || r->inflight == 0)
        return;
    mrc_cc_release(c->cc, r->inflight);
    r->inflight = 0;
}

/* Since when nothing has come of what is out; not counting the time in which nothing was in flight
 * because nothing might leave. `first`: nothing had been out before this transmission. */
static void req_quiet(struct mrc_req *r, const struct mrc_req_ctx *c, bool first, bool sent)
{
    if (sent) {
        if (first)
            r->quiet_since = c->now;
        else if (r->stalled_since != MRC_NEVER)
            r->quiet_since = mrc_min64(c->now, r->quiet_since + c->now - r->stalled_since);
        r->stalled_since = MRC_NEVER;
    } else if (r->tx.head == MRC_SLOT_NIL && r->stalled_since == MRC_NEVER) {
        r->stalled_since = c->now;
    }
}

enum mrc_req_block mrc_req_tx(struct mrc_req *r, const struct mrc_req_ctx *c,
                              struct mrc_tx_pkt *out)
{
    req_settle(r, c);
    if (r->base_probe_due && req_tx_base_probe(r, c, out))
        return MRC_REQ_SENT;
    if (r->probe_due && req_tx_tail_probe(r, c, out))
        return MRC_REQ_SENT;
    if (r->ack_query_due && req_tx_ack_query(r, c, out))
        return MRC_REQ_SENT;
    struct mrc_psn psn;
    enum mrc_req_block why = MRC_REQ_IDLE;
    const bool first = mrc_txtrack_outstanding(&r->tx) == 0;
    if (r->hold_at != MRC_NEVER) {
        req_quiet(r, c, first, false);
        return MRC_REQ_IDLE;
    }
    const bool parked = r->parked != 0;
    mrc_req_unpark(r, c); /* what it lent counts for its own packets */
    /* B.2.3: oldest gap first; one beyond a shrunk window has to wait. */
    if (mrc_txtrack_next_lost(&r->tx, &psn) && mrc_psn_diff(psn, r->tx.unack) <= mrc_req_reach(r))
        why = req_tx_again(r, c, psn, out);
    else if (req_new_allowed(r))
        why = req_tx_new(r, c, out);
    req_quiet(r, c, first, why == MRC_REQ_SENT);
    if (why == MRC_REQ_SENT && r->probe_at == MRC_NEVER && !c->in_order)
        mrc_req_rearm(r, c);
    if (parked && why != MRC_REQ_SENT) {
        mrc_req_park(r, c);
        if (why == MRC_REQ_NO_CREDIT)
            why = MRC_REQ_IDLE; /* held back by its own; there is room for the others */
    }
    if (why == MRC_REQ_SENT)
        r->no_path_since = MRC_NEVER;
    else if (why == MRC_REQ_NO_PATH && r->no_path_since == MRC_NEVER)
        r->no_path_since = c->now;
    return why;
}

/* ---- the next ones ---- */

/* How many more of the message that is being cut leave whatever else happens in this turn, credit
 * and a path given: short of its last packet, and of the last that the window allows, which has an
 * AR. What waits to leave again goes first. */
static uint32_t req_more(const struct mrc_req *r, size_t max)
{
    if (r->next_pkt == 0 || r->tx.lost_count > 0)
        return 0;
    const struct mrc_psn at = r->tx.max_sent;
    int32_t room = mrc_req_reach(r) - mrc_psn_diff(at, r->tx.unack);
    if (r->head != r->next) {
        const struct mrc_psn last = mrc_wqe_last(&r->sq[r->head & r->sq_mask]);
        const int32_t ahead = REQ_AHEAD_MAX - mrc_psn_diff(at, last);
        room = ahead < room ? ahead : room;
    }
    const uint32_t left = r->sq[r->next & r->sq_mask].npkts - 1 - r->next_pkt;
    return room < 2 ? 0 : (uint32_t)mrc_min64(mrc_min32(left, (uint32_t)room - 1), max);
}

/* What is the same for the packets of one train. */
struct req_train {
    uint16_t ev;
    uint32_t left; /* packets that may still go on it */
    uint32_t sent;
    uint32_t icrc; /* up to the BTH */
};

static void req_train_end(struct req_train *t, const struct mrc_req_ctx *c)
{
    if (t->sent > 0)
        mrc_path_on_sent_more(c->path, t->ev, t->sent, c->peer->path_mtu);
    c->cc->queued -= t->sent; /* the length of the next one depends on it */
    t->sent = 0;
}

/* The next train, for which *out is made ready, all but its packet. False: no path. */
static bool req_train_begin(struct req_train *t, struct mrc_req *r, const struct mrc_req_ctx *c,
                            uint32_t nominal, struct mrc_tx_pkt *out)
{
    req_train_end(t, c);
    t->ev = req_train_ev(r, c, nominal);
    if (t->ev == MRC_EV_NONE)
        return false;
    t->left = 1;
    if (r->train_left > 0 && mrc_path_state(c->path, t->ev) == MRC_EV_GOOD) {
        t->left += r->train_left;
        r->train_left = 0;
    }
    t->icrc = mrc_emit_by(c->env, c->peer, mrc_path_entry(c->path, t->ev), out);
    return true;
}

MRC_FLAT size_t mrc_req_tx_more(struct mrc_req *r, const struct mrc_req_ctx *c,
                                struct mrc_tx_pkt *out, size_t max)
{
    const uint32_t most = req_more(r, max);
    const uint32_t mtu = c->peer->path_mtu;
    const uint32_t nominal =
        mrc_nominal_bytes(mrc_data_hdr_len(MRC_OP_WRITE_MIDDLE, r->timestamps), mtu);
    const struct mrc_cc_credit credit = mrc_cc_credit(c->cc);
    struct req_train t = {.ev = MRC_EV_NONE};
    uint64_t va = r->sq[r->next & r->sq_mask].raddr + (uint64_t)r->next_pkt * mtu;
    uint32_t n = 0;
    for (; n < most && mrc_cc_may_send(c->cc, &credit, nominal); n++, va += mtu, out++) {
        *out = out[-1];
        if (t.left == 0 && !req_train_begin(&t, r, c, nominal, out))
            break;
        struct mrc_slot *s = mrc_txtrack_sent_next(&r->tx, t.ev);
        t.left--;
        t.sent++;
        mrc_cc_on_send(c->cc, nominal);
        s->ar = mrc_cc_asks(c->cc, &credit);
        out->payload += mtu;
        mrc_emit_middle(c->env, t.icrc, s->psn, s->ar, va, out);
    }
    req_train_end(&t, c);
    r->train_left = (uint16_t)(r->train_left + t.left);
    r->next_pkt += n;
    r->backlog -= n;
    r->inflight += (int64_t)n * nominal;
    c->stats->packets_sent += n;
    c->stats->bytes_sent += (uint64_t)n * mtu;
    return n;
}

/* ---- the end ---- */

void mrc_req_flush(struct mrc_req *r, const struct mrc_req_ctx *c, enum mrc_wc_status cause)
{
    enum mrc_wc_status status = cause;
    for (; r->head != r->tail; r->head++) {
        struct mrc_wqe *w = &r->sq[r->head & r->sq_mask];
        const struct mrc_wc wc = {
            .wr_id = w->wr_id, .qpn = c->peer->qpn, .byte_len = 0, .status = (uint8_t)status};
        if (w->length > 0)
            mrc_mr_find(&c->env->mrs, w->lkey, c->pd)->refs--;
        mrc_cq_push(&c->env->cqs, c->send_cq, &wc);
        status = MRC_WC_WR_FLUSH_ERR;
    }
    if (c->cc != NULL) {
        mrc_cc_release(c->cc, r->inflight);
        c->cc->queued -= r->backlog;
    }
    r->inflight = r->parked = 0;
    r->next = r->tail;
    r->next_pkt = 0;
    r->backlog = 0;
    r->no_path_since = MRC_NEVER;
    r->probe_at = MRC_NEVER;
    r->ack_at = MRC_NEVER;
    r->hold_at = MRC_NEVER;
    r->probe_due = r->base_probe_due = r->ack_query_due = false;
    mrc_txtrack_narrow(&r->tx, &c->env->pool);
    mrc_txtrack_start(&r->tx, mrc_psn_add(r->tx.max_sent, 1));
}
