/* SPDX-License-Identifier: BSD-2-Clause */
#include "world_int.h"

#include <stdarg.h>
#include <stdlib.h>

enum {
    WORLD_TURNS_AT_ONCE = 1000, /* more without time passing: a timer stuck in the past */
    WORLD_TX_AT_ONCE = 200000,  /* packets of one turn: a loop without end */
    WORLD_MEMORY_CHECK_STEPS = 16384,
    WORLD_QUIET_MS = 50,
};

/* ---- memory, failure, hash ---- */

/* With litter each block lies a little further up than it would. */
static size_t world_shift(const struct world *w)
{
    return w->cfg.litter == 0 ? 0 : 16 * (1 + (size_t)w->blocks_n * 37 % 256);
}

void *world_alloc(struct world *w, size_t bytes)
{
    const size_t shift = world_shift(w);
    uint8_t *const p = calloc(1, shift + bytes);
    if (p == NULL)
        abort();
    if ((w->blocks_n & (w->blocks_n - 1)) == 0) {
        const size_t room = w->blocks_n == 0 ? 1 : (size_t)w->blocks_n * 2;
        w->blocks = realloc(w->blocks, room * sizeof(*w->blocks));
        if (w->blocks == NULL)
            abort();
    }
    w->blocks[w->blocks_n++] = p;
    return p + shift;
}

void *world_lend(struct world *w, size_t bytes)
{
    return memset(world_alloc(w, bytes), w->cfg.litter, bytes);
}

void world_fail(struct world *w, const char *fmt, ...)
{
    if (w->failure[0] != '\0')
        return;
    const int n = snprintf(w->failure, sizeof(w->failure),
                           "t=%.6f s: ", (double)(w->now - w->cfg.start_ns) / 1e9);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->failure + n, sizeof(w->failure) - (size_t)n, fmt, ap);
    va_end(ap);
    if (w->trace != NULL)
        fprintf(w->trace, "FAILURE %s\n", w->failure);
}

void world_mix(struct world *w, uint64_t x) { w->hash = mrc_mix64(w->hash ^ x); }

/* ---- events ---- */

static bool world_before(const struct world_event *a, const struct world_event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void world_push(struct world *w, struct world_event e)
{
    e.seq = w->seq++;
    if (w->heap_n == w->heap_max) {
        w->heap_max = w->heap_max == 0 ? 1024 : w->heap_max * 2;
        w->heap = realloc(w->heap, w->heap_max * sizeof(*w->heap));
        if (w->heap == NULL)
            abort();
    }
    uint32_t i = w->heap_n++;
    for (; i > 0 && world_before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = e;
}

static struct world_event world_pop(struct world *w)
{
    const struct world_event top = w->heap[0];
    const struct world_event last = w->heap[--w->heap_n];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= w->heap_n)
            break;
        if (child + 1 < w->heap_n && world_before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!world_before(&w->heap[child], &last))
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return top;
}

void world_at(struct world *w, mrc_ns at, world_action_fn fn, void *arg, uint32_t n)
{
    world_push(w, (struct world_event){.at = at, .action = fn, .arg = arg, .n = n});
}

/* ---- turns ---- */

static void world_tx(struct world *w, uint32_t host)
{
    struct mrc_tx_pkt out[WORLD_BURST];
    size_t all = 0;
    size_t n = 0;
    do {
        n = mrc_engine_tx(w->host[host].e, out, WORLD_BURST, w->now);
        for (size_t i = 0; i < n; i++)
            world_transmit(w, host, &out[i]);
        all += n;
        if (all > WORLD_TX_AT_ONCE)
            world_fail(w, "host %u does not stop sending", host);
    } while (n == WORLD_BURST && w->failure[0] == '\0');
}

static void world_poll_events(struct world *w, uint32_t host)
{
    for (uint32_t peer = 0; peer < w->cfg.hosts; peer++) {
        struct mrc_ev_event e;
        if (peer == host)
            continue;
        while (mrc_path_event_poll(w->host[host].table[peer], &e)) {
            e.table = host;
            world_log_event(w, host, peer, &e);
            world_cover_event(w, &e);
            if (e.reason == MRC_EV_R_MTU && !w->narrow)
                world_fail(w, "host %u retires EV %08x for its MTU", host, (unsigned)e.ev);
            if (w->trace != NULL)
                fprintf(w->trace, "%12.3f us host %u ev %08x state %u -> %u reason %u\n",
                        (double)(w->now - w->cfg.start_ns) / 1e3, host, e.ev, e.from, e.to,
                        e.reason);
            world_mix(w, (uint64_t)e.ev << 16 ^ (uint64_t)e.to << 8 ^ e.reason);
            w->events[w->events_n++ % WORLD_EVENTS_KEPT] = e;
        }
    }
}

/* What waits at the host, in bursts. */
static void world_hand_in(struct world *w, uint32_t host)
{
    struct world_host *const h = &w->host[host];
    struct mrc_rx_pkt in[WORLD_BURST];
    struct world_packet *p[WORLD_BURST];
    while (h->held != NULL) {
        uint32_t n = 0;
        for (; n < WORLD_BURST && h->held != NULL; n++) {
            p[n] = h->held;
            h->held = p[n]->next;
            in[n] = p[n]->rx;
            world_check_arrived(w, host, p[n]);
            world_log_arrived(w, host, p[n]);
        }
        mrc_engine_rx(h->e, in, n, w->now);
        for (uint32_t i = 0; i < n; i++)
            world_packet_free(w, p[i]);
    }
    h->held_end = &h->held;
    h->held_n = 0;
}

void world_turn(struct world *w, uint32_t host)
{
    struct world_host *const h = &w->host[host];
    if (h->stalled_until > w->now)
        return;
    world_log_turn(w, host);
    world_hand_in(w, host);
    mrc_engine_tick(h->e, w->now);
    world_kick(w, host);

    /* No deadline in the past after a tick, and no busy loop on one that is now: field report 25.
     */
    const mrc_ns next = mrc_engine_deadline(h->e);
    if (next < w->now)
        world_fail(w, "host %u: deadline %.3f us in the past", host, (double)(w->now - next) / 1e3);
    h->turns_at_once = h->last_turn == w->now ? h->turns_at_once + 1 : 0;
    h->last_turn = w->now;
    if (h->turns_at_once > WORLD_TURNS_AT_ONCE)
        world_fail(w, "host %u: %u turns without time passing", host, h->turns_at_once);
}

static void world_wake(struct world *w, void *arg, uint32_t n)
{
    (void)arg;
    world_turn(w, n);
}

void world_stall(struct world *w, uint32_t host, mrc_ns for_ns)
{
    struct world_host *const h = &w->host[host];
    h->stalled_until = mrc_max64(h->stalled_until, w->now + for_ns);
    world_at(w, h->stalled_until, world_wake, NULL, host);
    world_seen(w, WORLD_C_STALLED);
    world_log_note(w, "stall", host, 0, 0);
}

static void world_trace_flows(struct world *w, uint32_t host)
{
    for (uint32_t i = 0; w->trace != NULL && i < w->flows; i++) {
        if (w->flow[i].from != host)
            continue;
        const struct mrc_qp_stats s = world_stats(w, &w->flow[i]);
        fprintf(w->trace, "%12.3f us flow %u in flight %lld of %llu, outstanding %u, queue %u\n",
                (double)(w->now - w->cfg.start_ns) / 1e3, i, (long long)s.inflight_bytes,
                (unsigned long long)s.cwnd_bytes, s.outstanding, s.sq_used);
    }
}

void world_kick(struct world *w, uint32_t host)
{
    if (w->host[host].stalled_until > w->now)
        return;
    do {
        world_poll_events(w, host);
        world_tx(w, host);
        world_poll_events(w, host);
    } while (world_completions(w, host) && w->failure[0] == '\0');
    world_trace_flows(w, host);
}

static void world_turn_action(struct world *w, void *arg, uint32_t n)
{
    (void)arg;
    w->host[n].turn_queued = false;
    world_turn(w, n);
}

void world_arrive(struct world *w, struct world_packet *p)
{
    struct world_host *const h = &w->host[p->to];
    const bool stalled = h->stalled_until > w->now;
    if (stalled && h->held_n >= WORLD_HELD_MAX) {
        world_seen(w, WORLD_C_STALL_LOST);
        world_packet_free(w, p);
        return;
    }
    p->next = NULL;
    *h->held_end = p;
    h->held_end = &p->next;
    h->held_n++;
    if (stalled)
        return;
    if (h->held_n == WORLD_BURST) {
        world_turn(w, p->to);
    } else if (!h->turn_queued) {
        h->turn_queued = true;
        world_at(w, w->now + w->cfg.turn_ns, world_turn_action, NULL, p->to);
    }
}

/* The earliest thing there is, if it is not after `until`. */
static bool world_step(struct world *w, mrc_ns until)
{
    mrc_ns when = w->heap_n != 0 ? w->heap[0].at : MRC_NEVER;
    uint32_t host = UINT32_MAX;
    for (uint32_t i = 0; i < w->cfg.hosts; i++) {
        const mrc_ns d = mrc_max64(mrc_engine_deadline(w->host[i].e), w->host[i].stalled_until);
        if (d < when) {
            when = d;
            host = i;
        }
    }
    if (when > until)
        return false;
    if (when > w->now)
        w->now = when;
    w->steps++;
    if (host != UINT32_MAX) {
        world_turn(w, host);
    } else {
        const struct world_event e = world_pop(w);
        if (e.packet != NULL && w->cfg.port.rate_bps != 0)
            world_port_enter(w, e.packet);
        else if (e.packet != NULL)
            world_arrive(w, e.packet);
        else
            e.action(w, e.arg, e.n);
    }
    if (w->steps % WORLD_MEMORY_CHECK_STEPS == 0)
        for (uint32_t i = 0; i < w->flows; i++)
            world_memory_check(w, &w->flow[i]);
    return true;
}

bool world_run(struct world *w, mrc_ns until)
{
    while (w->failure[0] == '\0' && world_step(w, until))
        ;
    if (w->failure[0] == '\0' && until != MRC_NEVER && until > w->now)
        w->now = until;
    return w->failure[0] == '\0';
}

/* Nothing may be left over once all is done: field reports 19, 27, 49. */
static void world_check_quiet(struct world *w)
{
    for (uint32_t i = 0; i < w->flows; i++) {
        const struct world_flow *const f = &w->flow[i];
        world_memory_check(w, &w->flow[i]);
        if (f->retired)
            continue;
        const struct mrc_qp_stats s = world_stats(w, f);
        if (f->dead && f->completed != f->posted)
            world_fail(w, "flow %u: %llu of %llu work requests completed after the error", i,
                       (unsigned long long)f->completed, (unsigned long long)f->posted);
        if (f->dead || w->flow[f->reverse].dead)
            continue;
        if (s.outstanding != 0 || s.sq_used != 0)
            world_fail(w, "flow %u: %u packets outstanding, %u of the queue used when idle", i,
                       s.outstanding, s.sq_used);
        if (f->imm_posted != f->imm_taken)
            world_fail(w, "flow %u: %llu immediates, %llu delivered", i,
                       (unsigned long long)f->imm_posted, (unsigned long long)f->imm_taken);
        if (w->host[f->from].cc[f->to]->inflight != 0 && s.inflight_bytes != 0)
            world_fail(w, "flow %u: %lld bytes in flight when idle", i,
                       (long long)s.inflight_bytes);
    }
    /* A reply is never more than was asked, whoever asks. A SACK that walks over a wide window
     * (B.4) reports news only, and each accepted packet brings one. */
    for (uint32_t i = 0; i < w->cfg.hosts; i++)
        if (w->host[i].answered > 2 * w->host[i].asked)
            world_fail(w, "host %u: %llu answers to %llu packets", i,
                       (unsigned long long)w->host[i].answered,
                       (unsigned long long)w->host[i].asked);
}

bool world_finish(struct world *w, mrc_ns limit)
{
    bool done = false;
    while (!done && w->failure[0] == '\0') {
        done = true;
        for (uint32_t i = 0; i < w->flows; i++)
            done = done && world_flow_done(w, &w->flow[i]);
        if (done)
            break;
        if (!world_step(w, limit)) {
            for (uint32_t i = 0; i < w->flows; i++)
                if (!world_flow_done(w, &w->flow[i]))
                    world_fail(w, "no end of flow %u by %.3f s: posted %llu, completed %llu", i,
                               (double)(limit - w->cfg.start_ns) / 1e9,
                               (unsigned long long)w->flow[i].posted,
                               (unsigned long long)w->flow[i].completed);
        }
    }
    if (world_run(w, w->now + WORLD_QUIET_MS * MRC_MSEC))
        world_check_quiet(w);
    return w->failure[0] == '\0';
}
