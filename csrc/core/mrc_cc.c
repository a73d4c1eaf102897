/* SPDX-License-Identifier: BSD-2-Clause */
/* What all controllers share: parameters, inflight, the send rule; and the whole of NONE and FIXED.
 */
#include "mrc_nscc.h"

/* Defaults for a software stack; mrc_cc.h says why these. */
enum { CC_MTU_BYTES = 4096, CC_SACK_THRESHOLD_BYTES = 16384 };
static const uint64_t CC_LINK_BPS = 10000000000u;
static const mrc_ns CC_BASE_RTT_NS = 500 * MRC_USEC;

/* Bounds that keep every product of parameters far from the ends of double and uint64_t. */
static const uint64_t CC_LINK_BPS_MAX = 10000000000000u;
static const mrc_ns CC_RTT_MAX_NS = 10 * MRC_SEC;
#define CC_CWND_MAX_BYTES ((uint64_t)1 << 40)

static bool cc_ranges_ok(const struct mrc_cc_cfg *c)
{
    return c->kind <= MRC_CC_NSCC && c->mtu_bytes >= MRC_MTU_MIN && c->mtu_bytes <= MRC_MTU_MAX &&
           c->link_bps <= CC_LINK_BPS_MAX && c->base_rtt_ns <= CC_RTT_MAX_NS &&
           c->target_delay_ns <= CC_RTT_MAX_NS && c->adjust_period_ns <= CC_RTT_MAX_NS &&
           c->max_cwnd_bytes <= CC_CWND_MAX_BYTES;
}

int mrc_cc_init(struct mrc_cc *cc, const struct mrc_cc_cfg *cfg, mrc_ns now)
{
    struct mrc_cc_cfg c = *cfg;
    if (c.mtu_bytes == 0)
        c.mtu_bytes = CC_MTU_BYTES;
    if (c.link_bps == 0)
        c.link_bps = CC_LINK_BPS;
    if (c.base_rtt_ns == 0) {
        c.base_rtt_ns = CC_BASE_RTT_NS;
        c.steady = true;
    }
    if (c.target_delay_ns == 0)
        c.target_delay_ns = c.trimming ? c.base_rtt_ns - c.base_rtt_ns / 4 : c.base_rtt_ns;
    if (c.sack_threshold_bytes == 0)
        c.sack_threshold_bytes = CC_SACK_THRESHOLD_BYTES;
    if (!cc_ranges_ok(&c) || !mrc_nscc_defaults(&c))
        return MRC_ERR_INVAL;
    memset(cc, 0, sizeof *cc);
    cc->cfg = c;
    mrc_nscc_init(cc, cfg, now);
    return MRC_OK;
}

uint64_t mrc_cc_cwnd(const struct mrc_cc *cc)
{
    switch ((enum mrc_cc_kind)cc->cfg.kind) {
    case MRC_CC_NONE: return UINT64_MAX;
    case MRC_CC_FIXED: return cc->cfg.max_cwnd_bytes;
    case MRC_CC_NSCC: return (uint64_t)(int64_t)cc->nscc.cwnd; /* signed is one instruction */
    }
    MRC_ASSERT(false);
}

uint64_t mrc_cc_max_wnd(const struct mrc_cc *cc)
{
    return cc->cfg.kind == MRC_CC_NSCC ? (uint64_t)cc->nscc.max_wnd : mrc_cc_cwnd(cc);
}

bool mrc_cc_wants_base_rtt(struct mrc_cc *cc)
{
    const bool wants = cc->cfg.kind == MRC_CC_NSCC && !cc->base_rtt_asked;
    cc->base_rtt_asked = true;
    return wants;
}

void mrc_cc_on_base_rtt(struct mrc_cc *cc, mrc_ns rtt)
{
    if (cc->cfg.kind == MRC_CC_NSCC)
        mrc_nscc_on_base_rtt(cc, rtt);
}

struct mrc_cc_credit mrc_cc_credit(const struct mrc_cc *cc)
{
    struct mrc_cc_credit k = {.cwnd = mrc_cc_cwnd(cc), .room = cc->cfg.mtu_bytes};
    if (cc->cfg.kind == MRC_CC_NONE)
        k.room = 0;
    else if (k.cwnd < cc->cfg.sack_threshold_bytes)
        k.room = k.cwnd + 1; /* whatever is used */
    return k;
}

bool mrc_cc_can_send(const struct mrc_cc *cc, uint32_t bytes)
{
    const struct mrc_cc_credit k = mrc_cc_credit(cc);
    return mrc_cc_may_send(cc, &k, bytes);
}

void mrc_cc_on_send(struct mrc_cc *cc, uint32_t bytes) { cc->inflight += bytes; }

bool mrc_cc_want_ack(const struct mrc_cc *cc)
{
    const struct mrc_cc_credit k = mrc_cc_credit(cc);
    return mrc_cc_asks(cc, &k);
}

void mrc_cc_on_sack(struct mrc_cc *cc, const struct mrc_cc_sack *s)
{
    cc->inflight -= s->new_bytes;
    if (cc->cfg.kind == MRC_CC_NSCC)
        mrc_nscc_on_sack(cc, s);
}

void mrc_cc_on_nack(struct mrc_cc *cc, uint32_t bytes, bool trimmed, bool rtt_valid, mrc_ns rtt,
                    mrc_ns now)
{
    cc->inflight -= bytes;
    if (cc->cfg.kind == MRC_CC_NSCC)
        mrc_nscc_on_nack(cc, bytes, trimmed, rtt_valid, rtt, now);
}

void mrc_cc_on_loss(struct mrc_cc *cc, uint32_t bytes, mrc_ns now)
{
    cc->inflight -= bytes;
    if (cc->cfg.kind == MRC_CC_NSCC)
        mrc_nscc_on_loss(cc, bytes, now);
}

void mrc_cc_on_go_back(struct mrc_cc *cc, uint32_t bytes, mrc_ns rtt, mrc_ns now)
{
    cc->inflight -= bytes;
    if (cc->cfg.kind == MRC_CC_NSCC)
        mrc_nscc_on_go_back(cc, bytes, rtt, now);
}

void mrc_cc_release(struct mrc_cc *cc, int64_t bytes) { cc->inflight -= bytes; }

mrc_ns mrc_cc_base_rtt(const struct mrc_cc *cc)
{
    return cc->cfg.kind == MRC_CC_NSCC ? (mrc_ns)cc->nscc.scale_rtt_ns : cc->cfg.base_rtt_ns;
}

mrc_ns mrc_cc_target_delay(const struct mrc_cc *cc) { return cc->cfg.target_delay_ns; }

bool mrc_cc_knows_fabric(const struct mrc_cc *cc)
{
    return cc->cfg.kind == MRC_CC_NSCC && (cc->nscc.follow_rtt || cc->nscc.marks);
}

mrc_ns mrc_cc_shortest_rtt(const struct mrc_cc *cc)
{
    return cc->cfg.kind == MRC_CC_NSCC ? (mrc_ns)cc->nscc.base_rtt_ns : cc->cfg.base_rtt_ns;
}

mrc_ns mrc_cc_avg_delay(const struct mrc_cc *cc) { return (mrc_ns)cc->nscc.avg_delay_ns; }
