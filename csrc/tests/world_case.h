/* SPDX-License-Identifier: BSD-2-Clause */
/* What the scenario files share. "FR n" in them is a field report that the case would have caught.
 */
#ifndef MRC_WORLD_CASE_H
#define MRC_WORLD_CASE_H

#include "t.h"
#include "world.h"

/* One connection 0 - 1 on that network. */
static inline struct world *case_world(const struct world_cfg *cfg, const struct world_qp_cfg *q,
                                       uint32_t bytes_max)
{
    struct world *const w = world_new(cfg);
    world_connect(w, q, bytes_max);
    return w;
}

static inline bool case_finish(struct world *w, mrc_ns within)
{
    return world_finish(w, w->now + within);
}

/* Report what the world saw wrong, and end it. */
static inline void case_end(struct world *w)
{
    if (w->failure[0] != '\0')
        t_fail(__FILE__, __LINE__, w->failure);
    world_free(w);
}

#endif
