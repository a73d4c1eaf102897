/* SPDX-License-Identifier: BSD-2-Clause */
/* A PathTable on the bench: one cursor, counts of what was selected. */
#ifndef PATH_RIG_H
#define PATH_RIG_H

#include "../core/mrc_path_priv.h"

struct rig {
    struct mrc_path_table *t;
    struct mrc_path_cursor c;
    int selects;
    int used[MRC_EV_MAX];
};

/* Wire values with holes between them. */
static inline uint32_t rig_ev(uint32_t i) { return 0x12340000u + 3 * i; }

static inline struct rig rig_of(struct mrc_path_cfg cfg, const struct mrc_path_entry_cfg *e)
{
    struct rig r = {0};
    r.t = mrc_path_init(malloc(mrc_path_size(&cfg)), &cfg, e, 0);
    CHECK(r.t != NULL);
    mrc_path_cursor_init(&r.c, cfg.seed + 100);
    return r;
}

/* Entry i is in plane 1 + i % planes. */
static inline struct rig rig_new(uint16_t count, uint8_t planes, uint16_t min_active, uint64_t seed)
{
    struct mrc_path_entry_cfg e[MRC_EV_MAX];
    for (uint32_t i = 0; i < count; i++)
        e[i] = (struct mrc_path_entry_cfg){.ev = rig_ev(i), .plane = (uint8_t)(1 + i % planes)};
    return rig_of((struct mrc_path_cfg){.count = count, .min_active = min_active, .seed = seed}, e);
}

static inline void rig_free(struct rig *r)
{
    free(r->t); /* the table begins at the memory's start */
    r->t = NULL;
}

static inline uint16_t rig_select(struct rig *r, uint16_t avoid)
{
    const uint16_t i = mrc_path_select(r->t, &r->c, ~0u, avoid, 0);
    if (i != MRC_EV_NONE)
        r->used[i]++;
    r->selects++;
    return i;
}

static inline void rig_clear(struct rig *r)
{
    memset(r->used, 0, sizeof r->used);
    r->selects = 0;
}

/* A table of one plane: bring the cursor to the start of a rotation. */
static inline void rig_align(struct rig *r, uint16_t size)
{
    while (r->c.pos[1] != size)
        rig_select(r, MRC_EV_NONE);
    rig_clear(r);
}

static inline uint32_t rig_count(const struct rig *r, enum mrc_ev_state s)
{
    uint32_t n = 0;
    for (uint16_t i = 0; i < mrc_path_count(r->t); i++)
        n += mrc_path_state(r->t, i) == s;
    return n;
}

static inline void rig_event(struct rig *r, uint16_t i, enum mrc_ev_state from,
                             enum mrc_ev_state to, enum mrc_ev_reason why)
{
    struct mrc_ev_event v;
    CHECK_EQ(mrc_path_event_poll(r->t, &v), 1);
    CHECK_EQ(v.ev, rig_ev(i));
    CHECK_EQ(v.plane, mrc_path_entry(r->t, i)->plane);
    CHECK_EQ(v.from, from);
    CHECK_EQ(v.to, to);
    CHECK_EQ(v.reason, why);
    CHECK_EQ(v.drop_count, 0);
}

static inline void rig_drain(struct rig *r)
{
    struct mrc_ev_event v;
    while (mrc_path_event_poll(r->t, &v) != 0) {
    }
}

static inline void rig_no_event(struct rig *r)
{
    struct mrc_ev_event v;
    CHECK_EQ(mrc_path_event_poll(r->t, &v), 0);
}

/* Any call of the interface with any sensible argument; time moves on. */
static inline void rig_any_call(struct rig *r, struct mrc_rand *q, mrc_ns *now, uint32_t *up)
{
    const uint16_t i = (uint16_t)mrc_rand_below(q, mrc_path_count(r->t));
    const uint16_t before = mrc_path_active(r->t);
    uint16_t id = 0;
    *now += mrc_rand_below(q, 400) * MRC_USEC;
    switch (mrc_rand_below(q, 12)) {
    case 0: mrc_path_on_mark(r->t, i, (uint8_t)mrc_rand_below(q, 3), *now); break;
    case 1: mrc_path_on_trim(r->t, i, *now); break;
    case 2:
    case 3: mrc_path_on_loss(r->t, i, MRC_EV_R_LOSS, *now - mrc_rand_below(q, 99), *now); break;
    case 4:
        mrc_path_size_passed(r->t, i, 1000);
        mrc_path_on_rtt(r->t, i, mrc_rand_below(q, 5000) * MRC_USEC);
        break;
    case 5:
        if (mrc_rand_below(q, 4) == 0)
            mrc_path_set_state(r->t, i, MRC_EV_DENIED, *now);
        else
            mrc_path_set_state(r->t, i, MRC_EV_GOOD, *now);
        break;
    case 6:
        *up = (uint32_t)mrc_rand_next(q) | (uint32_t)mrc_rand_next(q);
        mrc_path_set_planes(r->t, *up, ~0u);
        break;
    case 7: mrc_path_select_control(r->t, &r->c, (uint8_t)mrc_rand_below(q, 6)); break;
    case 8: mrc_path_on_probe(r->t, (uint16_t)mrc_rand_next(q), 0, *now); break;
    case 9:
    case 10:
        if (mrc_path_probe_due(r->t, &id, *now) != MRC_EV_NONE && mrc_rand_below(q, 3) != 0)
            mrc_path_on_probe(r->t, id, (uint8_t)mrc_rand_below(q, 3), *now + 100 * MRC_USEC);
        break;
    default: {
        const uint16_t s = mrc_path_select(r->t, &r->c, ~0u, i, *now);
        CHECK_EQ(s == MRC_EV_NONE, before == 0);
        CHECK(s != i || before == 1);
        break;
    }
    }
    mrc_path_tick(r->t, *now);
    CHECK(mrc_path_deadline(r->t) > *now); /* field report 25 */
    rig_drain(r);
}

/* What can be recounted from outside must agree. */
static inline void rig_check(struct rig *r, uint32_t up)
{
    uint16_t active = 0;
    for (uint16_t i = 0; i < mrc_path_count(r->t); i++) {
        struct mrc_path_stats s;
        mrc_path_stats(r->t, i, &s);
        CHECK_EQ(s.state, mrc_path_state(r->t, i));
        active = (uint16_t)(active + (s.state <= MRC_EV_SKIP && !s.backup && (up >> s.plane & 1)));
    }
    CHECK_EQ(mrc_path_active(r->t), active);
    for (uint32_t p = 1; p <= MRC_PLANE_MAX; p++) {
        struct path_load sum = r->t->load[p];
        for (uint16_t i = 0; i < mrc_path_count(r->t); i++) {
            const bool in = mrc_path_entry(r->t, i)->plane == p;
            sum.seen -= in ? r->t->entry[i].load.seen : 0;
            sum.marked -= in ? r->t->entry[i].load.marked : 0;
        }
        CHECK_EQ(sum.seen | sum.marked, 0);
    }
    uint16_t held = 0; /* of those, by verdicts that wait */
    for (uint16_t i = r->t->suspects.head; i != MRC_EV_NONE; i = r->t->entry[i].next) {
        CHECK(path_usable(r->t, i));
        held = (uint16_t)(held + ((up >> r->t->entry[i].cfg.plane & 1) != 0));
    }
    CHECK_EQ(mrc_path_all_bad(r->t), held >= active);
    struct mrc_path_cursor probe = r->c;
    const uint16_t i = mrc_path_select_control(r->t, &probe, 0);
    CHECK_EQ(i == MRC_EV_NONE, active == 0);
    if (i != MRC_EV_NONE) {
        struct mrc_path_stats s;
        mrc_path_stats(r->t, i, &s);
        CHECK(s.state <= MRC_EV_SKIP && !s.backup && (up >> s.plane & 1) != 0);
    }
}

#endif
