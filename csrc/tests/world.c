/* SPDX-License-Identifier: BSD-2-Clause */
#include "world.h"

#include <stdarg.h>
#include <stdlib.h>

enum {
    WORLD_TURNS_AT_ONCE = 1000, /* more without time passing: a timer stuck in the past */
    WORLD_TX_AT_ONCE = 200000,  /* packets of one turn: a loop without end */
    WORLD_MEMORY_CHECK_STEPS = 16384,
    WORLD_SPORT_BASE = 49152,
    WORLD_QUIET_MS = 50,
};

/* ---- memory, failure, hash ---- */

void *world_alloc(struct world *w, size_t bytes)
{
    void *const p = calloc(1, bytes);
    if (p == NULL)
        abort();
    if ((w->blocks_n & (w->blocks_n - 1)) == 0) {
        const size_t room = w->blocks_n == 0 ? 1 : (size_t)w->blocks_n * 2;
        w->blocks = realloc(w->blocks, room * sizeof(*w->blocks));
        if (w->blocks == NULL)
            abort();
    }
    w->blocks[w->blocks_n++] = p;
    return p;
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

static void world_push(struct world *w, struct world_event e)
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

/* ---- network ---- */

struct sim_link *world_link(struct world *w, uint32_t from, uint32_t to, uint16_t path)
{
    return &w->link[(from * w->cfg.hosts + to) * w->cfg.paths + path];
}

void world_cut(struct world *w, uint32_t a, uint32_t b, uint16_t path, bool cut)
{
    world_link(w, a, b, path)->cut = cut;
    world_link(w, b, a, path)->cut = cut;
    if (w->trace != NULL)
        fprintf(w->trace, "%12.3f us path %u %s\n", (double)(w->now - w->cfg.start_ns) / 1e3, path,
                cut ? "cut" : "healed");
}

static void world_address(uint8_t out[16], uint32_t host)
{
    memset(out, 0, 16);
    out[0] = 0xFD;
    out[15] = (uint8_t)(host + 1);
}

static struct world_packet *world_packet_new(struct world *w)
{
    struct world_packet *p = w->free;
    if (p != NULL)
        w->free = p->next;
    else
        p = world_alloc(w, sizeof(*p));
    w->packets_live++;
    return p;
}

void world_packet_free(struct world *w, struct world_packet *p)
{
    p->next = w->free;
    w->free = p;
    w->packets_live--;
}

static void world_trace_packet(struct world *w, const struct world_hop *hop, const char *fate)
{
    if (w->trace == NULL)
        return;
    const struct mrc_pkt *const p = hop->pkt;
    fprintf(w->trace,
            "%12.3f us %u>%u path %2u op %02x psn %06x len %4u%s%s cack %06x off %d map %016llx "
            "msn %u%s\n",
            (double)(w->now - w->cfg.start_ns) / 1e3, hop->from, hop->to, hop->path, p->opcode,
            p->psn, p->payload_len, p->a ? " A" : "", p->rtx ? " RTX" : "", p->cack_psn,
            p->ack_psn_offset, (unsigned long long)p->sack_bitmap, p->msn, fate);
}

/* Copy what the engine emitted, as a receiver will see it. */
static struct world_packet *world_packet_from(struct world *w, uint32_t from, uint32_t to,
                                              const struct mrc_tx_pkt *tx)
{
    struct world_packet *const p = world_packet_new(w);
    uint8_t *b = p->bytes;
    memcpy(b, tx->hdr, tx->hdr_len);
    b += tx->hdr_len;
    if (tx->payload_len != 0)
        memcpy(b, tx->payload, tx->payload_len);
    b += tx->payload_len;
    memcpy(b, tx->tail, tx->tail_len);
    b += tx->tail_len;
    p->to = to;
    p->rx = (struct mrc_rx_pkt){
        .bytes = p->bytes,
        .len = (uint32_t)(b - p->bytes),
        .udp_len = mrc_tx_udp_len(tx),
        .sport = (uint16_t)tx->ev,
        .dport = MRC_UDP_PORT,
        .tclass = tx->tclass,
        .flow_label = tx->ev >> 16,
        .port = tx->port,
    };
    world_address(p->rx.src, from);
    world_address(p->rx.dst, to);
    return p;
}

/* A switch cut it: the lengths still say the old size (A.13.6). */
void world_trim(const struct world *w, struct mrc_rx_pkt *rx, uint32_t keep_bytes)
{
    const uint32_t keep = keep_bytes - (MRC_NOMINAL_HDR + 8);
    rx->len = rx->len < keep ? rx->len : keep;
    rx->tclass = (uint8_t)(w->cfg.trim_dscp << 2 | (rx->tclass & 3));
}

static void world_transmit(struct world *w, uint32_t from, const struct mrc_tx_pkt *tx)
{
    const uint32_t to = tx->lane / w->cfg.paths;
    const uint16_t path = (uint16_t)(tx->lane % w->cfg.paths);
    if (to >= w->cfg.hosts || to == from || tx->payload_len > MRC_MTU_MAX ||
        tx->hdr_len > MRC_HDR_MAX || tx->tail_len > sizeof(tx->tail)) {
        world_fail(w, "host %u emits lane %u, lengths %u %u %u", from, tx->lane, tx->hdr_len,
                   tx->payload_len, tx->tail_len);
        return;
    }
    struct world_packet *const p = world_packet_from(w, from, to, tx);
    struct mrc_pkt pkt;
    const uint32_t kind = world_check_sent(w, from, to, path, &p->rx, &pkt);
    const struct world_hop hop = {from, to, path, kind, &pkt};
    const struct sim_packet sp = {
        .len_bytes = MRC_NOMINAL_HDR + p->rx.udp_len,
        .kind = kind,
        .ect = (tx->tclass & 3) != 0,
        .trimmable = kind == WORLD_KIND_DATA,
    };
    struct sim_delivery d[SIM_COPIES_MAX];
    mrc_ns extra = 0;
    const bool pass = w->filter == NULL || w->filter(w, &hop, &extra);
    const int n = pass ? sim_link_submit(world_link(w, from, to, path), &sp, w->now, d) : 0;

    world_trace_packet(w, &hop,
                       n == 0         ? " LOST"
                       : n == 2       ? " TWICE"
                       : d[0].trimmed ? " TRIMMED"
                                      : "");
    world_mix(w, w->now ^ (uint64_t)from << 56 ^ (uint64_t)path << 40 ^ (uint64_t)n << 60);
    for (int i = 0; i < n; i++) {
        struct world_packet *q = p;
        if (i > 0) {
            q = world_packet_new(w);
            memcpy(q->bytes, p->bytes, p->rx.len);
            q->rx = p->rx;
            q->rx.bytes = q->bytes;
            q->to = to;
        }
        if (d[i].ce)
            q->rx.tclass |= 3;
        if (d[i].trimmed)
            world_trim(w, &q->rx, world_link(w, from, to, path)->cfg.trim_bytes);
        if (d[i].corrupt != 0)
            sim_corrupt(q->bytes, q->rx.len, d[i].corrupt);
        world_port_describe(q, &sp, d[i].trimmed);
        world_push(w, (struct world_event){.at = d[i].at + extra, .packet = q});
    }
    if (n == 0)
        world_packet_free(w, p);
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
            if (w->trace != NULL)
                fprintf(w->trace, "%12.3f us host %u ev %08x state %u -> %u reason %u\n",
                        (double)(w->now - w->cfg.start_ns) / 1e3, host, e.ev, e.from, e.to,
                        e.reason);
            world_mix(w, (uint64_t)e.ev << 16 ^ (uint64_t)e.to << 8 ^ e.reason);
            w->events[w->events_n++ % WORLD_EVENTS_KEPT] = e;
        }
    }
}

void world_turn(struct world *w, uint32_t host)
{
    struct world_host *const h = &w->host[host];
    struct mrc_rx_pkt in[WORLD_BURST];
    const uint32_t n = h->inbox_n;

    for (uint32_t i = 0; i < n; i++)
        in[i] = h->inbox[i]->rx;
    if (n != 0)
        mrc_engine_rx(h->e, in, n, w->now);
    for (uint32_t i = 0; i < n; i++)
        world_packet_free(w, h->inbox[i]);
    h->inbox_n = 0;
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
    do {
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
    world_check_arrived(w, p->to, &p->rx);
    h->inbox[h->inbox_n++] = p;
    if (h->inbox_n == WORLD_BURST) {
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
        const mrc_ns d = mrc_engine_deadline(w->host[i].e);
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
        const struct mrc_qp_stats s = world_stats(w, f);
        world_memory_check(w, &w->flow[i]);
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

/* ---- making and ending ---- */

struct world_cfg world_defaults(uint64_t seed)
{
    return (struct world_cfg){
        .seed = seed,
        .hosts = 2,
        .paths = 8,
        .min_active = 1,
        .planes = 4,
        .start_ns = MRC_SEC,
        .trim_dscp = WORLD_DSCP_TRIMMED,
        .turn_ns = 1000,
        .link = {.rate_bps = 10000000000, .delay_ns = 10 * MRC_USEC},
        .cc = {.kind = MRC_CC_FIXED,
               .mtu_bytes = 1024,
               .link_bps = 10000000000,
               .base_rtt_ns = 30 * MRC_USEC,
               .max_cwnd_bytes = 1 << 20},
    };
}

static void world_host_paths(struct world *w, uint32_t host, uint32_t peer)
{
    struct world_host *const h = &w->host[host];
    struct mrc_path_entry_cfg entry[WORLD_PATHS_MAX];
    const struct mrc_path_cfg cfg = {
        .count = w->cfg.paths,
        .min_active = w->cfg.min_active,
        .probe_successes = 3,
        .event_ring = 1024,
        .probe_interval_ns = MRC_MSEC,
        .probe_interval_max_ns = 50 * MRC_MSEC,
        .probe_timeout_ns = MRC_MSEC,
        .seed = mrc_mix64(w->cfg.seed ^ host << 8 ^ peer),
        .reverse = w->cfg.reverse,
    };
    const uint32_t base = WORLD_SPORT_BASE + (w->cfg.own_evs ? host * WORLD_PATHS_MAX : 0);
    for (uint16_t i = 0; i < w->cfg.paths; i++) {
        const uint8_t plane = (uint8_t)(1 + i % w->cfg.planes);
        entry[i] = (struct mrc_path_entry_cfg){
            .ev = (uint32_t)(mrc_mix64(w->cfg.seed + i) << 16) | (uint32_t)(base + i),
            .plane = plane,
            .port = (uint8_t)(plane - 1),
            .lane = peer * w->cfg.paths + i,
            .backup = i >= w->cfg.paths - w->cfg.backups,
        };
    }
    h->table[peer] = mrc_path_init(world_alloc(w, mrc_path_size(&cfg)), &cfg, entry, w->now);
    MRC_ASSERT(h->table[peer] != NULL);
    h->path_id[peer] = (uint32_t)mrc_path_attach(h->e, h->table[peer]);
    struct mrc_ep_addr to = {.dport = MRC_UDP_PORT, .own_port = MRC_UDP_PORT};
    world_address(to.src, host);
    world_address(to.dst, peer);
    MRC_ASSERT(mrc_path_lead(h->e, h->path_id[peer], &to) == MRC_OK);
    h->cc[peer] = world_alloc(w, sizeof(struct mrc_cc));
    MRC_ASSERT(mrc_cc_init(h->cc[peer], &w->cfg.cc, w->now) == MRC_OK);
    h->cc_id[peer] = (uint32_t)mrc_cc_attach(h->e, h->cc[peer]);
}

static void world_host_init(struct world *w, uint32_t host)
{
    enum { CQ_DEPTH = 16384 };
    struct world_host *const h = &w->host[host];
    const struct mrc_engine_cfg cfg = {
        .seed = mrc_mix64(w->cfg.seed + 1000 + host),
        .qp_max = 64,
        .mr_max = 256,
        .cq_max = 2,
        .path_max = w->cfg.hosts,
        .cc_max = w->cfg.hosts,
        .dscp_control = 46,
        .dscp_trimmed = WORLD_DSCP_TRIMMED,
        .dscp_trimmed_lasthop = WORLD_DSCP_TRIMMED_LASTHOP,
        .ooo_max = w->cfg.ooo_max,
        .imm_max = w->cfg.imm_max,
        .penalty_percent = w->cfg.penalty_percent,
        .icrc_skip_percent = w->cfg.icrc_skip_percent,
        .service_time = w->cfg.service_time,
    };
    h->mem = world_alloc(w, mrc_engine_size(&cfg));
    h->e = mrc_engine_init(h->mem, &cfg, w->now);
    h->cq_send = (uint32_t)mrc_cq_create(h->e, world_alloc(w, mrc_cq_size(CQ_DEPTH)), CQ_DEPTH);
    h->cq_recv = (uint32_t)mrc_cq_create(h->e, world_alloc(w, mrc_cq_size(CQ_DEPTH)), CQ_DEPTH);
    h->path_id = world_alloc(w, w->cfg.hosts * sizeof(*h->path_id));
    h->table = world_alloc(w, w->cfg.hosts * sizeof(*h->table));
    h->cc = world_alloc(w, w->cfg.hosts * sizeof(struct mrc_cc *));
    h->cc_id = world_alloc(w, w->cfg.hosts * sizeof(*h->cc_id));
    for (uint32_t peer = 0; peer < w->cfg.hosts; peer++)
        if (peer != host)
            world_host_paths(w, host, peer);
}

struct world *world_new(const struct world_cfg *cfg)
{
    enum { FLOWS_MAX = 64 };
    struct world *const w = calloc(1, sizeof(*w));
    if (w == NULL || cfg->paths > WORLD_PATHS_MAX)
        abort();
    w->cfg = *cfg;
    w->now = cfg->start_ns;
    w->crc = mrc_crc32_select();
    w->host = world_alloc(w, cfg->hosts * sizeof(*w->host));
    w->flow = world_alloc(w, FLOWS_MAX * sizeof(*w->flow));
    w->link = world_alloc(w, (size_t)cfg->hosts * cfg->hosts * cfg->paths * sizeof(*w->link));
    for (uint32_t a = 0; a < cfg->hosts; a++)
        for (uint32_t b = 0; b < cfg->hosts; b++)
            for (uint16_t i = 0; i < cfg->paths; i++) {
                struct sim_link_cfg link = cfg->link;
                link.delay_ns += cfg->skew_ns * i;
                sim_link_init(world_link(w, a, b, i), &link,
                              mrc_mix64(cfg->seed ^ a << 24 ^ b << 16 ^ i));
            }
    for (uint32_t a = 0; a < cfg->hosts; a++)
        world_host_init(w, a);
    world_port_init(w);
    return w;
}

void world_free(struct world *w)
{
    for (uint32_t i = 0; i < w->blocks_n; i++)
        free(w->blocks[i]);
    free(w->blocks);
    free(w->heap);
    free(w);
}
