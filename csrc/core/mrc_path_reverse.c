/* SPDX-License-Identifier: BSD-2-Clause */
/* The reverse set of a PathTable (MRC D.8): which entry carries what answers the peer. One per
 * plane, the latest that is known to reach the peer: data on it was reported received, or an EV
 * probe on it was answered. The table's QPs share it, as they share the paths. */
#include "mrc_path_priv.h"

enum { PATH_REVERSE_RTT_SHIFT = 2 };
/* One absurd answer must not end the probing for good. */
static const mrc_ns PATH_REVERSE_MAX_NS = 100 * MRC_MSEC;

void path_reverse_init(struct mrc_path_table *t, const struct mrc_path_cfg *cfg)
{
    struct path_reverse *const r = &t->reverse;
    r->rule = cfg->reverse;
    r->plane_shift = cfg->ev_plane_shift;
    r->plane_bits = cfg->ev_plane_bits;
    r->interval_ns = cfg->reverse_interval_ns;
    r->at = MRC_NEVER;
    r->probe = MRC_EV_NONE;
    memset(r->of, 0xFF, sizeof r->of);
}

/* `i`: that EV in our own table. */
static uint32_t path_plane_of(const struct mrc_path_table *t, uint32_t ev, uint16_t i)
{
    const struct path_reverse *const r = &t->reverse;
    if (r->plane_bits != 0) {
        const uint32_t p = ev >> r->plane_shift & ((1u << r->plane_bits) - 1);
        return p <= MRC_PLANE_MAX ? p : 0;
    }
    return i != MRC_EV_NONE ? t->entry[i].cfg.plane : 0;
}

uint8_t mrc_path_plane(const struct mrc_path_table *t, uint32_t ev)
{
    return (uint8_t)path_plane_of(t, ev, mrc_path_find(t, ev));
}

/* The set's entry of plane p, which has a usable one. */
static uint16_t path_reverse_of(struct mrc_path_table *t, uint32_t p)
{
    struct path_reverse *const r = &t->reverse;
    const struct path_plane *const pl = &t->plane[p];
    if (r->of[p] == MRC_EV_NONE || !path_usable(t, r->of[p])) {
        const uint32_t k =
            r->rule == MRC_REVERSE_OWN_RANDOM ? mrc_rand_below(&t->rand, pl->usable) : 0;
        r->of[p] = t->order[pl->first + k];
    }
    return r->of[p];
}

/* May carry an answer when nothing better is left: nobody here has switched it off. */
static bool path_reverse_last(const struct mrc_path_table *t, uint16_t i)
{
    return t->state[i] != MRC_EV_DENIED && (t->local_up >> t->entry[i].cfg.plane & 1) != 0;
}

/* Nothing is usable, yet a request came. Silence would leave both sides without a probe ever
 * answered, so: what it came on, or any, another one each time. A peer that says that a plane is
 * down may number its planes otherwise than we do. */
static uint16_t path_reverse_any(struct mrc_path_table *t, uint16_t came_on)
{
    if (came_on != MRC_EV_NONE && t->reverse.rule == MRC_REVERSE_REFLECT &&
        path_reverse_last(t, came_on))
        return came_on;
    uint16_t i = (uint16_t)mrc_rand_below(&t->rand, t->count);
    for (uint16_t n = 0; n < t->count; n++, i = (uint16_t)((i + 1) % t->count))
        if (path_reverse_last(t, i))
            return i;
    return MRC_EV_NONE;
}

/* *own: the set was used. */
static uint16_t path_reverse_pick(struct mrc_path_table *t, struct mrc_path_cursor *c, uint32_t ev,
                                  bool *own)
{
    const uint16_t i = mrc_path_find(t, ev);
    *own = false;
    if (t->reverse.rule == MRC_REVERSE_REFLECT && i != MRC_EV_NONE && path_up(t, i) &&
        t->state[i] <= MRC_EV_SKIP)
        return i;
    const uint32_t planes = t->live & t->up;
    if (planes == 0)
        return path_reverse_any(t, i);
    *own = true;
    const uint32_t wish = path_plane_of(t, ev, i);
    return path_reverse_of(t, (planes >> wish & 1) != 0 ? wish : path_turn(c, planes));
}

uint16_t mrc_path_reverse(struct mrc_path_table *t, struct mrc_path_cursor *c, uint32_t ev)
{
    bool own;
    return path_reverse_pick(t, c, ev, &own);
}

uint16_t mrc_path_reverse_data(struct mrc_path_table *t, struct mrc_path_cursor *c, uint32_t ev,
                               mrc_ns now)
{
    struct path_reverse *const r = &t->reverse;
    bool own;
    const uint16_t i = path_reverse_pick(t, c, ev, &own);
    if (own && r->at == MRC_NEVER) { /* a round begins */
        r->at = now + mrc_max64(r->interval_ns, r->rtt_ns);
        r->data_sent = false;
    }
    return i;
}

/* The compiler's own count may be a call into its library. */
static uint32_t path_planes_in(uint32_t mask)
{
    uint32_t n = 0;
    for (uint32_t p = 1; p <= MRC_PLANE_MAX; p++)
        n += mask >> p & 1;
    return n;
}

void path_reverse_tick(struct mrc_path_table *t, mrc_ns now)
{
    struct path_reverse *const r = &t->reverse;
    if (r->at > now)
        return;
    r->at = MRC_NEVER;
    uint32_t planes = t->live & t->up;
    if (r->data_sent || planes == 0)
        return;
    for (uint32_t n = mrc_rand_below(&t->rand, path_planes_in(planes)); n > 0; n--)
        planes &= planes - 1;
    const struct path_plane *const pl = &t->plane[__builtin_ctz(planes)];
    r->probe = t->order[pl->first + mrc_rand_below(&t->rand, pl->usable)];
}

uint16_t mrc_path_reverse_probe(struct mrc_path_table *t)
{
    const uint16_t i = t->reverse.probe;
    t->reverse.probe = MRC_EV_NONE;
    return i;
}

void mrc_path_on_reverse(struct mrc_path_table *t, uint16_t i, mrc_ns rtt)
{
    struct path_reverse *const r = &t->reverse;
    const mrc_ns took = mrc_min64(rtt, PATH_REVERSE_MAX_NS);
    r->rtt_ns = r->rtt_ns == 0 ? took
                               : r->rtt_ns - (r->rtt_ns >> PATH_REVERSE_RTT_SHIFT) +
                                     (took >> PATH_REVERSE_RTT_SHIFT);
    if (i < t->count && path_usable(t, i))
        r->of[t->entry[i].cfg.plane] = i;
}
