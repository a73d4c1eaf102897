/* SPDX-License-Identifier: BSD-2-Clause */
/* A host: one engine and its turn, as the pump turns it: packets in, time, packets out. */
#include "../core/mrc_engine_int.h"
#include "fab_int.h"

enum {
    HOST_BURST = 64,
    HOST_TURNS_MAX = 64, /* of completions that post that complete, without time passing */
};

/* ---- out ---- */

static uint64_t host_limit(const struct fab *f)
{
    return (uint64_t)f->cfg.nic_bytes * f->cfg.planes;
}

static void host_emit(struct fab *f, uint32_t host, const struct mrc_tx_pkt *tx)
{
    f->totals.sent++;
    fab_mix(f, f->now ^ (uint64_t)host << 40 ^ tx->ev);
    fab_mix(f, mrc_get64(tx->hdr) ^ mrc_get32(tx->hdr + 8));
    struct fab_packet *const p = fab_packet_new(f);
    if (p == NULL) {
        f->totals.dropped[FAB_DROP_POOL]++;
        return;
    }
    fab_packet_fill(f, p, host, tx->lane, tx);
    fab_link_enter(f, fab_link_id(f, FAB_HOST_UP, tx->port, host, 0), p);
}

/* The engine is asked while its ports have room: what waits is better off in the engine, which
 * knows paths and windows, than in a queue. */
void fab_host_tx(struct fab *f, uint32_t host)
{
    struct fab_host *const h = &f->host[host];
    const uint64_t limit = host_limit(f);
    h->more = false;
    for (;;) {
        if (h->waiting_bytes >= limit) {
            h->more = mrc_engine_tx_pending(h->e);
            return;
        }
        const uint64_t room = (limit - h->waiting_bytes) / (MRC_MTU_MAX + FAB_HEADS) + 1;
        const size_t want = (size_t)mrc_min64(room, HOST_BURST);
        const size_t n = mrc_engine_tx(h->e, f->tx, want, f->now);
        for (size_t i = 0; i < n; i++)
            host_emit(f, host, &f->tx[i]);
        if (n < want)
            return;
    }
}

static void host_schedule(struct fab *f, uint32_t host)
{
    const struct fab_host *const h = &f->host[host];
    const mrc_ns at = mrc_min64(h->turn_at, mrc_engine_deadline(h->e));
    fab_heap_set(&f->heap, fab_source_host(f, host), at == MRC_NEVER ? at : mrc_max64(at, f->now));
}

/* Below half of what may wait, so that the engine is asked for several at once. */
void fab_host_room(struct fab *f, uint32_t host, uint32_t bytes)
{
    struct fab_host *const h = &f->host[host];
    h->waiting_bytes -= bytes;
    if (!h->more || h->waiting_bytes > host_limit(f) / 2)
        return;
    fab_host_tx(f, host);
    host_schedule(f, host);
}

/* ---- in ---- */

void fab_host_wake(struct fab *f, uint32_t host)
{
    f->host[host].turn_at = mrc_min64(f->host[host].turn_at, f->now);
    host_schedule(f, host);
}

void fab_host_arrive(struct fab *f, uint32_t host, uint32_t plane, struct fab_packet *p)
{
    struct fab_host *const h = &f->host[host];
    p->item.len_bytes = plane; /* of no other use any more */
    p->next = NULL;
    *h->held_end = p;
    h->held_end = &p->next;
    if (h->turn_at != MRC_NEVER)
        return;
    h->turn_at = f->now + f->cfg.turn_ns;
    host_schedule(f, host);
}

static void host_rx(struct fab *f, uint32_t host)
{
    struct fab_host *const h = &f->host[host];
    struct fab_packet *p = h->held;
    h->held = NULL;
    h->held_end = &h->held;
    while (p != NULL) {
        struct fab_packet *const next = p->next;
        struct mrc_rx_pkt in;
        if (fab_packet_open(f, p, host, p->item.len_bytes, &in)) {
            f->totals.delivered++;
            mrc_engine_rx(h->e, &in, 1, f->now);
            fab_packet_free(f, p);
        } else {
            fab_packet_drop(f, p, FAB_DROP_STRAY);
        }
        p = next;
    }
}

/* ---- the turn ---- */

void fab_host_turn(struct fab *f, uint32_t host)
{
    struct fab_host *const h = &f->host[host];
    h->turn_at = MRC_NEVER;
    host_rx(f, host);
    mrc_engine_tick(h->e, f->now);
    int turns = 0;
    do {
        h->fresh = false;
        fab_work_completions(f, host);
        fab_host_tx(f, host);
    } while ((h->fresh || mrc_cq_any(h->e)) && ++turns < HOST_TURNS_MAX);
    if (mrc_engine_deadline(h->e) < f->now)
        fab_fail(f, "host %u has a deadline in the past", host);
    host_schedule(f, host);
}

/* ---- carriers: as mrc_pump_set_planes tells the engine ---- */

void fab_host_carrier(struct fab *f, uint32_t host, uint32_t plane)
{
    struct fab_host *const h = &f->host[host];
    const struct fab_link *const up = &f->link[fab_link_id(f, FAB_HOST_UP, plane, host, 0)];
    const struct fab_link *const down = &f->link[fab_link_id(f, FAB_HOST_DOWN, plane, host, 0)];
    const uint32_t bit = 2u << plane;
    const bool is_up = !fab_link_is_down(up) && !fab_link_is_down(down);
    if (((h->local_up & bit) != 0) == is_up)
        return;
    h->local_up ^= bit;
    mrc_engine_ports(h->e, h->local_up);
    for (uint32_t i = 0; i < h->paths; i++) {
        struct mrc_ep_planes now = {.remote_up = MRC_PLANES_ALL};
        (void)mrc_path_planes(h->e, h->path[i].id, &now);
        (void)mrc_path_planes_set(h->e, h->path[i].id, h->local_up, now.remote_up);
    }
    fab_host_wake(f, host);
}

/* ---- what the engine has to tell ---- */

void fab_host_events(struct fab *f, uint32_t host)
{
    struct fab_host *const h = &f->host[host];
    struct mrc_async_event a;
    for (uint32_t i = 0; i < h->paths; i++) {
        struct mrc_ev_event e;
        while (mrc_path_event_poll(h->path[i].object, &e) != 0)
            fab_log(f, &(struct fab_event){.time = e.time,
                                           .kind = FAB_E_EV,
                                           .host = host,
                                           .peer = h->path[i].peer,
                                           .ev = e.ev,
                                           .plane = e.plane,
                                           .from = e.from,
                                           .to = e.to,
                                           .reason = e.reason,
                                           .lost = e.drop_count});
    }
    while (mrc_engine_async_take(h->e, &a) != 0) {
        (void)mrc_engine_async_ack(h->e, 1);
        fab_log(f, &(struct fab_event){.time = a.time,
                                       .kind = FAB_E_ASYNC,
                                       .host = host,
                                       .peer = FAB_NONE,
                                       .ev = a.id,
                                       .plane = a.plane,
                                       .to = a.status,
                                       .reason = a.type,
                                       .lost = a.drop_count});
    }
}
