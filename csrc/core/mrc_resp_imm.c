/* SPDX-License-Identifier: BSD-2-Clause */
/* Responder, immediates (B.8): they wait here until everything sent before them has arrived, each
 * takes a posted receive, and their numbers must fit their places. */
#include "mrc_resp.h"

/* ---- taking one in ---- */

/* The immediates are numbered one by one in the order of their PSNs, and each has at least one
 * packet: the later of two has the higher number, by no more than lies between them. */
static bool imm_follows(struct mrc_psn a, uint16_t number_a, struct mrc_psn b, uint16_t number_b)
{
    const int32_t packets = mrc_psn_diff(b, a);
    const uint16_t numbers = (uint16_t)(number_b - number_a);
    return numbers >= 1 && numbers <= packets;
}

/* Where in the stash it belongs. Arrivals are nearly in order, so the walk is short. */
static uint16_t imm_place(const struct mrc_resp *r, struct mrc_psn psn)
{
    uint16_t i = r->stash_count;
    while (i > 0 && mrc_psn_after(r->stash[i - 1].psn, psn))
        i--;
    return i;
}

static bool imm_number_fits(const struct mrc_resp *r, struct mrc_psn psn, uint16_t rqmsn)
{
    const uint16_t i = imm_place(r, psn);
    if (i < r->stash_count && !imm_follows(psn, rqmsn, r->stash[i].psn, r->stash[i].rqmsn))
        return false;
    if (i > 0)
        return imm_follows(r->stash[i - 1].psn, r->stash[i - 1].rqmsn, psn, rqmsn);
    /* Those between the last delivered and this one all lie above cack. */
    return !r->rqmsn_known || imm_follows(r->rx.cack, r->rqmsn_done, psn, rqmsn);
}

/* Those that have arrived, or all that must have left since the last one delivered: their number
 * tells of those still under way (H14). */
static bool imm_too_many(const struct mrc_resp *r, uint16_t rqmsn)
{
    if (r->stash_count >= r->max_wimm_dest || r->stash_count >= r->stash_max)
        return true;
    return r->rqmsn_known && (uint16_t)(rqmsn - r->rqmsn_done) > r->max_wimm_dest;
}

static uint32_t imm_room(const struct mrc_resp *r)
{
    if (r->stash == r->stash_own)
        return MRC_STASH_OWN;
    return ((uint32_t)MRC_POOL_UNIT << r->stash_order) / sizeof *r->stash;
}

static void imm_move(struct mrc_resp *r, struct mrc_env *env, struct mrc_imm_stash *to)
{
    struct mrc_imm_stash *const from = r->stash;
    memcpy(to, from, r->stash_count * sizeof *to);
    if (from != r->stash_own)
        mrc_resp_return(r, env, from, r->stash_order);
    r->stash = to;
}

/* A place in the stash. The last one is for that whose turn it is, which goes at once: so however
 * little is lent, it never has to wait. */
static bool imm_widen(struct mrc_resp *r, struct mrc_env *env, struct mrc_psn psn)
{
    if (r->stash_count + 1u < imm_room(r) || mrc_psn_diff(psn, r->rx.cack) == 1)
        return true;
    const bool lent = r->stash != r->stash_own;
    const uint8_t order = lent ? (uint8_t)(r->stash_order + 2) : 0;
    struct mrc_imm_stash *const to =
        mrc_resp_borrow(r, env, lent ? (uint32_t)1 << r->stash_order : 0, order);
    if (to == NULL)
        return false;
    imm_move(r, env, to);
    r->stash_order = order;
    return true;
}

void mrc_resp_imm_narrow(struct mrc_resp *r, struct mrc_env *env)
{
    if (r->stash != r->stash_own && r->stash_count <= MRC_STASH_OWN / 2)
        imm_move(r, env, r->stash_own);
}

bool mrc_resp_imm_admit(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                        uint32_t ev, enum mrc_resp_result *out)
{
    const struct mrc_psn psn = mrc_psn(p->psn);
    *out = MRC_RESP_OK;
    if (!imm_number_fits(r, psn, p->rqmsn)) {
        c->env->drops[MRC_DROP_RQMSN]++;
        return false;
    }
    if (imm_too_many(r, p->rqmsn)) {
        *out = mrc_resp_nak(r, c, psn, MRC_AETH_NAK_INVALID_REQUEST, ev, MRC_DROP_WIMM_LIMIT);
        return false;
    }
    if (!imm_widen(r, c->env, psn)) {
        c->env->drops[MRC_DROP_NO_BUFFER]++;
        mrc_resp_nack(r, c, p, ev, MRC_NACK_NO_PKT_BUFFER);
        return false;
    }
    return true;
}

void mrc_resp_imm_stash(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p)
{
    const struct mrc_psn psn = mrc_psn(p->psn);
    const struct mrc_imm_stash s = {.psn = psn,
                                    .imm = p->imm,
                                    .byte_len = p->payload_len,
                                    .rqmsn = p->rqmsn,
                                    .solicited = p->se,
                                    .only = (mrc_opcode_flags(p->opcode) & MRC_OPF_FIRST) != 0};
    const uint16_t i = imm_place(r, psn);
    memmove(&r->stash[i + 1], &r->stash[i], (size_t)(r->stash_count - i) * sizeof s);
    r->stash[i] = s;
    r->stash_count++;
    c->env->rx.imm_used++;
}

/* ---- giving them out ---- */

/* H21: dmalen may be the length of the packet or of the message, so it is not believed. All packets
 * but the last are as long as the path MTU, and the messages before this one have said where they
 * end. */
void mrc_resp_imm_measure(struct mrc_resp *r, const struct mrc_resp_ctx *c)
{
    const int32_t run = (int32_t)mrc_rxtrack_run(&r->rx);
    for (uint16_t n = 0; n < r->stash_count; n++) {
        struct mrc_imm_stash *s = &r->stash[n];
        if (mrc_psn_diff(s->psn, r->rx.cack) > run)
            return;
        if (s->only)
            continue;
        const struct mrc_psn first = mrc_rxtrack_message(&r->rx, s->psn);
        const uint64_t before = (uint64_t)((s->psn.v - first.v) & 0xFFFFFF) * c->peer->path_mtu;
        s->byte_len = (uint32_t)mrc_min64(before + s->byte_len, UINT32_MAX);
    }
}

static enum mrc_resp_result imm_deliver_one(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                            const struct mrc_imm_stash *s, uint32_t ev)
{
    struct mrc_wc wc = {.qpn = c->peer->qpn,
                        .byte_len = s->byte_len,
                        .imm = s->imm,
                        .status = MRC_WC_SUCCESS,
                        .opcode = MRC_WC_RECV_RDMA_WITH_IMM};
    wc.flags = (uint8_t)(MRC_WC_WITH_IMM | (s->solicited ? MRC_WC_SOLICITED : 0));
    r->rqmsn_done = s->rqmsn;
    r->rqmsn_known = true;
    if (!mrc_resp_take_recv(r, &wc.wr_id) || !mrc_cq_push(&c->env->cqs, c->recv_cq, &wc))
        return mrc_resp_nak(r, c, s->psn, MRC_AETH_NAK_REMOTE_OPERATION, ev, MRC_DROP_NO_RECV);
    return MRC_RESP_OK;
}

enum mrc_resp_result mrc_resp_imm_deliver(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                          uint32_t ev)
{
    uint16_t n = 0;
    enum mrc_resp_result result = MRC_RESP_OK;
    while (result == MRC_RESP_OK && n < r->stash_count &&
           mrc_psn_diff(r->stash[n].psn, r->rx.cack) <= 0)
        result = imm_deliver_one(r, c, &r->stash[n++], ev);
    if (n > 0) {
        r->stash_count = (uint16_t)(r->stash_count - n);
        c->env->rx.imm_used -= n;
        memmove(r->stash, r->stash + n, r->stash_count * sizeof *r->stash);
        mrc_resp_imm_narrow(r, c->env);
    }
    return result;
}

/* ---- receives ---- */

int mrc_resp_post_recv(struct mrc_resp *r, const uint64_t *wr_id, int n)
{
    int done = 0;
    while (done < n && r->rq_tail - r->rq_head <= r->rq_mask)
        r->rq[r->rq_tail++ & r->rq_mask] = wr_id[done++];
    return done;
}

bool mrc_resp_take_recv(struct mrc_resp *r, uint64_t *wr_id)
{
    if (r->rq_head == r->rq_tail)
        return false;
    *wr_id = r->rq[r->rq_head++ & r->rq_mask];
    return true;
}
