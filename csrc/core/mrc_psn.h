/* SPDX-License-Identifier: BSD-2-Clause */
/* 24-bit packet sequence numbers. The only file where two PSNs are compared (MRC B.1).
 * A struct, so that "a < b" does not compile. */
#ifndef MRC_PSN_H
#define MRC_PSN_H

#include "mrc_base.h"

struct mrc_psn {
    uint32_t v; /* 0..0xFFFFFF */
};

static inline struct mrc_psn mrc_psn(uint32_t v)
{
    const struct mrc_psn p = {v & 0xFFFFFFu};
    return p;
}

/* p + n modulo 2^24; n may be negative. */
static inline struct mrc_psn mrc_psn_add(struct mrc_psn p, int32_t n)
{
    return mrc_psn(p.v + (uint32_t)n);
}

/* Signed distance a - b in [-2^23, 2^23). Positive: a comes after b. */
static inline int32_t mrc_psn_diff(struct mrc_psn a, struct mrc_psn b)
{
    return (int32_t)((a.v - b.v) << 8) >> 8;
}

static inline bool mrc_psn_eq(struct mrc_psn a, struct mrc_psn b) { return a.v == b.v; }
static inline bool mrc_psn_after(struct mrc_psn a, struct mrc_psn b)
{
    return mrc_psn_diff(a, b) > 0;
}

#endif
