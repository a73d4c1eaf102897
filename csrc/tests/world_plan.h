/* SPDX-License-Identifier: BSD-2-Clause */
/* What a seed stands for: a network, connections, work, and faults with their times. Drawing a plan
 * touches no engine; acting it out is world_faults.c. */
#ifndef MRC_WORLD_PLAN_H
#define MRC_WORLD_PLAN_H

#include "world.h"

enum { PLAN_ACTIONS = 128, PLAN_QPS_MAX = 5 };

enum plan_what {
    PLAN_CUT,     /* a path dies, in one direction or both */
    PLAN_HEAL,    /* and is whole again */
    PLAN_LINK,    /* a path becomes like `link` */
    PLAN_DENY,    /* both ends deny an entry */
    PLAN_ALLOW,   /* and allow it again */
    PLAN_PLANES,  /* sides learn that only these planes are up (`n`) */
    PLAN_PORT,    /* host a loses port `path`, really, or has it again (`n`) */
    PLAN_REFUSED, /* sockets refuse an entry */
    PLAN_STALL,   /* host a gets no turn for `n` us */
    PLAN_PAUSE,   /* the application at host a takes nothing for `n` us */
    PLAN_MPR,     /* responder of connection `qp` offers `n` */
    PLAN_RESET,   /* connection `qp` begins anew */
    PLAN_DESTROY, /* one of its QPs goes */
    PLAN_ERROR,   /* one of its QPs enters ERR */
    PLAN_BAD_KEY, /* one of its QPs uses a wrong key once */
};

/* One change at one time. */
struct plan_action {
    mrc_ns at;
    uint8_t what;  /* enum plan_what */
    uint8_t sides; /* bit 0: a -> b, bit 1: b -> a */
    uint16_t path;
    uint32_t a; /* hosts */
    uint32_t b;
    uint32_t qp;
    uint32_t n;
    struct sim_link_cfg link; /* PLAN_LINK */
};

struct plan {
    struct mrc_rand rand;
    struct world_cfg cfg;
    struct world_qp_cfg qp[PLAN_QPS_MAX];
    struct world_load load[PLAN_QPS_MAX][2];
    uint32_t flow[PLAN_QPS_MAX]; /* a -> b of the present life; while it runs */
    uint32_t qps;
    struct plan_action action[PLAN_ACTIONS];
    uint32_t actions;
    uint32_t span_us; /* faults begin within this */
    mrc_ns faults_end;
    uint32_t hostile; /* WORLD_STRANGER and the like; 0: nobody */
    uint32_t hostile_ppm;
    char words[256]; /* the faults, for the line */
};

void plan_draw(struct plan *v, uint64_t seed);

/* ---- world_faults.c ---- */
/* Connections, faults and work into the world; running it is left. */
void plan_begin(struct plan *v, struct world *w);

#endif
