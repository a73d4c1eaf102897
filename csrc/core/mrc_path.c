/* SPDX-License-Identifier: BSD-2-Clause */
/* PathTable: its memory, who is usable in which plane, and selection (MRC D.6). What happens to an
 * entry is in mrc_path_state.c, probing in mrc_path_probe.c. */
#include "mrc_path_priv.h"

enum {
    PATH_EVENTS = 1024,
    PATH_SUCCESSES = 3,
    PATH_PROBES_MIN = 16,   /* probes out at a time in any table: ADR 0011 */
    PATH_PROBES_SHARE = 20, /* 5 % */
    PATH_SCAN_MAX = 256,    /* places one select may pass before it takes the entry it restored */
};
static const mrc_ns PATH_INTERVAL_NS = MRC_MSEC;
static const mrc_ns PATH_INTERVAL_MAX_NS = 50 * MRC_MSEC;
static const mrc_ns PATH_TIMEOUT_NS = 3 * MRC_MSEC;
static const mrc_ns PATH_TIME_MAX_NS = 3600 * MRC_SEC; /* sums of settings never overflow */

/* ---- memory ---- */

struct path_layout {
    size_t entry, timers, event, addr, order, place, hash, state, end;
};

/* Widest alignment first; the table itself is a multiple of 8. */
static struct path_layout path_layout(const struct mrc_path_cfg *cfg, uint32_t hash_bits)
{
    const size_t n = cfg->count;
    struct path_layout l;
    l.entry = sizeof(struct mrc_path_table);
    l.timers = l.entry + n * sizeof(struct path_entry);
    l.event = l.timers + n * sizeof(struct mrc_heap_node *);
    l.addr = l.event + cfg->event_ring * sizeof(struct mrc_ev_event);
    l.order = l.addr + cfg->addr_count * sizeof(struct mrc_plane_addr);
    l.place = l.order + n * sizeof(uint16_t);
    l.hash = l.place + n * sizeof(uint16_t);
    l.state = l.hash + ((size_t)1 << hash_bits) * sizeof(uint16_t);
    l.end = l.state + n;
    return l;
}

/* At least half of the slots stay empty. */
static uint32_t path_hash_bits(uint16_t count)
{
    uint32_t bits = 2;
    while (1u << bits < 2u * count)
        bits++;
    return bits;
}

static uint32_t path_hash_slot(const struct mrc_path_table *t, uint32_t ev)
{
    return ev * 0x9E3779B1u >> (32 - t->hash_bits);
}

static struct mrc_path_cfg path_cfg_defaults(const struct mrc_path_cfg *cfg)
{
    struct mrc_path_cfg c = *cfg;
    if (c.probe_successes == 0)
        c.probe_successes = PATH_SUCCESSES;
    if (c.event_ring == 0)
        c.event_ring = PATH_EVENTS;
    if (c.probe_interval_ns == 0)
        c.probe_interval_ns = PATH_INTERVAL_NS;
    if (c.probe_interval_max_ns == 0)
        c.probe_interval_max_ns = mrc_max64(PATH_INTERVAL_MAX_NS, c.probe_interval_ns);
    if (c.probe_timeout_ns == 0)
        c.probe_timeout_ns = PATH_TIMEOUT_NS;
    if (c.reverse_interval_ns == 0)
        c.reverse_interval_ns = PATH_INTERVAL_NS;
    return c;
}

static bool path_cfg_ok(const struct mrc_path_cfg *c)
{
    return c->count >= 1 && c->count <= MRC_EV_MAX && c->min_active <= c->count &&
           (c->event_ring & (c->event_ring - 1)) == 0 &&
           c->probe_interval_ns <= c->probe_interval_max_ns &&
           c->probe_interval_max_ns <= PATH_TIME_MAX_NS &&
           c->probe_timeout_ns <= PATH_TIME_MAX_NS && c->reverse_interval_ns <= PATH_TIME_MAX_NS &&
           c->reverse <= MRC_REVERSE_OWN_RANDOM && c->loss <= MRC_LOSS_FIRST &&
           c->skip <= MRC_SKIP_TURN && c->event_mask <= MRC_EV_EVENTS_NONE &&
           c->ev_plane_bits <= 8 && c->ev_plane_shift + c->ev_plane_bits <= 32 &&
           c->addr_count <= MRC_PLANE_MAX;
}

size_t mrc_path_size(const struct mrc_path_cfg *cfg)
{
    const struct mrc_path_cfg c = path_cfg_defaults(cfg);
    return path_cfg_ok(&c) ? path_layout(&c, path_hash_bits(c.count)).end : 0;
}

/* ---- classes of a plane ---- */

static void path_swap(struct mrc_path_table *t, uint16_t a, uint16_t b)
{
    const uint16_t i = t->order[a];
    const uint16_t j = t->order[b];
    t->order[a] = j;
    t->order[b] = i;
    t->place[j] = a;
    t->place[i] = b;
}

/* Class by place in [usable | spare | out]: 0, 1, 2. */
static int path_class(const struct path_plane *pl, uint16_t place)
{
    const uint16_t at = (uint16_t)(place - pl->first);
    return at < pl->usable ? 0 : at < pl->usable + pl->spare ? 1 : 2;
}

/* Carry entry i over one class boundary at a time by changing places with the entry beside it. */
static void path_move(struct mrc_path_table *t, struct path_plane *pl, uint16_t i, int to)
{
    for (int from = path_class(pl, t->place[i]); from != to; from += from < to ? 1 : -1) {
        const uint16_t usable_end = (uint16_t)(pl->first + pl->usable);
        const uint16_t spare_end = (uint16_t)(usable_end + pl->spare);
        if (from == 0) {
            path_swap(t, t->place[i], (uint16_t)(usable_end - 1));
            pl->usable--;
            pl->spare++;
        } else if (from == 2) {
            path_swap(t, t->place[i], spare_end);
            pl->spare++;
        } else if (to == 0) {
            path_swap(t, t->place[i], usable_end);
            pl->usable++;
            pl->spare--;
        } else {
            path_swap(t, t->place[i], (uint16_t)(spare_end - 1));
            pl->spare--;
        }
    }
    const uint32_t bits = pl->usable > 1 ? 32 - (uint32_t)__builtin_clz(pl->usable - 1u) : 0;
    pl->mask = (uint16_t)((1u << bits) - 1);
    pl->half = (uint8_t)((bits + 1) / 2);
}

void path_put(struct mrc_path_table *t, uint16_t i, enum mrc_ev_state s, bool reserve)
{
    struct path_entry *e = &t->entry[i];
    struct path_plane *pl = &t->plane[e->cfg.plane];
    const bool was = path_usable(t, i);
    if (was && t->state[i] == MRC_EV_GOOD)
        pl->good--;
    t->state[i] = (uint8_t)s;
    e->reserve = reserve;
    const bool is = path_usable(t, i);
    if (is && s == MRC_EV_GOOD)
        pl->good++;
    path_move(t, pl, i, is ? 0 : s <= MRC_EV_SKIP ? 1 : 2);
    if (path_up(t, i))
        t->active = (uint16_t)(t->active + is - was);
    const uint32_t bit = 1u << e->cfg.plane;
    t->live = pl->usable != 0 ? t->live | bit : t->live & ~bit;
}

/* ---- creation ---- */

bool path_hash_add(struct mrc_path_table *t, uint16_t i)
{
    const uint32_t mask = (1u << t->hash_bits) - 1;
    uint32_t at = path_hash_slot(t, t->entry[i].cfg.ev);
    for (; t->hash[at] != MRC_EV_NONE; at = (at + 1) & mask)
        if (t->entry[t->hash[at]].cfg.ev == t->entry[i].cfg.ev)
            return false;
    t->hash[at] = i;
    return true;
}

static bool path_entries_init(struct mrc_path_table *t, const struct mrc_path_entry_cfg *entries)
{
    for (uint16_t i = 0; i < t->count; i++) {
        if (entries[i].plane < 1 || entries[i].plane > MRC_PLANE_MAX)
            return false;
        t->entry[i].cfg = entries[i];
        t->entry[i].cfg.addr = path_addr_of(t, entries[i].plane);
        t->plane[entries[i].plane].total++;
        if (!path_hash_add(t, i))
            return false;
    }
    uint16_t first = 0;
    for (uint32_t p = 1; p <= MRC_PLANE_MAX; p++) {
        t->plane[p].first = first;
        first = (uint16_t)(first + t->plane[p].total);
    }
    /* All start out of use, in their plane's part of the order, and are then put to use. */
    uint16_t filled[MRC_PLANE_MAX + 1] = {0};
    for (uint16_t i = 0; i < t->count; i++) {
        const uint8_t p = entries[i].plane;
        t->place[i] = (uint16_t)(t->plane[p].first + filled[p]++);
        t->order[t->place[i]] = i;
        t->state[i] = MRC_EV_DENIED;
    }
    for (uint16_t i = 0; i < t->count; i++)
        path_put(t, i, MRC_EV_GOOD, entries[i].backup);
    return t->active != 0;
}

struct mrc_path_table *mrc_path_init(void *mem, const struct mrc_path_cfg *cfg,
                                     const struct mrc_path_entry_cfg *entries, mrc_ns now)
{
    (void)now;
    const struct mrc_path_cfg c = path_cfg_defaults(cfg);
    if (!path_cfg_ok(&c))
        return NULL;
    const uint32_t hash_bits = path_hash_bits(c.count);
    const struct path_layout l = path_layout(&c, hash_bits);
    uint8_t *const base = mem;
    struct mrc_path_table *const t = mem;
    memset(mem, 0, l.end);
    t->entry = (void *)(base + l.entry);
    t->event = (void *)(base + l.event);
    t->addr = (void *)(base + l.addr);
    t->order = (void *)(base + l.order);
    t->place = (void *)(base + l.place);
    t->hash = (void *)(base + l.hash);
    t->state = base + l.state;
    memset(t->hash, 0xFF, sizeof(uint16_t) << hash_bits);
    mrc_heap_init(&t->timers, (void *)(base + l.timers), c.count);
    mrc_rand_seed(&t->rand, c.seed);
    t->up = ~1u;
    t->local_up = ~1u;
    t->hash_bits = hash_bits;
    t->event_mask = c.event_ring - 1u;
    t->loss_rule = c.loss;
    t->skip_rule = c.skip;
    t->count = c.count;
    t->min_active = c.min_active;
    const uint32_t share = c.count / PATH_PROBES_SHARE;
    t->probes_max = (uint16_t)(share > PATH_PROBES_MIN ? share : PATH_PROBES_MIN);
    t->successes_needed = c.probe_successes;
    t->ready = (struct path_list){MRC_EV_NONE, MRC_EV_NONE};
    t->suspects = t->ready;
    t->interval_ns = c.probe_interval_ns;
    t->interval_max_ns = c.probe_interval_max_ns;
    t->timeout_ns = c.probe_timeout_ns;
    mrc_path_set_events(t, c.event_mask);
    path_reverse_init(t, &c);
    return path_addrs_init(t, &c) && path_entries_init(t, entries) ? t : NULL;
}

void mrc_path_cursor_init(struct mrc_path_cursor *c, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    mrc_rand_seed(&c->rand, seed);
    for (uint32_t p = 0; p <= MRC_PLANE_MAX; p++)
        c->key[p] = (uint32_t)(mrc_rand_next(&c->rand) >> 32);
    c->plane = (uint8_t)mrc_rand_below(&c->rand, MRC_PLANE_MAX + 1);
}

/* ---- looking ---- */

uint16_t mrc_path_count(const struct mrc_path_table *t) { return t->count; }
uint16_t mrc_path_active(const struct mrc_path_table *t) { return t->active; }

uint16_t mrc_path_find(const struct mrc_path_table *t, uint32_t ev)
{
    const uint32_t mask = (1u << t->hash_bits) - 1;
    for (uint32_t at = path_hash_slot(t, ev);; at = (at + 1) & mask) {
        const uint16_t i = t->hash[at];
        if (i == MRC_EV_NONE || t->entry[i].cfg.ev == ev)
            return i;
    }
}

const struct mrc_path_entry_cfg *mrc_path_entry(const struct mrc_path_table *t, uint16_t i)
{
    MRC_ASSERT(i < t->count);
    return &t->entry[i].cfg;
}

enum mrc_ev_state mrc_path_state(const struct mrc_path_table *t, uint16_t i)
{
    MRC_ASSERT(i < t->count);
    return (enum mrc_ev_state)t->state[i];
}

mrc_ns mrc_path_srtt(const struct mrc_path_table *t, uint16_t i) { return t->entry[i].srtt_ns; }
mrc_ns mrc_path_rttvar(const struct mrc_path_table *t, uint16_t i) { return t->entry[i].rttvar_ns; }

void mrc_path_stats(const struct mrc_path_table *t, uint16_t i, struct mrc_path_stats *out)
{
    MRC_ASSERT(i < t->count);
    *out = t->entry[i].stats;
    out->ev = t->entry[i].cfg.ev;
    out->plane = t->entry[i].cfg.plane;
    out->state = t->state[i];
    out->backup = t->entry[i].reserve;
}

/* ---- selection ---- */

/* Permutation of 0..mask chosen by key: every step is invertible modulo mask + 1, a power of two.
 * With three rounds each entry follows each other about equally often; two leave pairs that never
 * meet (an odd factor keeps the lowest bit of a difference). */
static inline uint32_t path_permute(uint32_t x, uint32_t key, uint32_t mask, uint32_t half)
{
    const uint32_t a = key | 1;
    const uint32_t b = key >> 16 | 1;
    x = (x ^ key >> 16) * a & mask;
    x ^= x >> half;
    x = (x + (key >> 1)) * b & mask;
    x ^= x >> half;
    x = (x + (key >> 8)) * a & mask;
    return x ^ x >> 1;
}

/* The next usable entry of plane p, which has one, in the cursor's order. Fewer than half of the
 * places are empty. */
static inline uint16_t path_next(const struct mrc_path_table *t, struct mrc_path_cursor *c,
                                 uint32_t p)
{
    const struct path_plane *const pl = &t->plane[p];
    uint32_t pos = c->pos[p];
    uint32_t at;
    do {
        if (pos > pl->mask) { /* once round: another permutation (D.6) */
            c->key[p] = (uint32_t)(mrc_rand_next(&c->rand) >> 32);
            pos = 0;
        }
        at = path_permute(pos++, c->key[p], pl->mask, pl->half);
    } while (at >= pl->usable);
    c->pos[p] = (uint16_t)pos;
    return t->order[pl->first + at];
}

/* Is there a GOOD entry in plane p besides `avoid`? */
static bool path_good_left(const struct mrc_path_table *t, uint32_t p, uint16_t avoid)
{
    const bool mine = avoid != MRC_EV_NONE && t->entry[avoid].cfg.plane == p &&
                      path_usable(t, avoid) && t->state[avoid] == MRC_EV_GOOD;
    return t->plane[p].good > mine;
}

/* Not to be restored yet. While a plane has few GOOD entries a congested one is none to do without,
 * and a rotation that passes more entries than it uses would cost more than its packets. */
static bool path_skip_lasts(const struct mrc_path_table *t, uint32_t p, uint16_t i, mrc_ns now)
{
    const struct path_plane *const pl = &t->plane[p];
    return t->state[i] == MRC_EV_SKIP && now < t->entry[i].skip_until_ns &&
           2 * pl->good >= pl->usable;
}

/* Scan plane p on from entry i, which the cursor gave. There is a usable entry other than `avoid`,
 * or avoid is none. Amortised O(1): each SKIP entry passed is one that some mark put there, or one
 * of no more than there are GOOD ones; and the fewer of those are left, the more calls have
 * restored before long. */
static uint16_t path_scan(struct mrc_path_table *t, struct mrc_path_cursor *c, uint32_t p,
                          uint16_t i, uint16_t avoid, bool restore, mrc_ns now)
{
    const bool good_left = path_good_left(t, p, avoid);
    uint16_t skipped = MRC_EV_NONE;
    for (uint32_t seen = 0;; seen++, i = path_next(t, c, p)) {
        if (i == avoid)
            continue;
        if (t->state[i] == MRC_EV_GOOD && i != skipped)
            return i;
        if (skipped == MRC_EV_NONE) {
            if (restore && good_left && seen < PATH_SCAN_MAX && path_skip_lasts(t, p, i, now))
                continue;
            skipped = i;
            if (restore)
                path_put(t, i, MRC_EV_GOOD, false);
        }
        if (!good_left || seen >= PATH_SCAN_MAX)
            return skipped;
    }
}

/* For a retransmission: not `avoid` while there is another entry (H34), and over another plane
 * while there is one: what the packet was lost for may be the plane's, and turns that copies share
 * with probes would bring the same plane again and again (ADR 132). */
static uint16_t path_select_but(struct mrc_path_table *t, struct mrc_path_cursor *c,
                                uint32_t planes, uint16_t avoid, mrc_ns now)
{
    const uint8_t own = t->entry[avoid].cfg.plane;
    const uint32_t others = planes & ~(1u << own);
    if (others != 0)
        planes = others;
    else if (path_usable(t, avoid) && t->plane[own].usable == 1)
        avoid = MRC_EV_NONE; /* the only one left */
    const uint32_t p = path_turn(c, planes);
    return path_scan(t, c, p, path_next(t, c, p), avoid, true, now);
}

uint16_t mrc_path_select(struct mrc_path_table *t, struct mrc_path_cursor *c, uint32_t plane_mask,
                         uint16_t avoid, mrc_ns now)
{
    const uint32_t planes = t->live & t->up & plane_mask;
    if (planes == 0)
        return MRC_EV_NONE;
    if (avoid != MRC_EV_NONE)
        return path_select_but(t, c, planes, avoid, now);
    const uint32_t p = path_turn(c, planes);
    const uint16_t i = path_next(t, c, p);
    return t->state[i] == MRC_EV_GOOD ? i : path_scan(t, c, p, i, MRC_EV_NONE, true, now);
}

uint16_t mrc_path_select_control(struct mrc_path_table *t, struct mrc_path_cursor *c, uint8_t plane)
{
    const uint32_t planes = t->live & t->up;
    if (planes == 0)
        return MRC_EV_NONE;
    const bool there = plane <= MRC_PLANE_MAX && (planes >> plane & 1) != 0;
    const uint32_t p = there ? plane : path_turn(c, planes);
    return path_scan(t, c, p, path_next(t, c, p), MRC_EV_NONE, false, 0);
}
