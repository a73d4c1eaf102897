/* SPDX-License-Identifier: BSD-2-Clause */
/* PathTable: the entropy values (EVs) towards one peer, their states, and which is used next
 * (MRC D.5, D.6, D.7, F.2). Knows nothing of QPs, windows or packets: it is told "this entry: sent,
 * delivered, marked, lost, probed". One table per EV profile and peer, shared by the QPs to it;
 * each QP has its own cursor so that QPs do not march in step (D.6). */
#ifndef MRC_PATH_H
#define MRC_PATH_H

#include "mrc_base.h"
#include "mrc_rand.h"

enum mrc_ev_state { MRC_EV_GOOD = 0, MRC_EV_SKIP = 1, MRC_EV_ASSUMED_BAD = 2, MRC_EV_DENIED = 3 };

/* Why a state changed; reported with the event. */
enum mrc_ev_reason {
    MRC_EV_R_NONE = 0,
    MRC_EV_R_ECN,         /* SACK m=1 */
    MRC_EV_R_TRIMMED,     /* NACK TRIMMED */
    MRC_EV_R_ALWAYS_SKIP, /* SACK m=2 */
    MRC_EV_R_TIMEOUT,     /* local ACK timer */
    MRC_EV_R_LOSS,        /* loss inferred before the timer (B.10) */
    MRC_EV_R_PROBE,       /* probes answered */
    MRC_EV_R_ROTATION,    /* SKIP served its turn */
    MRC_EV_R_CONTROL,     /* controller or application */
    MRC_EV_R_SEND_ERROR,  /* the socket refused the path */
    MRC_EV_R_MTU,         /* full packets do not fit through it (any more) */
};

/* Where packets of a plane go, and where they come from: a host with a NIC per plane has an address
 * for each (C.4). */
struct mrc_plane_addr {
    uint8_t src[16]; /* own */
    uint8_t dst[16]; /* the peer's */
    uint8_t plane;   /* 1..MRC_PLANE_MAX */
    uint8_t pad_[7];
};

struct mrc_path_entry_cfg {
    uint32_t ev;   /* wire value: flow label half, source port half (A.12); unique in the table */
    uint8_t plane; /* 1..MRC_PLANE_MAX */
    uint8_t port;  /* index of the I/O port that sends it; opaque here */
    uint32_t lane; /* index of the lane inside that port; opaque here */
    bool backup;   /* reserve: used only after promotion for a bad entry of its plane (D.7) */
    const struct mrc_plane_addr
        *addr; /* filled in by the table; NULL: the addresses of who sends */
};

struct mrc_path_cfg {
    uint16_t count;          /* 1..MRC_EV_MAX */
    uint16_t min_active;     /* never fewer active entries through ASSUMED_BAD (D.3); 0: no floor */
    uint8_t probe_successes; /* answers in a row that heal an entry (F.2); default 3 */
    uint16_t event_ring;     /* power of two; events kept until polled; default 1024 */
    mrc_ns probe_interval_ns;     /* first interval; default 1 ms */
    mrc_ns probe_interval_max_ns; /* cap of the doubling; default 50 ms */
    mrc_ns probe_timeout_ns;      /* floor of the time a probe may take; adapts upward to twice the
                                     longest RTT seen lately; default 3 ms */
    uint64_t seed;
    uint8_t reverse;        /* enum mrc_reverse_rule */
    uint8_t event_mask;     /* MRC_EV_EVENTS_*; 0: all */
    uint8_t ev_plane_shift; /* where an EV that is not in the table says its plane (D.9), ... */
    uint8_t ev_plane_bits;  /* ... and how many bits that are; 0: nowhere */
    mrc_ns
        reverse_interval_ns; /* reverse probes: one a round trip, but no more often; default 1 ms */
    uint8_t loss;            /* enum mrc_loss_rule */
    uint8_t addr_count;      /* addresses of planes, 0..MRC_PLANE_MAX; a plane without is ... */
    uint8_t pad_[6];
    const struct mrc_plane_addr *addrs; /* ... that of who sends; copied */
    uint8_t skip;                       /* enum mrc_skip_rule */
};

/* When an inferred loss condemns a path that has delivered a later packet (D.5, ADR 77). */
enum mrc_loss_rule {
    MRC_LOSS_COMPARED = 0, /* when it loses more than the others do */
    MRC_LOSS_FIRST,        /* at once */
};

/* How long a congested entry is out of use (D.5, D.6, ADR 96). */
enum mrc_skip_rule {
    MRC_SKIP_COMPARED =
        0,         /* one turn; longer where it is marked, and the rest of its plane is not */
    MRC_SKIP_TURN, /* one turn */
};

/* Which EV carries an answer (D.8). */
enum mrc_reverse_rule {
    MRC_REVERSE_REFLECT = 0, /* that of the request, when it is ours too and good; else the set */
    MRC_REVERSE_OWN,         /* the reverse set: an EV per plane, at first the plane's first */
    MRC_REVERSE_OWN_RANDOM,  /* the same, at first any of the plane (H38) */
};

/* Changes that raise an event (C.6): into service, into ASSUMED_BAD, into DENIED; none. */
enum {
    MRC_EV_EVENTS_GOOD = 1,
    MRC_EV_EVENTS_BAD = 2,
    MRC_EV_EVENTS_DENIED = 4,
    MRC_EV_EVENTS_NONE = 8,
};

/* A QP's place in the rotation. Zero-initialise, then mrc_path_cursor_init. */
struct mrc_path_cursor {
    struct mrc_rand rand;
    uint32_t key[MRC_PLANE_MAX + 1]; /* permutation of this turn, per plane */
    uint16_t pos[MRC_PLANE_MAX + 1]; /* place in that permutation */
    uint8_t plane;                   /* index of the plane served last */
};

/* Raised when an entry enters or leaves ASSUMED_BAD or DENIED (C.6, D.10; SKIP is too short-lived
 * to show). from == to: a verdict was held back because min_active entries or fewer are left, so
 * the entry stays in use for want of a better one ("all paths bad"). */
struct mrc_ev_event {
    mrc_ns time;
    uint32_t ev;
    uint8_t plane;
    uint8_t from; /* enum mrc_ev_state */
    uint8_t to;
    uint8_t reason;      /* enum mrc_ev_reason */
    uint32_t drop_count; /* events lost since the previous delivered one (C.6) */
    uint32_t table;      /* filled in by the engine */
};

/* Per entry, ever growing. */
struct mrc_path_stats {
    uint64_t packets_sent; /* data, retransmissions included */
    uint64_t bytes_sent;
    uint64_t packets_lost; /* declared lost on this entry */
    uint64_t retransmits;  /* of packets_sent */
    uint64_t ecn_marks;
    uint64_t trims;
    uint64_t probes_sent;
    uint64_t probes_answered;
    uint64_t rtt_count;
    uint64_t rtt_sum_ns;
    mrc_ns rtt_min_ns; /* 0: none yet */
    mrc_ns rtt_max_ns;
    mrc_ns bad_since_ns;  /* last entry into ASSUMED_BAD, 0: never */
    mrc_ns good_since_ns; /* last return to GOOD from ASSUMED_BAD, 0: never */
    uint32_t ev;
    uint8_t plane;
    uint8_t state; /* enum mrc_ev_state */
    bool backup;   /* now: roles change by promotion */
};

struct mrc_path_table; /* private in mrc_path.c except through these calls */

/* Bytes of memory for the table, 0 when cfg is out of range. */
size_t mrc_path_size(const struct mrc_path_cfg *cfg);
/* NULL: duplicate ev, plane out of range, count or min_active out of range, all entries backup; a
 * plane with two pairs of addresses, or with one that is ::. */
struct mrc_path_table *mrc_path_init(void *mem, const struct mrc_path_cfg *cfg,
                                     const struct mrc_path_entry_cfg *entries, mrc_ns now);
void mrc_path_cursor_init(struct mrc_path_cursor *c, uint64_t seed);

uint16_t mrc_path_count(const struct mrc_path_table *t);
/* The pairs of addresses it was made with; NULL after the last. */
const struct mrc_plane_addr *mrc_path_addr(const struct mrc_path_table *t, uint32_t k);
/* Is this the peer's address in one of the planes (B.15 step 7)? */
bool mrc_path_from(const struct mrc_path_table *t, const uint8_t src[16]);
/* Entries that may be selected now: GOOD or SKIP, not backup, plane up both sides. */
uint16_t mrc_path_active(const struct mrc_path_table *t);
/* Nothing is known to work: no entry is active, or a verdict is held back for each that is. */
bool mrc_path_all_bad(const struct mrc_path_table *t);
/* Entry with this wire value, or MRC_EV_NONE. O(1). */
uint16_t mrc_path_find(const struct mrc_path_table *t, uint32_t ev);
const struct mrc_path_entry_cfg *mrc_path_entry(const struct mrc_path_table *t, uint16_t i);
enum mrc_ev_state mrc_path_state(const struct mrc_path_table *t, uint16_t i);

/* Choose the entry for the next packet (D.6): planes in turn, equal share each; inside a plane a
 * seeded permutation, re-drawn each time round. A SKIP entry met by the scan becomes GOOD but is
 * passed over, when its time is over or fewer than half of its plane are GOOD; at most one is
 * restored per call; if nothing else in its plane qualifies it is used (the plane keeps its share,
 * D.7). `avoid` (or MRC_EV_NONE) is not used unless it is the only one
 * left in all planes allowed (H34). plane_mask: bit N set = plane N may be used by this packet.
 * MRC_EV_NONE when no entry qualifies. Counts nothing. */
uint16_t mrc_path_select(struct mrc_path_table *t, struct mrc_path_cursor *c, uint32_t plane_mask,
                         uint16_t avoid, mrc_ns now);
/* An entry for control packets: like select, but restores nothing; prefers the plane given (0 =
 * any). Give it a cursor of its own, or data misses the turns it takes. */
uint16_t mrc_path_select_control(struct mrc_path_table *t, struct mrc_path_cursor *c,
                                 uint8_t plane);

/* Plane of a packet that came from the peer on this EV, 0: the EV does not say. */
uint8_t mrc_path_plane(const struct mrc_path_table *t, uint32_t ev);

/* The reverse path (D.8): an entry for what answers a packet that came on `ev`, or MRC_EV_NONE. The
 * plane is that of the request where the EV says it, else planes take turns; an entry that is bad,
 * denied or of a plane that is down is never taken while there is another. _data answers a data
 * packet, which keeps the set fresh: see reverse_probe. */
uint16_t mrc_path_reverse(struct mrc_path_table *t, struct mrc_path_cursor *c, uint32_t ev);
uint16_t mrc_path_reverse_data(struct mrc_path_table *t, struct mrc_path_cursor *c, uint32_t ev,
                               mrc_ns now);
/* Entry to send an EV probe on now, any usable one, or MRC_EV_NONE: one in each round trip in which
 * the set was used but no data was sent. Data that is reported received says as much (on_rtt). */
uint16_t mrc_path_reverse_probe(struct mrc_path_table *t);
/* That probe was answered: the entry is its plane's in the set. */
void mrc_path_on_reverse(struct mrc_path_table *t, uint16_t i, mrc_ns rtt);

/* What happened to an entry. All ignore MRC_EV_NONE. */
void mrc_path_on_sent(struct mrc_path_table *t, uint16_t i, uint32_t bytes, bool rtx);
/* After one: so many more, fewer than 2048, of so many bytes each, none of them again. Not for
 * MRC_EV_NONE. */
void mrc_path_on_sent_more(struct mrc_path_table *t, uint16_t i, uint32_t packets, uint32_t bytes);
void mrc_path_on_rtt(struct mrc_path_table *t, uint16_t i, mrc_ns rtt);
void mrc_path_on_mark(struct mrc_path_table *t, uint16_t i, uint8_t mark, mrc_ns now); /* SACK m */
void mrc_path_on_trim(struct mrc_path_table *t, uint16_t i, mrc_ns now);
/* Loss or timeout: ASSUMED_BAD unless min_active forbids; a backup of the same plane is promoted,
 * and the bad entry takes its place in the reserve. sent_ns: when the lost packet left; losses of
 * packets sent before the entry last healed do not condemn it again. A verdict that min_active
 * forbids is remembered until the entry delivers (on_rtt), and carried out when others heal: newest
 * first, so that the oldest verdict stays in use longest (D.3). */
void mrc_path_on_loss(struct mrc_path_table *t, uint16_t i, enum mrc_ev_reason why, mrc_ns sent_ns,
                      mrc_ns now);
/* A packet is missing, and a later one on the same entry has arrived: a dead path it is not. A
 * verdict (R_LOSS) as above when the entry has lost more of late than the others have; when all
 * lose alike that says nothing of any of them, and the entry is in SKIP for a turn (ADR 77). */
void mrc_path_on_gap(struct mrc_path_table *t, uint16_t i, mrc_ns sent_ns, mrc_ns now);
/* A data packet of that size got through on the entry, or was lost on it, which is told before
 * on_loss or on_gap; bytes as in E.1: IPv6 header to iCRC. Where packets of a size never get
 * through and probes always do, the MTU has shrunk, and probes are no reason to come back: the
 * verdict is then DENIED (R_MTU), until control says otherwise, or a second has passed, two the
 * next time, and so on to a minute (ADR 92, 94). on_loss(R_MTU) is the same verdict of who knows.
 */
void mrc_path_sizes_passed(struct mrc_path_table *t, uint16_t i, uint32_t bytes, uint32_t n);
static inline void mrc_path_size_passed(struct mrc_path_table *t, uint16_t i, uint32_t bytes)
{
    mrc_path_sizes_passed(t, i, bytes, 1);
}
void mrc_path_size_lost(struct mrc_path_table *t, uint16_t i, uint32_t bytes);

/* Probing of ASSUMED_BAD entries (F.2): the first at once, then probe_interval apart while they are
 * answered; an unanswered one doubles the interval. At most 5 % of the entries wait for an answer
 * at a time, but 16 in any table. None while their plane is down. probe_due gives an entry whose
 * probe is to be sent now and the id to put in it (bit 15 clear), or MRC_EV_NONE; call it until
 * then. on_probe takes the answer (mark = SETH.m; 1 heals into SKIP, H12; 2 counts as no answer)
 * and feeds its round trip. An answer later than the timeout still counts, so that a slow path is
 * not taken for a dead one; each counts once. Returns the entry, or MRC_EV_NONE for an id that is
 * not open. */
uint16_t mrc_path_probe_due(struct mrc_path_table *t, uint16_t *id, mrc_ns now);
uint16_t mrc_path_on_probe(struct mrc_path_table *t, uint16_t id, uint8_t mark, mrc_ns now);
/* A probe that was not the table's own was answered on this entry: where that is ASSUMED_BAD by now
 * it is one success like the others (B.5). */
void mrc_path_on_answer(struct mrc_path_table *t, uint16_t i, uint8_t mark, mrc_ns now);
/* Would probe_due give one, by what the last tick found? */
bool mrc_path_probe_pending(const struct mrc_path_table *t);
/* Smoothed RTT and deviation of an entry, in ns; 0 when never sampled. */
mrc_ns mrc_path_srtt(const struct mrc_path_table *t, uint16_t i);
mrc_ns mrc_path_rttvar(const struct mrc_path_table *t, uint16_t i);

/* Control: GOOD or DENIED only (C.5), else MRC_ERR_INVAL; also for an entry that is not there. */
int mrc_path_set_state(struct mrc_path_table *t, uint16_t i, enum mrc_ev_state s, mrc_ns now);
/* Another EV in the place of entry i, its state GOOD or DENIED; what was known of the former is
 * forgotten. INVAL: ev is in the table already, another plane (D.7), or another state. */
int mrc_path_replace(struct mrc_path_table *t, uint16_t i, const struct mrc_path_entry_cfg *to,
                     enum mrc_ev_state s, mrc_ns now);
/* Plane masks (bit N = plane N up), local and remote; entries keep their states (D.7, H39). */
void mrc_path_set_planes(struct mrc_path_table *t, uint32_t local_up, uint32_t remote_up);

/* When tick is needed next, MRC_NEVER: no need. After tick(now) it is later than now; what became
 * due is in probe_pending. */
mrc_ns mrc_path_deadline(const struct mrc_path_table *t);
/* Expires unanswered probes, makes others due. */
void mrc_path_tick(struct mrc_path_table *t, mrc_ns now);

/* MRC_EV_EVENTS_*, 0: all. Events that are kept already are not withdrawn. */
void mrc_path_set_events(struct mrc_path_table *t, uint8_t mask);
/* 1 and *out when there was an event, else 0. */
int mrc_path_event_poll(struct mrc_path_table *t, struct mrc_ev_event *out);
/* For a table that ends: what was lost since its last event, as one that changes nothing. */
int mrc_path_event_rest(struct mrc_path_table *t, struct mrc_ev_event *out);
void mrc_path_stats(const struct mrc_path_table *t, uint16_t i, struct mrc_path_stats *out);
/* A report begins: shortest and longest round trip are from now on those of what comes. */
void mrc_path_rtt_anew(struct mrc_path_table *t);

#endif
