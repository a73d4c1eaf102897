/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the engine, for its two files only. */
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
};

struct mrc_cc_slot {
    struct mrc_cc *cc;       /* NULL: free */
    uint32_t refs;           /* QPs */
    struct mrc_link waiting; /* QPs without credit, by cc_link */
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
    struct mrc_link data;          /* QPs that may have data to send */
    struct mrc_link probing;       /* path tables with probes due */
    struct mrc_ep ep;
};

/* NULL: no such QP. */
struct mrc_qp *mrc_engine_qp(const struct mrc_engine *e, uint32_t qpn);
/* After anything happened to q: its timer, its place in the lists, its path table's timer. */
void mrc_engine_touch(struct mrc_engine *e, struct mrc_qp *q);

static inline void mrc_engine_ep_timer(struct mrc_engine *e)
{
    mrc_heap_set(&e->timers, &e->ep_timer, mrc_ep_deadline(&e->ep));
}
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
