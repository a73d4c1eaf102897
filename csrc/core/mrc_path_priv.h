/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the PathTable share: the table's memory and its inner calls. */
#ifndef MRC_PATH_PRIV_H
#define MRC_PATH_PRIV_H

#include "mrc_heap.h"
#include "mrc_path.h"

enum path_probe_step {
    PATH_PROBE_OFF = 0, /* not ASSUMED_BAD, or plane down */
    PATH_PROBE_LATER,   /* timer: when the next probe is due */
    PATH_PROBE_READY,   /* in the list `ready`, to be sent when there is room */
    PATH_PROBE_WAITING, /* timer: when the answer is overdue */
    PATH_PROBE_NARROW,  /* DENIED for its MTU, timer: when it is tried again */
};

enum { PATH_PROBE_SEQS = 8 }; /* an id is 12 bits of entry and 3 bits of sequence */

struct path_list { /* through path_entry.prev and .next; an entry is in one list at most */
    uint16_t head;
    uint16_t tail;
};

/* Packets of a size that does not get through (mrc_path_mtu.c). */
struct path_hole {
    uint32_t bytes;  /* the smallest that was lost and not passed since; 0: nothing is suspected */
    uint32_t lost;   /* packets, at least that large */
    uint32_t heals;  /* so often did probes bring the entry back meanwhile */
    uint64_t passed; /* of the table, when it began */
    uint64_t missed;
};

/* What arrived lately, and how much of it was marked or cut (mrc_path_load.c). */
struct path_load {
    uint32_t seen; /* packets; halved now and then */
    uint32_t marked;
};

struct path_entry {
    struct mrc_heap_node timer; /* first, so that the heap's node is the entry */
    struct mrc_path_entry_cfg cfg;
    mrc_ns srtt_ns;
    mrc_ns rttvar_ns;
    mrc_ns healed_ns; /* losses of packets sent before do not count against it */
    mrc_ns probe_sent_ns[PATH_PROBE_SEQS];
    mrc_ns probe_interval_ns;
    uint16_t prev;
    uint16_t next;
    uint8_t probe; /* enum path_probe_step */
    uint8_t probe_seq;
    uint8_t probe_open; /* bit per sequence: sent since the verdict, not answered */
    uint8_t successes;  /* in a row */
    bool reserve;       /* plays backup now */
    bool suspect;       /* a verdict waits: in the list `suspects` */
    uint8_t suspect_why;
    struct mrc_path_stats stats; /* identity and state are filled in when asked */
    uint32_t recent_sent;        /* packets, and gaps among them; halved now and then */
    uint32_t recent_gaps;
    uint8_t relapses; /* verdicts by comparison, less one for each PATH_RECENT / 2 packets since */
    struct path_hole hole;
    uint8_t narrow;       /* verdicts for its MTU since a full packet passed */
    uint8_t skips;        /* in a row in which it was marked and the others were not */
    mrc_ns skip_until_ns; /* SKIP is not over before; 0: at the next turn */
    struct path_load load;
};

/* A plane's part of order[]: [usable | spare | out], so that every class is counted and indexed
 * without a scan. usable: GOOD or SKIP, not in the reserve; spare: the same in the reserve. */
struct path_plane {
    uint16_t first;
    uint16_t total;
    uint16_t usable;
    uint16_t spare;
    uint16_t good;   /* of usable */
    uint16_t mask;   /* of the permutation: 2^n - 1 >= usable - 1, the smallest */
    uint8_t half;    /* (n + 1) / 2 */
    uint8_t pad_[3]; /* 16 bytes: found by a shift */
};

/* The reverse set (D.8): mrc_path_reverse.c. */
struct path_reverse {
    mrc_ns at; /* end of the round: probe then, if nothing better came; MRC_NEVER: not in use */
    mrc_ns interval_ns;
    mrc_ns rtt_ns;  /* of the probes, smoothed */
    bool data_sent; /* in this round */
    uint8_t rule;   /* enum mrc_reverse_rule */
    uint8_t plane_shift;
    uint8_t plane_bits;
    uint16_t probe;                 /* entry to be probed now, or MRC_EV_NONE */
    uint16_t of[MRC_PLANE_MAX + 1]; /* by plane; MRC_EV_NONE: not chosen yet */
};

struct mrc_path_table {
    struct path_entry *entry;
    uint8_t *state;  /* enum mrc_ev_state; apart from the entries, for the scan */
    uint16_t *order; /* entries by plane */
    uint16_t *place; /* entry -> its index in order */
    uint16_t *hash;  /* wire value -> entry, open addressing */
    struct mrc_ev_event *event;
    uint32_t live; /* planes with a usable entry */
    uint32_t up;   /* planes up at both sides */
    uint32_t hash_bits;
    uint32_t event_mask;
    uint32_t event_in;
    uint32_t event_out;
    uint32_t event_drops;
    uint16_t count;
    uint16_t active;
    uint16_t min_active;
    uint16_t probes_out; /* entries in PATH_PROBE_WAITING */
    uint16_t probes_max;
    uint8_t successes_needed;
    struct path_list ready;
    struct path_list suspects; /* oldest verdict at the head */
    mrc_ns interval_ns;
    mrc_ns interval_max_ns;
    mrc_ns timeout_ns;
    mrc_ns rtt_peak_ns; /* longest RTT of the table lately */
    struct mrc_heap timers;
    struct mrc_rand rand;
    struct path_plane plane[MRC_PLANE_MAX + 1];
    uint32_t local_up;  /* of the planes: ours alone */
    uint8_t event_want; /* MRC_EV_EVENTS_* */
    struct path_reverse reverse;
    uint16_t suspects_up; /* of the suspects: those whose plane is up */
    uint8_t loss_rule;    /* enum mrc_loss_rule */
    uint64_t recent_sent; /* sums over the entries */
    uint64_t recent_gaps;
    struct mrc_plane_addr *addr;
    uint8_t addr_count;
    uint64_t passed; /* data packets that got through, and that did not */
    uint64_t missed;
    uint8_t skip_rule;                        /* enum mrc_skip_rule */
    struct path_load load[MRC_PLANE_MAX + 1]; /* sums over the entries of a plane */
};

enum { PATH_RECENT = 4096 }; /* packets after which the counts of an entry are halved */

static inline bool path_up(const struct mrc_path_table *t, uint16_t i)
{
    return (t->up >> t->entry[i].cfg.plane & 1) != 0;
}
static inline bool path_usable(const struct mrc_path_table *t, uint16_t i)
{
    return t->state[i] <= MRC_EV_SKIP && !t->entry[i].reserve;
}

/* The next of these planes in turn after the last one served. */
static inline uint32_t path_turn(struct mrc_path_cursor *c, uint32_t planes)
{
    const uint32_t later = planes & (~(uint32_t)1 << c->plane);
    const uint32_t p = (uint32_t)__builtin_ctz(later != 0 ? later : planes);
    c->plane = (uint8_t)p;
    return p;
}

/* The one place where the state or the role of an entry changes. */
void path_put(struct mrc_path_table *t, uint16_t i, enum mrc_ev_state s, bool reserve);

void path_list_push(struct mrc_path_table *t, struct path_list *l, uint16_t i);
void path_list_drop(struct mrc_path_table *t, struct path_list *l, uint16_t i);

/* A verdict: ASSUMED_BAD with promotion, or held back by min_active. */
void path_condemn(struct mrc_path_table *t, uint16_t i, enum mrc_ev_reason why, mrc_ns now);
/* Congestion: out for one turn, or longer. */
void path_skip(struct mrc_path_table *t, uint16_t i, mrc_ns now);
/* Enough probes answered. */
void path_heal(struct mrc_path_table *t, uint16_t i, enum mrc_ev_state to, mrc_ns now);
void path_sample(struct mrc_path_table *t, uint16_t i, mrc_ns rtt);

/* Entry became ASSUMED_BAD: first probe now, or when its plane is up. */
void path_probe_start(struct mrc_path_table *t, uint16_t i);
/* Entry is DENIED for its MTU. */
void path_probe_narrow(struct mrc_path_table *t, uint16_t i, mrc_ns now);
/* Entry left ASSUMED_BAD: answers on the way no longer count. */
void path_probe_stop(struct mrc_path_table *t, uint16_t i);
/* The plane of a bad entry went down or came up: answers on the way no longer count, the schedule
 * goes on where it was. */
void path_probe_plane(struct mrc_path_table *t, uint16_t i);

/* false: the wire value is there already. */
bool path_hash_add(struct mrc_path_table *t, uint16_t i);

/* mrc_path_addr.c. false: see mrc_path_init. The pair of a plane, or NULL. */
bool path_addrs_init(struct mrc_path_table *t, const struct mrc_path_cfg *cfg);
const struct mrc_plane_addr *path_addr_of(const struct mrc_path_table *t, uint8_t plane);

/* mrc_path_mtu.c. Small packets pass and large ones do not? Probes brought the entry back. */
bool path_hole(const struct mrc_path_table *t, uint16_t i);
void path_hole_healed(struct mrc_path_table *t, uint16_t i);
/* Such a verdict: how long it is for. */
mrc_ns path_narrow_ns(struct mrc_path_table *t, uint16_t i);
/* ... which is over: in use again. */
void path_narrow_over(struct mrc_path_table *t, uint16_t i, mrc_ns now);

/* mrc_path_load.c. Packets arrived; one was marked or cut; nothing is known of it any more. */
void path_load_seen(struct mrc_path_table *t, uint16_t i, uint32_t n);
void path_load_marked(struct mrc_path_table *t, uint16_t i);
void path_load_forget(struct mrc_path_table *t, uint16_t i);
/* Entry i goes into SKIP: until when at least, 0 for one turn. */
mrc_ns path_load_until(struct mrc_path_table *t, uint16_t i, mrc_ns now);

/* mrc_path_gap.c */
void path_recent_halve(struct mrc_path_table *t, uint16_t i);
/* Of what it sent and lost nothing is known. */
void path_recent_forget(struct mrc_path_table *t, uint16_t i);
/* Probes in a row that heal the entry. */
uint32_t path_gap_probation(const struct mrc_path_table *t, const struct path_entry *e);

void path_reverse_init(struct mrc_path_table *t, const struct mrc_path_cfg *cfg);
/* The round that ends now. */
void path_reverse_tick(struct mrc_path_table *t, mrc_ns now);

#endif
