/* SPDX-License-Identifier: BSD-2-Clause */
/* NSCC's reactions (MRC E.3), called by mrc_cc.c after it has done the bookkeeping of inflight. */
#ifndef MRC_NSCC_H
#define MRC_NSCC_H

#include "mrc_cc.h"

/* Fill what the caller left zero in cfg->alpha..qa_threshold (E.4). false: a parameter is out of
 * range. */
bool mrc_nscc_defaults(struct mrc_cc_cfg *cfg);
void mrc_nscc_init(struct mrc_cc *cc, const struct mrc_cc_cfg *asked, mrc_ns now);
void mrc_nscc_on_sack(struct mrc_cc *cc, const struct mrc_cc_sack *s);
void mrc_nscc_on_nack(struct mrc_cc *cc, uint32_t bytes, bool trimmed, bool rtt_valid, mrc_ns rtt,
                      mrc_ns now);
void mrc_nscc_on_loss(struct mrc_cc *cc, uint32_t bytes, mrc_ns now);
void mrc_nscc_on_go_back(struct mrc_cc *cc, uint32_t bytes, mrc_ns rtt, mrc_ns now);
/* A sample of the round trip without queues (E.7). */
void mrc_nscc_on_base_rtt(struct mrc_cc *cc, mrc_ns rtt);

#endif
