/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the engine, for its files only. */
#ifndef MRC_ENGINE_INT_H
#define MRC_ENGINE_INT_H

#include "mrc_engine.h"
#include "mrc_ep.h"
#include "mrc_qp.h"

struct mrc_path_slot {
    struct mrc_path_table *table; /* NULL: free */
    struct mrc_heap_node timer;
    struct mrc_link users;   /* QPs, by path_link */
    struct mrc_link probing; /* in the engine's list while probes may be due */
    uint32_t remote_up;      /* planes, as last told to applications */
    bool all_bad;            /* the same */
};

struct mrc_hint_slot {
    struct mrc_qp_hint hint;
    uint32_t refs; /* QPs */
    bool used;
};

/* A QPCC (E.5). Its QPs stand in one of two lists while they may have data to send, by
 * mrc_qp.data. */
struct mrc_cc_slot {
    struct mrc_cc *cc;     /* NULL: free */
    uint32_t refs;         /* QPs */
    bool blocked;          /* the window has refused a packet and not moved since: ACTIVE */
    struct mrc_link ready; /* in the engine's list while there is something to try */
    struct mrc_link again; /* QPs with packets to send again: these first */
    struct mrc_link fresh; /* the others */
    struct mrc_link users; /* all QPs, by cc_link */
};

struct mrc_engine {
    struct mrc_env env;
    struct mrc_engine_cfg cfg;
    struct mrc_rand rand;
    struct mrc_qp **qp;      /* by index; NULL: free */
    uint32_t *qp_generation; /* upper bits of the next QPN of this index */
    uint32_t qp_index_bits;
    uint32_t qp_next; /* where the search for a free index begins */
    struct mrc_path_slot *path;
    struct mrc_cc_slot *cc;
    struct mrc_heap timers;
    struct mrc_heap_node ep_timer; /* the earliest of ep.timers */
    struct mrc_link control;       /* QPs with control packets due */
    struct mrc_link ready;         /* QPCCs, in the order of their turns */
    struct mrc_link urgent;        /* QPs with a probe or a query due: no window holds those back */
    struct mrc_link probing;       /* path tables with probes due */
    struct mrc_ep ep;
    struct mrc_hint_slot *hint;
    uint32_t ports_up; /* planes, as last told to applications */
    mrc_ns now;        /* of the door that was used last */
};

/* NULL: no such QP. */
struct mrc_qp *mrc_engine_qp(const struct mrc_engine *e, uint32_t qpn);
/* After anything happened to q: its timer, its place in the lists, its path table's timer. */
void mrc_engine_touch(struct mrc_engine *e, struct mrc_qp *q);

void mrc_engine_touch_one(struct mrc_engine *e, struct mrc_qp *q); /* without the next */
/* Completion queues that overran: their QPs cannot go on. */
void mrc_engine_cq_failed(struct mrc_engine *e);
/* All paths of a table bad, or no longer. */
void mrc_engine_tell_paths(struct mrc_engine *e, uint32_t path);
void mrc_engine_tell_planes(struct mrc_engine *e, uint32_t path);
void mrc_engine_event(struct mrc_engine *e, enum mrc_async_type type, uint32_t id, uint8_t plane);

static inline void mrc_engine_ep_timer(struct mrc_engine *e)
{
    mrc_heap_set(&e->timers, &e->ep_timer, mrc_ep_deadline(&e->ep));
}

/* ---- mrc_engine_sched.c ---- */
static inline bool mrc_sched_has_data(const struct mrc_qp *q)
{
    return (q->req.backlog | q->req.tx.lost_count) != 0;
}
/* The QP may have something to send. */
void mrc_sched_offer(struct mrc_engine *e, struct mrc_qp *q);
/* It has nothing, for good. */
void mrc_sched_withdraw(struct mrc_qp *q);
/* The window of this QPCC may have opened. */
void mrc_sched_wake(struct mrc_engine *e, struct mrc_cc_slot *s);
/* Packets of all QPCCs in turn; how many. */
size_t mrc_sched_tx(struct mrc_engine *e, struct mrc_tx_pkt *out, size_t max, mrc_ns now);
bool mrc_sched_pending(const struct mrc_engine *e);

/* After the planes of a table changed: its users look for paths anew. */
void mrc_engine_touch_path(struct mrc_engine *e, uint32_t path);

/* The heap holds three kinds of nodes; those of path slots lie inside the table. */
static inline bool mrc_engine_is_path_timer(const struct mrc_engine *e,
                                            const struct mrc_heap_node *node)
{
    const uintptr_t a = (uintptr_t)node;
    return a >= (uintptr_t)e->path && a < (uintptr_t)(e->path + e->cfg.path_max);
}

#endif
