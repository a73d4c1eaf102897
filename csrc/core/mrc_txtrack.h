/* SPDX-License-Identifier: BSD-2-Clause */
/* Which PSNs are out, in what order they left and on which EV, and which must leave again
 * (MRC B.2, B.5, B.10). Knows no packet, no window, no path state.
 *
 * A slot per PSN that is out; a ring of few is the QP's own, and a larger one is borrowed while
 * more are (ADR 124). Slots in flight stand in two lists: all of them in send order, and those of
 * one EV (and class) in send order. Packets of one EV and class stay in order, so an
 * acknowledgement of a later one says that the earlier ones have either arrived or are lost. */
#ifndef MRC_TXTRACK_H
#define MRC_TXTRACK_H

#include "mrc_bits.h"
#include "mrc_pool.h"
#include "mrc_psn.h"

enum mrc_slot_state {
    MRC_SLOT_FREE = 0,
    MRC_SLOT_INFLIGHT,
    MRC_SLOT_LOST,  /* to be sent again */
    MRC_SLOT_ACKED, /* known received; freed when cack passes it */
};

enum { MRC_SLOT_NIL = 0xFFFF };

struct mrc_slot {
    mrc_ns sent_ns;      /* last transmission */
    uint64_t order;      /* running number of the transmission; never wraps */
    uint64_t first_tick; /* first transmission, in units of TSETH (A.5) */
    uint32_t psn;        /* which PSN the slot holds or held last */
    uint32_t wqe;        /* work request it belongs to, free-running index */
    uint16_t ev;         /* entry of the path table; of the last transmission */
    uint16_t nominal;    /* bytes, E.1 */
    uint16_t prev;       /* send order */
    uint16_t next;
    uint16_t ev_prev; /* send order on this EV and class */
    uint16_t ev_next;
    uint8_t state;   /* enum mrc_slot_state */
    uint8_t rtx;     /* times sent again, saturates */
    uint8_t cls;     /* 0 first transmission class, 1 retransmission class */
    bool ar : 1;     /* carries BTH.A; a retransmission repeats it */
    bool joined : 1; /* has left once, with the PSN before it: same EV, class, size and time */
};

/* Time in units of TSETH: 128 ns. 16 bits of it are sent (A.5). */
static inline mrc_ns mrc_tick(mrc_ns now) { return now / 128; }

struct mrc_ev_sent {
    uint64_t acked_order[2]; /* newest transmission known received, per class */
    bool acked_any[2];
    bool touched; /* in the list of those to look at */
    uint16_t touched_next;
    uint16_t head[2];
    uint16_t tail[2];
};

enum { MRC_SLOTS_OWN = 8 };

struct mrc_txtrack {
    struct mrc_slot *slot;
    struct mrc_ev_sent *ev;
    struct mrc_bits lost; /* PSNs in state LOST */
    uint32_t mask;        /* number of slots now - 1 */
    uint32_t lost_count;
    uint32_t inflight_count;
    uint32_t acked_count; /* state ACKED: known received above a gap */
    uint64_t order;
    uint64_t spurious; /* packets sent again although the original had arrived */
    uint16_t ev_max;
    uint16_t head; /* oldest transmission in flight */
    uint16_t tail;
    struct mrc_psn unack;     /* it and all before are known received */
    struct mrc_psn max_sent;  /* highest PSN ever sent */
    struct mrc_psn ar_passed; /* highest PSN with BTH.A that unack has reached */
    mrc_ns newest_acked_ns;   /* send time of the latest transmission known received */
    struct mrc_slot *own;
    uint32_t own_mask;
    uint8_t block_order;   /* of the block that is borrowed: slot != own */
    uint16_t touched_head; /* EVs to look at after the next SACK, in the order of their turns */
    uint16_t touched_tail;
    uint16_t touched_count;
};

/* own: slots that it keeps, a power of two, or more than the window has. */
size_t mrc_txtrack_bytes(uint32_t window_max, uint32_t own, uint16_t ev_max);
void mrc_txtrack_init(struct mrc_txtrack *t, void *mem, uint32_t window_max, uint32_t own,
                      uint16_t ev_max);
/* Nothing is borrowed. */
void mrc_txtrack_start(struct mrc_txtrack *t, struct mrc_psn sq_psn);

/* How far above unack a PSN may be out. */
static inline uint32_t mrc_txtrack_room(const struct mrc_txtrack *t) { return t->mask + 1; }
/* Room for so many PSNs above unack, if the pool has it; never more than the window. Pointers to
 * slots end here. */
void mrc_txtrack_widen(struct mrc_txtrack *t, struct mrc_pool *p, uint32_t room);
/* Give back what is borrowed; nothing is out, or what is will be forgotten by a start. */
void mrc_txtrack_narrow(struct mrc_txtrack *t, struct mrc_pool *p);
static inline bool mrc_txtrack_borrows(const struct mrc_txtrack *t) { return t->slot != t->own; }

/* This EV is to be looked at; and the next to look at, false: none. */
void mrc_txtrack_touch(struct mrc_txtrack *t, uint16_t ev);
bool mrc_txtrack_touched(struct mrc_txtrack *t, uint16_t *ev);

static inline struct mrc_slot *mrc_txtrack_slot(struct mrc_txtrack *t, struct mrc_psn psn)
{
    return &t->slot[psn.v & t->mask];
}
/* The slot when it is about this PSN (it may be acknowledged already), else NULL. */
struct mrc_slot *mrc_txtrack_find(struct mrc_txtrack *t, struct mrc_psn psn);

/* A packet leaves: the next new PSN, or one in state LOST. ev < ev_max. */
struct mrc_slot *mrc_txtrack_sent(struct mrc_txtrack *t, struct mrc_psn psn, uint32_t wqe,
                                  uint16_t ev, uint8_t cls, uint16_t nominal, mrc_ns now);
/* The next new PSN leaves right after the one before it, which was new too: with the same request,
 * class, size and time. Copies `ar` as well. ev < ev_max. */
struct mrc_slot *mrc_txtrack_sent_next(struct mrc_txtrack *t, uint16_t ev);
/* The PSN is known received. True when that is news. Leaves freeing to mrc_txtrack_advance.
 * `echoed`: the last transmission is what arrived, not an earlier one; without it the arrival of a
 * packet that was sent more than once says nothing about the EV of its last transmission. */
bool mrc_txtrack_ack(struct mrc_txtrack *t, struct mrc_psn psn, bool echoed);
/* Free all slots up to cack; all must have been acknowledged. And those acknowledged that follow:
 * unack + 1 is in flight, lost or not sent yet, so that a timer or the schedule knows of it, even
 * if the peer contradicts itself and reports cack + 1 as received. */
void mrc_txtrack_advance(struct mrc_txtrack *t, struct mrc_psn cack);
/* The oldest in flight, if unack + 1 is that, left once and lies at or before cack, has arrived,
 * with those that left with it on its EV: the same as an ack for each and an advance. How many;
 * *last: the last of them, all else but PSN and order is the same of all. */
uint32_t mrc_txtrack_take(struct mrc_txtrack *t, struct mrc_psn cack, const struct mrc_slot **last);
/* An INFLIGHT slot is lost: it is to be sent again. */
void mrc_txtrack_lose(struct mrc_txtrack *t, struct mrc_slot *s);
/* Lowest PSN to send again; false when none. */
bool mrc_txtrack_next_lost(const struct mrc_txtrack *t, struct mrc_psn *psn);
/* Packets sent and not known received. */
static inline uint32_t mrc_txtrack_outstanding(const struct mrc_txtrack *t)
{
    return t->inflight_count + t->lost_count;
}

#endif
