/* SPDX-License-Identifier: BSD-2-Clause */
/* Which PSNs have arrived (MRC B.3) and what a SACK says of them (B.4). Knows no packet and no
 * memory. A packet is accepted once; every verdict is about one PSN. */
#ifndef MRC_RXTRACK_H
#define MRC_RXTRACK_H

#include "mrc_bits.h"
#include "mrc_psn.h"

enum mrc_rx_verdict {
    MRC_RX_NEW,
    MRC_RX_DUPLICATE,  /* arrived before */
    MRC_RX_OOR_WINDOW, /* just beyond the window: NACK (H8) */
    MRC_RX_STALE,      /* so far away that it is no packet of this flow */
};

struct mrc_rxtrack {
    struct mrc_bits got;     /* arrived, above cack */
    struct mrc_bits ar;      /* of those: had BTH.A */
    struct mrc_bits last;    /* of those: last packet of its message */
    struct mrc_bits news;    /* of those: no SACK has reported it */
    struct mrc_psn cack;     /* it and everything before has arrived */
    struct mrc_psn max_rcv;  /* highest that has arrived */
    struct mrc_psn unsacked; /* no news in (cack, unsacked) */
    struct mrc_psn message;  /* where the message begins that cack + 1 belongs to */
    uint32_t window;         /* PSNs above cack that are accepted */
    uint32_t target;         /* what window shrinks to while cack moves: MPR x 128 */
    uint32_t capacity;       /* of the bit rings */
    uint32_t ooo_count;      /* arrived above cack */
    uint32_t news_count;     /* bits in news */
    uint64_t rcvd_bytes;     /* nominal sizes of all new packets */
};

struct mrc_rx_advance {
    uint32_t psns;     /* by how much cack moved */
    uint32_t messages; /* last packets it passed */
    bool ar_passed;    /* it passed a packet with BTH.A: a transport ACK is due (B.6) */
};

struct mrc_sack_map {
    int16_t offset; /* PSN of bit 0 = cack + offset */
    uint64_t bitmap;
    bool more; /* arrived PSNs remain that no SACK has reported */
};

/* Memory for a tracker that can be given windows of up to window_max PSNs. */
size_t mrc_rxtrack_bytes(uint32_t window_max);
void mrc_rxtrack_init(struct mrc_rxtrack *t, void *mem, uint32_t window_max);
/* Start: the first PSN expected is rq_psn. window <= window_max. */
void mrc_rxtrack_start(struct mrc_rxtrack *t, struct mrc_psn rq_psn, uint32_t window);

/* Another window, at most window_max (B.12). It grows at once; when it shrinks, the right edge
 * stays where it was until cack has come close enough: a peer may have been told of it. */
void mrc_rxtrack_resize(struct mrc_rxtrack *t, uint32_t window);

enum mrc_rx_verdict mrc_rxtrack_classify(const struct mrc_rxtrack *t, struct mrc_psn psn);
/* psn must be MRC_RX_NEW. nominal_bytes: E.1. */
struct mrc_rx_advance mrc_rxtrack_accept(struct mrc_rxtrack *t, struct mrc_psn psn,
                                         uint32_t nominal_bytes, bool ar, bool last);
/* Is psn the next, and nothing has arrived above it? Then it is new. */
static inline bool mrc_rxtrack_is_next(const struct mrc_rxtrack *t, struct mrc_psn psn)
{
    return mrc_psn_diff(psn, t->cack) == 1 && t->ooo_count == 0;
}
/* accept for such a packet, in the middle of a message and without AR. */
void mrc_rxtrack_next(struct mrc_rxtrack *t, uint32_t nominal_bytes);
/* accept in two steps: between them all that has arrived is there and nothing has moved yet. */
void mrc_rxtrack_mark(struct mrc_rxtrack *t, struct mrc_psn psn, uint32_t nominal_bytes, bool ar,
                      bool last);
struct mrc_rx_advance mrc_rxtrack_advance(struct mrc_rxtrack *t);
/* How far the next advance will come. */
uint32_t mrc_rxtrack_run(const struct mrc_rxtrack *t);
/* First PSN of the message that psn, above cack, ends; everything before psn must be marked. */
struct mrc_psn mrc_rxtrack_message(const struct mrc_rxtrack *t, struct mrc_psn psn);
/* A copy of a packet above cack asks for the transport ACK that its original did not (B.6). */
void mrc_rxtrack_ask(struct mrc_rxtrack *t, struct mrc_psn psn);
/* Content of the SACK that leaves now; what it covers counts as reported from here on. */
struct mrc_sack_map mrc_rxtrack_sack(struct mrc_rxtrack *t);
/* CC_STATE.rcvd_bytes: rounded up, 256-byte units, 24 bits. */
uint32_t mrc_rxtrack_rcvd_units(const struct mrc_rxtrack *t);

#endif
