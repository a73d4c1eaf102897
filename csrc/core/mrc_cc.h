/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion control behind one small interface (MRC E.1). A controller is told bytes, delays and
 * marks, never packets. One object per destination (QPCC); bytes are nominal sizes (E.1). */
#ifndef MRC_CC_H
#define MRC_CC_H

#include "mrc_base.h"

enum mrc_cc_kind { MRC_CC_NONE = 0, MRC_CC_FIXED = 1, MRC_CC_NSCC = 2 };

/* Parameters, E.4. Zero means "derive the default" for all but disable_qa.
 *
 * link_bps and base_rtt_ns describe the fabric. A caller who knows them gets NSCC to the letter:
 * the shortest round trip seen becomes base_rtt, and the ceiling 1.5 x link_bps x base_rtt follows
 * it down. A caller who leaves base_rtt_ns zero says "a software stack, do not know": 10 Gbit/s and
 * 500 us, about what a veth and two event loops need to stay busy (BDP 625 kB, ceiling 937.5 kB).
 * There the round trip wanders between 50 us and 2 ms and the shortest is the luckiest turn of both
 * loops, so it serves to measure queueing delay only; the periods keep the scale of 500 us, and the
 * ceiling is found from there: up to four times that while nothing is lost or queued (ADR 121). A
 * max_cwnd_bytes given by the caller is the ceiling and stays. The window begins at the lesser of
 * the ceiling and 1.5 x link_bps x base_rtt_ns (H41). */
struct mrc_cc_cfg {
    uint8_t kind;  /* enum mrc_cc_kind */
    bool trimming; /* fabric trims: target 0.75 x base_rtt, delay alone never quick-adapts */
    bool disable_qa;
    uint32_t mtu_bytes;     /* path MTU, payload */
    uint64_t link_bps;      /* min(sender, receiver) link rate, bit/s */
    mrc_ns base_rtt_ns;     /* config_base_rtt */
    mrc_ns target_delay_ns; /* T */
    double alpha;           /* bytes per second */
    double fi;              /* bytes */
    double fi_scale;
    double eta; /* bytes */
    double gamma;
    double max_md_jump;
    double qa_gate; /* log2, up to 32 */
    mrc_ns qa_threshold_ns;
    uint64_t max_cwnd_bytes; /* NSCC: ceiling, >= mtu; FIXED: the window; up to 2^40 */
    uint32_t adjust_bytes;
    mrc_ns adjust_period_ns;
    uint32_t sack_threshold_bytes; /* peer's SACK threshold: an AR is wanted when cwnd is below */
    bool steady; /* alpha's factor b is at most 1 (ADR 76); always so when base_rtt_ns is zero */
};

struct mrc_cc_sack {
    mrc_ns now;
    uint32_t new_bytes; /* newly received, from the rcvd_bytes delta */
    bool marked;        /* m == 1 */
    bool rtt_valid;
    bool restore;    /* CC_STATE.restore_cwnd */
    uint8_t penalty; /* CC_STATE.rcv_cwnd_pen 0..127 */
    mrc_ns rtt_ns;
};

struct mrc_nscc { /* E.2, doubles; no libm */
    double cwnd;
    double saved_cwnd;
    double max_wnd;
    double achieved_bytes;
    double received_bytes;
    double fi_count;
    double inc_bytes; /* B^2 */
    double bytes_to_ignore;
    double bytes_ignored;
    double avg_delay_ns;
    double base_rtt_ns;  /* shortest round trip: D is measured from here */
    double scale_rtt_ns; /* what periods and ceiling are made of: base_rtt_ns, or the software
                            default */
    mrc_ns qa_endtime;
    mrc_ns last_adjust;
    mrc_ns last_dec;
    bool trigger_qa;
    bool increase;
    bool follow_rtt;      /* scale_rtt_ns follows base_rtt_ns */
    bool follow_wnd;      /* max_wnd follows too */
    bool marks;           /* a mark has come */
    mrc_ns qa_turn;       /* the turn in which the period of quick adapt ended; 0: it has not */
    double gbn_wnd;       /* mode rc: ceiling since a go-back halved the window; 0: none */
    double least_wnd;     /* the ceiling that is found never falls below this; 0: it was given */
    double room_delay_ns; /* the least of the period under way, */
    double room_used;     /* the most that was out in it, */
    mrc_ns room_since;    /* which began then */
    mrc_ns room_at;       /* before, the ceiling does not grow */
    mrc_ns room_hold;     /* how long the last pause was */
};

struct mrc_cc {
    struct mrc_cc_cfg cfg; /* with defaults filled in */
    int64_t inflight;      /* bytes; may be slightly negative (E.1) */
    struct mrc_nscc nscc;
    bool base_rtt_asked; /* somebody was told to probe it */
    uint64_t queued;     /* packets of all its QPs that have not left a first time */
};

/* Fill defaults (E.4) and start. MRC_ERR_INVAL when kind or a parameter is out of range. */
int mrc_cc_init(struct mrc_cc *cc, const struct mrc_cc_cfg *cfg, mrc_ns now);

/* May a packet of this nominal size leave? inflight + size <= cwnd, or inflight <= 0. */
bool mrc_cc_can_send(const struct mrc_cc *cc, uint32_t bytes);
void mrc_cc_on_send(struct mrc_cc *cc, uint32_t bytes);
/* After counting a sent packet: does the window want an acknowledgement (E.3)? */
bool mrc_cc_want_ack(const struct mrc_cc *cc);
/* The same for many packets in a row, between which nothing else happens: what the questions are
 * asked of. */
struct mrc_cc_credit {
    uint64_t cwnd;
    uint64_t room; /* less than that is left of the window: an acknowledgement is wanted */
};
struct mrc_cc_credit mrc_cc_credit(const struct mrc_cc *cc);
/* MRC E.3: inflight + s <= cwnd, or nothing in flight, so that a window of one packet never blocks.
 */
static inline bool mrc_cc_may_send(const struct mrc_cc *cc, const struct mrc_cc_credit *k,
                                   uint32_t bytes)
{
    return cc->inflight <= 0 || (uint64_t)cc->inflight + bytes <= k->cwnd;
}
static inline bool mrc_cc_asks(const struct mrc_cc *cc, const struct mrc_cc_credit *k)
{
    const uint64_t used = cc->inflight > 0 ? (uint64_t)cc->inflight : 0;
    return k->cwnd < used + k->room;
}
void mrc_cc_on_sack(struct mrc_cc *cc, const struct mrc_cc_sack *s);
/* NACK of a packet of nominal size bytes. */
void mrc_cc_on_nack(struct mrc_cc *cc, uint32_t bytes, bool trimmed, bool rtt_valid, mrc_ns rtt,
                    mrc_ns now);
/* Inferred loss or timeout (E.3). */
void mrc_cc_on_loss(struct mrc_cc *cc, uint32_t bytes, mrc_ns now);
/* Mode rc: a packet was lost, and all behind it leave again; round trips take rtt now (ADR 97). */
void mrc_cc_on_go_back(struct mrc_cc *cc, uint32_t bytes, mrc_ns rtt, mrc_ns now);
/* A QP has nothing in flight any more: take back what rounding left of its share. */
void mrc_cc_release(struct mrc_cc *cc, int64_t bytes);

/* E.7: the round trip without queues is worth a probe in the control class. True once in the life
 * of a controller, for who asks after its first SACK; the answer comes by mrc_cc_on_base_rtt. */
bool mrc_cc_wants_base_rtt(struct mrc_cc *cc);
void mrc_cc_on_base_rtt(struct mrc_cc *cc, mrc_ns rtt);

/* Bytes; UINT64_MAX for MRC_CC_NONE. */
uint64_t mrc_cc_cwnd(const struct mrc_cc *cc);
/* What the window may grow to; UINT64_MAX for MRC_CC_NONE. */
uint64_t mrc_cc_max_wnd(const struct mrc_cc *cc);
/* The round trip that timers should be made of: measured, or the software default. Never 0. */
mrc_ns mrc_cc_base_rtt(const struct mrc_cc *cc);
mrc_ns mrc_cc_target_delay(const struct mrc_cc *cc); /* never 0 */

/* Can a round trip be told from a queue, or from a host that is busy: base_rtt was given, or the
 * fabric marks? NSCC's; others never know. */
bool mrc_cc_knows_fabric(const struct mrc_cc *cc);

/* For whoever looks on. */
mrc_ns mrc_cc_shortest_rtt(const struct mrc_cc *cc); /* D is measured from here */
mrc_ns mrc_cc_avg_delay(const struct mrc_cc *cc);    /* NSCC's, else 0 */

#endif
