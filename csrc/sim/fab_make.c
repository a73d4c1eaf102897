/* SPDX-License-Identifier: BSD-2-Clause */
/* A fabric from its tables: everything it will ever need. */
#include "fab_int.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAKE_BLOCKS = 1 << 20, MAKE_PPM = 1000000 };

/* ---- memory ---- */

void *fab_alloc(struct fab *f, size_t bytes)
{
    void *const p = calloc(1, bytes != 0 ? bytes : 1);
    if (p == NULL)
        return NULL;
    if ((f->blocks & (f->blocks - 1)) == 0) {
        const size_t room = f->blocks == 0 ? 1 : (size_t)f->blocks * 2;
        void **const more = realloc(f->block, room * sizeof *more);
        if (more == NULL) {
            free(p);
            return NULL;
        }
        f->block = more;
    }
    f->block[f->blocks++] = p;
    f->memory_bytes += bytes;
    return p;
}

void fab_destroy(struct fab *f)
{
    if (f == NULL)
        return;
    for (uint32_t i = 0; i < f->blocks; i++)
        free(f->block[i]);
    free(f->block);
    free(f);
}

/* ---- what makes sense ---- */

static const char *make_shape(struct fab_cfg *c)
{
    c->number_bits = c->number_bits != 0 ? c->number_bits : 8;
    if (c->number_bits != 8 && c->number_bits != 9)
        return "number_bits is 8 or 9";
    const uint32_t planes_max = c->number_bits == 8 ? 15 : 8;
    const uint32_t numbers = c->number_bits == 8 ? 255 : 512;
    const uint32_t uplinks = c->number_bits == 8 ? 255 : 256; /* an EV has 8 bits for them */
    if (c->planes < 1 || c->planes > planes_max)
        return "planes are 1 to 15, or to 8 with wide numbers";
    if (c->t0 < 1 || c->t0 > numbers || c->t1 > uplinks)
        return "more switches in a plane than numbers";
    if (c->hosts < 2)
        return "a fabric has 2 hosts or more";
    if (c->hosts_per_t0 == 0)
        c->hosts_per_t0 = (c->hosts + c->t0 - 1) / c->t0;
    if (c->hosts_per_t0 > numbers || (c->hosts - 1) / c->hosts_per_t0 >= c->t0)
        return "more hosts than the T0 switches have ports for";
    return NULL;
}

static const char *make_defaults(struct fab_cfg *c)
{
    const uint32_t weights[SIM_CLASSES] = {[SIM_DATA] = 3, [SIM_CONTROL] = 30, [SIM_TRIMMED] = 1};
    const char *const why = make_shape(c);
    if (why != NULL)
        return why;
    for (int i = 0; i < SIM_CLASSES; i++)
        c->weight[i] = c->weight[i] != 0 ? c->weight[i] : weights[i];
    c->t1_rate_bps = c->t1_rate_bps != 0 ? c->t1_rate_bps : c->rate_bps;
    c->lasthop_bytes = c->lasthop_bytes != 0 ? c->lasthop_bytes : c->queue_bytes[SIM_DATA];
    c->nic_bytes = c->nic_bytes != 0 ? c->nic_bytes : 32768;
    c->log_max = mrc_pow2(c->log_max != 0 ? mrc_min32(c->log_max, 1 << 24) : 65536);
    if (c->packets_max == 0)
        c->packets_max = (uint32_t)mrc_min64(65536 + (uint64_t)c->hosts * 4096, 1 << 21);
    if (c->rate_bps < 1000 || c->t1_rate_bps < 1000)
        return "a cable has a rate of 1 kbit/s or more";
    if (c->trim_bytes != 0 && (c->trim_bytes < FAB_HEADS + 36 || c->trim_bytes > 1024))
        return "trim_bytes leaves 124 to 1024 bytes of a packet";
    if (c->mark_hi_bytes != 0 && c->mark_lo_bytes > c->mark_hi_bytes)
        return "the lower mark threshold is above the upper";
    if (c->jitter_ppm > MAKE_PPM || c->packets_max > 1u << 24)
        return "a value is out of its range";
    if (c->jitter_ns != 0 && c->jitter_ppm == 0)
        c->jitter_ppm = MAKE_PPM;
    return NULL;
}

/* ---- links and switches ---- */

static void make_link(struct fab *f, enum fab_tier tier, uint32_t plane, uint32_t a, uint32_t b)
{
    const struct fab_cfg *const c = &f->cfg;
    const uint32_t id = fab_link_id(f, tier, plane, a, b);
    struct fab_link *const l = &f->link[id];
    const bool host = tier == FAB_HOST_UP || tier == FAB_HOST_DOWN;
    struct sim_queue_cfg q = {.rate_bps = host ? c->rate_bps : c->t1_rate_bps};
    const struct sim_link_cfg w = {
        .delay_ns = c->delay_ns, .jitter_ns = c->jitter_ns, .jitter_ppm = c->jitter_ppm};
    memcpy(q.weight, c->weight, sizeof q.weight);
    if (tier != FAB_HOST_UP) { /* the host does not throw away what its engine emits */
        memcpy(q.limit_bytes, c->queue_bytes, sizeof q.limit_bytes);
        q.trim_bytes = c->trim_bytes != 0 ? c->trim_bytes + c->frame_bytes : 0;
    }
    if (tier == FAB_HOST_DOWN) /* E.8 */
        q.limit_bytes[SIM_DATA] = c->lasthop_bytes;
    if (!host) {
        q.mark_lo_bytes = c->mark_lo_bytes;
        q.mark_hi_bytes = c->mark_hi_bytes;
    }
    sim_queue_init(&l->port, &q, mrc_mix64(c->seed ^ (uint64_t)id << 20 ^ 1));
    sim_link_init(&l->wire, &w, mrc_mix64(c->seed ^ (uint64_t)id << 20 ^ 2));
    mrc_rand_seed(&l->rand, mrc_mix64(c->seed ^ (uint64_t)id << 20 ^ 3));
    l->tier = (uint8_t)tier;
    l->plane = (uint8_t)plane;
    l->mtu = c->mtu_bytes;
    l->rate_bps = q.rate_bps;
    l->plain = c->jitter_ns == 0;
    const uint32_t t0 = fab_switch_id(f, false, plane, host ? a / c->hosts_per_t0 : a);
    const uint32_t other = host ? a : fab_switch_id(f, true, plane, b);
    const bool up = tier == FAB_HOST_DOWN || tier == FAB_T0_T1;
    l->from = up ? t0 : other;
    l->to = up ? other : t0;
}

static void make_links(struct fab *f, uint32_t plane)
{
    for (uint32_t h = 0; h < f->cfg.hosts; h++) {
        make_link(f, FAB_HOST_UP, plane, h, 0);
        make_link(f, FAB_HOST_DOWN, plane, h, 0);
    }
    for (uint32_t a = 0; a < f->cfg.t0; a++)
        for (uint32_t b = 0; b < f->cfg.t1; b++) {
            make_link(f, FAB_T0_T1, plane, a, b);
            make_link(f, FAB_T1_T0, plane, a, b);
        }
}

static bool make_switch(struct fab *f, bool t1, uint32_t plane, uint32_t n)
{
    const struct fab_cfg *const c = &f->cfg;
    struct fab_switch *const s = &f->sw[fab_switch_id(f, t1, plane, n)];
    const uint32_t room = fab_routes_room(t1 ? c->t0 : c->t1 + c->hosts_per_t0);
    *s = (struct fab_switch){.usid = fab_usid(c, t1 ? FAB_ROLE_T1 : FAB_ROLE_T0, plane, n),
                             .t1 = t1,
                             .plane = (uint8_t)plane,
                             .index = n};
    s->routes.slot = fab_alloc(f, room * sizeof *s->routes.slot);
    s->routes.mask = room - 1;
    if (s->routes.slot == NULL)
        return false;
    for (uint32_t i = 0; t1 && i < c->t0; i++)
        fab_route_add(&s->routes, fab_usid(c, FAB_ROLE_T0, plane, i),
                      fab_link_id(f, FAB_T1_T0, plane, i, n));
    for (uint32_t i = 0; !t1 && i < c->t1; i++)
        fab_route_add(&s->routes, fab_usid(c, FAB_ROLE_T1, plane, i),
                      fab_link_id(f, FAB_T0_T1, plane, n, i));
    for (uint32_t i = 0; !t1 && i < c->hosts_per_t0; i++) {
        const uint32_t host = n * c->hosts_per_t0 + i;
        if (host < c->hosts)
            fab_route_add(&s->routes, fab_usid(c, FAB_ROLE_HOST, plane, i),
                          fab_link_id(f, FAB_HOST_DOWN, plane, host, 0));
    }
    return true;
}

static bool make_net(struct fab *f)
{
    const struct fab_cfg *const c = &f->cfg;
    f->links_plane = 2 * c->hosts + 2 * c->t0 * c->t1;
    f->links = f->links_plane * c->planes;
    f->switches = (c->t0 + c->t1) * c->planes;
    f->link = fab_alloc(f, f->links * sizeof *f->link);
    f->sw = fab_alloc(f, f->switches * sizeof *f->sw);
    const uint32_t sources = 2 * f->links + c->hosts + 1;
    f->heap.item = fab_alloc(f, sources * sizeof *f->heap.item);
    f->heap.place = fab_alloc(f, sources * sizeof *f->heap.place);
    if (f->link == NULL || f->sw == NULL || f->heap.item == NULL || f->heap.place == NULL)
        return false;
    for (uint32_t p = 0; p < c->planes; p++) {
        make_links(f, p);
        for (uint32_t i = 0; i < c->t0; i++)
            if (!make_switch(f, false, p, i))
                return false;
        for (uint32_t i = 0; i < c->t1; i++)
            if (!make_switch(f, true, p, i))
                return false;
    }
    return true;
}

static bool make_pools(struct fab *f)
{
    enum { TX_BURST = 64 };
    const uint32_t n = f->cfg.packets_max;
    struct fab_packet *const pool = fab_alloc(f, n * sizeof *pool);
    f->tx = fab_alloc(f, TX_BURST * sizeof *f->tx);
    f->rx = fab_alloc(f, MRC_HDR_MAX + MRC_MTU_MAX + 64);
    f->log = fab_alloc(f, f->cfg.log_max * sizeof *f->log);
    f->log_spare = fab_alloc(f, f->cfg.log_max * sizeof *f->log);
    f->log_mask = f->cfg.log_max - 1;
    f->carrier_due = fab_alloc(f, f->cfg.hosts * f->cfg.planes);
    if (pool == NULL || f->tx == NULL || f->rx == NULL || f->log == NULL || f->log_spare == NULL ||
        f->carrier_due == NULL)
        return false;
    for (uint32_t i = n; i > 0; i--) {
        pool[i - 1].next = f->free;
        f->free = &pool[i - 1];
    }
    return true;
}

/* ---- the tables ---- */

static bool make_tables(struct fab *f, const struct fab_tables *t)
{
    f->evs = t->evs;
    f->qps = t->qps;
    f->ccs = t->ccs;
    f->msgs = t->msgs;
    f->bulks = t->bulks;
    f->flows = 2 * t->qps;
    f->ev = fab_alloc(f, t->evs * sizeof *f->ev);
    f->qp = fab_alloc(f, t->qps * sizeof *f->qp);
    f->cc = fab_alloc(f, t->ccs * sizeof *f->cc);
    f->msg = fab_alloc(f, t->msgs * sizeof *f->msg);
    f->bulk = fab_alloc(f, t->bulks * sizeof *f->bulk);
    f->flow = fab_alloc(f, f->flows * sizeof *f->flow);
    f->state = fab_alloc(f, t->msgs * sizeof *f->state);
    f->edge = fab_alloc(f, 2 * (size_t)t->msgs * sizeof *f->edge);
    f->timers_max = t->msgs + t->bulks + f->cfg.hosts * f->cfg.planes;
    f->timer = fab_alloc(f, f->timers_max * sizeof *f->timer);
    if (f->ev == NULL || f->qp == NULL || f->cc == NULL || f->msg == NULL || f->bulk == NULL ||
        f->flow == NULL || f->state == NULL || f->edge == NULL || f->timer == NULL)
        return false;
    if (t->evs != 0)
        memcpy(f->ev, t->ev, t->evs * sizeof *f->ev);
    if (t->qps != 0)
        memcpy(f->qp, t->qp, t->qps * sizeof *f->qp);
    if (t->ccs != 0)
        memcpy(f->cc, t->cc, t->ccs * sizeof *f->cc);
    if (t->msgs != 0)
        memcpy(f->msg, t->msg, t->msgs * sizeof *f->msg);
    if (t->bulks != 0)
        memcpy(f->bulk, t->bulk, t->bulks * sizeof *f->bulk);
    return true;
}

static bool make_all(struct fab *f, const struct fab_tables *t, char *why)
{
    enum { COUNT_MAX = 1 << 26 };
    if (t->qps > COUNT_MAX || t->msgs > COUNT_MAX || t->evs > COUNT_MAX || t->bulks > COUNT_MAX ||
        t->ccs > COUNT_MAX) {
        snprintf(why, FAB_WHY_MAX, "a table is too long");
        return false;
    }
    snprintf(why, FAB_WHY_MAX, "no memory");
    if (!make_net(f) || !make_pools(f) || !make_tables(f, t) || !fab_join(f, why))
        return false;
    fab_work_start(f);
    why[0] = '\0';
    return true;
}

struct fab *fab_create(const struct fab_cfg *cfg, const struct fab_tables *tables,
                       char why[FAB_WHY_MAX])
{
    struct fab_cfg c = *cfg;
    const char *const refused = make_defaults(&c);
    if (refused != NULL) {
        snprintf(why, FAB_WHY_MAX, "%s", refused);
        return NULL;
    }
    struct fab *const f = calloc(1, sizeof *f);
    if (f == NULL) {
        snprintf(why, FAB_WHY_MAX, "no memory");
        return NULL;
    }
    f->cfg = c;
    f->start = MRC_SEC; /* the engines' clock is never 0 */
    f->now = f->start;
    if (make_all(f, tables, why))
        return f;
    fab_destroy(f);
    return NULL;
}
