/* SPDX-License-Identifier: BSD-2-Clause */
/* What mrc_qp_create and mrc_qp_modify refused, in words: which attributes, and why. */
#include "mrc_engine_int.h"

static const char *why_attr(uint32_t bit)
{
    switch (bit) {
    case MRC_QP_STATE: return "state";
    case MRC_QP_ACCESS: return "access";
    case MRC_QP_AV: return "dest_qpn or path_mtu";
    case MRC_QP_RQ_PSN: return "rq_psn";
    case MRC_QP_SQ_PSN: return "sq_psn";
    case MRC_QP_PATH: return "path";
    case MRC_QP_CC: return "cc";
    case MRC_QP_MPR: return "mpr";
    case MRC_QP_MPR_DEST: return "mpr_dest";
    case MRC_QP_WIMM: return "max_wimm";
    case MRC_QP_WIMM_DEST: return "max_wimm_dest";
    case MRC_QP_TIMEOUT: return "timeout";
    case MRC_QP_RETRY: return "linear_cnt or exp_cnt";
    case MRC_QP_SACK: return "sack_threshold";
    case MRC_QP_TRAIN: return "train_max";
    case MRC_QP_CAP: return "cap";
    case MRC_QP_TIMESTAMPS: return "timestamps";
    case MRC_QP_RECOVERY: return "recovery";
    case MRC_QP_RX_PAUSED: return "rx_paused";
    case MRC_QP_RX_PENALTY: return "rx_penalty";
    case MRC_QP_HINT: return "hint";
    case MRC_QP_VENDOR: return "vendor";
    case MRC_QP_VERSION: return "version";
    case MRC_QP_MODE: return "mode";
    default: return "an unknown attribute";
    }
}

static const char *why_text(uint8_t why)
{
    switch ((enum mrc_qp_why)why) {
    case MRC_QP_WHY_NONE: break;
    case MRC_QP_WHY_RANGE: return "out of range";
    case MRC_QP_WHY_NOENT: return "no such object";
    case MRC_QP_WHY_MISSING: return "missing";
    case MRC_QP_WHY_PLACE: return "not taken in this state or transition";
    case MRC_QP_WHY_FIXED: return "fixed from RTR on, without dynamic MPR";
    case MRC_QP_WHY_QUEUED: return "an immediate is queued that could never leave";
    case MRC_QP_WHY_OVERRUN: return "its completion queue has overrun and takes nothing any more";
    case MRC_QP_WHY_ONE_PATH: return "mode rc has one EV, the table has several";
    }
    return "refused";
}

struct why_out {
    char *at;
    size_t left; /* with the final zero */
};

static void why_put(struct why_out *o, const char *s)
{
    for (; *s != 0 && o->left > 1; s++, o->left--)
        *o->at++ = *s;
}

size_t mrc_qp_refusal(const struct mrc_engine *e, uint32_t qpn, int err, char *out, size_t size)
{
    const struct mrc_qp *q = mrc_engine_qp(e, qpn);
    struct why_out o = {out, size};
    if (size == 0)
        return 0;
    if (qpn == 0 && err == MRC_ERR_STATE) {
        why_put(&o, why_text(MRC_QP_WHY_OVERRUN));
    } else if (q != NULL && q->refused != 0) {
        const char *between = "";
        for (uint32_t rest = q->refused; rest != 0; rest &= rest - 1) {
            why_put(&o, between);
            why_put(&o, why_attr(rest & (~rest + 1)));
            between = ", ";
        }
        why_put(&o, ": ");
        why_put(&o, why_text(q->refused_why));
    }
    *o.at = 0;
    return size - o.left;
}
