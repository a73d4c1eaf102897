/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts, their engines, queue pairs and memory, from the tables. */
#include "../core/mrc_engine_int.h"
#include "fab_int.h"

#include <stdio.h>

enum {
    JOIN_DEPTH = 64,
    JOIN_MPR = 8,
    JOIN_EVENTS = 64,
    JOIN_PD = 1,
    JOIN_EV_PLANE = 24, /* D.9: bits 31:24 */
};

static bool join_refuse(char *why, const char *what, uint32_t n)
{
    snprintf(why, FAB_WHY_MAX, "%s %u: out of range, or names what is not there", what, n);
    return false;
}

/* ---- are the tables right? ---- */

static bool join_check_qp(const struct fab *f, struct fab_qp *q)
{
    q->depth = q->depth != 0 ? q->depth : JOIN_DEPTH;
    q->mpr = q->mpr != 0 ? q->mpr : JOIN_MPR;
    q->event_ring = (uint16_t)mrc_pow2(q->event_ring != 0 ? q->event_ring : JOIN_EVENTS);
    return q->a < f->cfg.hosts && q->b < f->cfg.hosts && q->a != q->b && q->cc < f->ccs &&
           q->ev_count >= 1 && q->ev_count <= MRC_EV_MAX && q->ev_first <= f->evs &&
           q->ev_count <= f->evs - q->ev_first && q->depth <= MRC_SQ_DEPTH_MAX &&
           q->mpr <= MRC_MPR_MAX && q->mode <= FAB_RC;
}

static bool join_check(struct fab *f, char *why)
{
    for (uint32_t i = 0; i < f->evs; i++)
        if (f->ev[i].ev >> 24 < 1 || f->ev[i].ev >> 24 > f->cfg.planes)
            return join_refuse(why, "EV", i);
    for (uint32_t i = 0; i < f->qps; i++)
        if (!join_check_qp(f, &f->qp[i]))
            return join_refuse(why, "queue pair", i);
    for (uint32_t i = 0; i < f->msgs; i++) {
        const struct fab_msg *const m = &f->msg[i];
        bool ok = m->flow < f->flows && m->bytes <= MRC_MSG_BYTES_MAX / 2;
        for (int k = 0; k < 2; k++)
            ok = ok && (m->after[k] == FAB_NONE || (m->after[k] < f->msgs && m->after[k] != i));
        if (!ok)
            return join_refuse(why, "message", i);
        f->message_max = f->message_max > m->bytes ? f->message_max : m->bytes;
    }
    for (uint32_t i = 0; i < f->bulks; i++) {
        struct fab_bulk *const b = &f->bulk[i];
        b->outstanding = b->outstanding != 0 ? b->outstanding : 8;
        if (b->flow >= f->flows || b->bytes > MRC_MSG_BYTES_MAX / 2)
            return join_refuse(why, "bulk flow", i);
        b->outstanding = mrc_min32(b->outstanding, f->qp[b->flow / 2].depth);
        f->message_max = f->message_max > b->bytes ? f->message_max : b->bytes;
    }
    return true;
}

/* ---- engines ---- */

/* Off: both ends agree on any packet. A corrupted one is made to differ. */
static uint32_t join_no_crc(uint32_t reg, const uint8_t *p, size_t n)
{
    (void)p;
    (void)n;
    return reg;
}

static struct mrc_engine_cfg join_engine_cfg(const struct fab *f, uint32_t host)
{
    const uint32_t qps = f->host[host].qps > 0 ? f->host[host].qps : 1;
    const bool trim = f->cfg.trim_bytes != 0;
    return (struct mrc_engine_cfg){
        .seed = mrc_mix64(f->cfg.seed ^ (uint64_t)host << 8 ^ 4),
        .qp_max = qps,
        .mr_max = 4,
        .cq_max = 2,
        .path_max = qps,
        .cc_max = qps,
        .dscp_data = FAB_DSCP_DATA,
        .dscp_retx = FAB_DSCP_RETX,
        .dscp_control = FAB_DSCP_CONTROL,
        .dscp_trimmed = trim ? FAB_DSCP_TRIMMED : 0,
        .dscp_trimmed_lasthop = trim ? FAB_DSCP_LASTHOP : 0,
        .service_time = f->cfg.service_time != 0,
    };
}

static bool join_queues(struct fab *f, struct fab_host *h, uint32_t depth)
{
    depth = depth < 16 ? 16 : depth;
    void *const send = fab_alloc(f, mrc_cq_size(depth));
    void *const recv = fab_alloc(f, mrc_cq_size(depth));
    const int s = send != NULL ? mrc_cq_create(h->e, send, depth) : -1;
    const int r = recv != NULL ? mrc_cq_create(h->e, recv, depth) : -1;
    h->cq_send = (uint32_t)s;
    h->cq_recv = (uint32_t)r;
    return s >= 0 && r >= 0;
}

static bool join_engine(struct fab *f, uint32_t host, uint32_t depth)
{
    struct fab_host *const h = &f->host[host];
    const struct mrc_engine_cfg cfg = join_engine_cfg(f, host);
    const size_t size = mrc_engine_size(&cfg);
    void *const mem = size != 0 ? fab_alloc(f, size) : NULL;
    h->held_end = &h->held;
    h->turn_at = MRC_NEVER;
    h->local_up = MRC_PLANES_ALL;
    h->path = fab_alloc(f, cfg.path_max * sizeof *h->path);
    h->cc = fab_alloc(f, cfg.cc_max * sizeof *h->cc);
    uint32_t mask = 4; /* the engine numbers from 4 indices up */
    while (mask < cfg.qp_max)
        mask *= 2;
    h->qpn_mask = mask - 1;
    h->flow_of = fab_alloc(f, mask * sizeof *h->flow_of);
    if (mem == NULL || h->path == NULL || h->cc == NULL || h->flow_of == NULL)
        return false;
    memset(h->flow_of, 0xFF, mask * sizeof *h->flow_of);
    h->e = mrc_engine_init(mem, &cfg, f->now);
    if (f->cfg.icrc == 0)
        h->e->env.crc = join_no_crc;
    return join_queues(f, h, depth);
}

static bool join_hosts(struct fab *f)
{
    f->host = fab_alloc(f, f->cfg.hosts * sizeof *f->host);
    uint64_t *const depth = fab_alloc(f, f->cfg.hosts * sizeof *depth);
    if (f->host == NULL || depth == NULL)
        return false;
    for (uint32_t i = 0; i < f->qps; i++) {
        const struct fab_qp *const q = &f->qp[i];
        f->host[q->a].qps++;
        f->host[q->b].qps++;
        depth[q->a] += q->depth;
        depth[q->b] += q->depth;
    }
    for (uint32_t h = 0; h < f->cfg.hosts; h++)
        if (depth[h] > MRC_CQ_DEPTH_MAX || !join_engine(f, h, (uint32_t)depth[h]))
            return false;
    return true;
}

/* ---- path tables and controllers, shared where they are the same ---- */

static const struct fab_shared *join_shared(const struct fab_shared *all, uint32_t n, uint32_t peer,
                                            uint32_t key, uint32_t key2)
{
    for (uint32_t i = n; i > 0; i--)
        if (all[i - 1].peer == peer && all[i - 1].key == key && all[i - 1].key2 == key2)
            return &all[i - 1];
    return NULL;
}

static struct mrc_path_table *join_table(struct fab *f, uint32_t host, uint32_t peer,
                                         const struct fab_qp *q)
{
    const struct mrc_path_cfg cfg = {
        .count = (uint16_t)q->ev_count,
        .min_active = q->min_active,
        .probe_successes = 3,
        .event_ring = q->event_ring,
        .probe_interval_ns = q->probe_interval_ns,
        .probe_interval_max_ns = q->probe_interval_max_ns,
        .probe_timeout_ns = q->probe_timeout_ns,
        .seed = mrc_mix64(f->cfg.seed ^ (uint64_t)host << 32 ^ (uint64_t)peer << 8 ^ 5),
        .reverse = q->reverse,
        .ev_plane_shift = JOIN_EV_PLANE,
        .ev_plane_bits = 8,
        .loss = q->loss,
        .skip = q->skip,
    };
    struct mrc_path_entry_cfg *const entry = fab_alloc(f, q->ev_count * sizeof *entry);
    const size_t size = mrc_path_size(&cfg);
    void *const mem = size != 0 ? fab_alloc(f, size) : NULL;
    for (uint32_t i = 0; entry != NULL && i < q->ev_count; i++) {
        const struct fab_ev *const ev = &f->ev[q->ev_first + i];
        const uint8_t plane = (uint8_t)(ev->ev >> 24);
        entry[i] = (struct mrc_path_entry_cfg){.ev = ev->ev,
                                               .plane = plane,
                                               .port = (uint8_t)(plane - 1),
                                               .lane = peer,
                                               .backup = ev->backup != 0};
    }
    return entry != NULL && mem != NULL ? mrc_path_init(mem, &cfg, entry, f->now) : NULL;
}

/* Index in the host's list of tables, or negative. */
static int join_path(struct fab *f, uint32_t host, uint32_t peer, const struct fab_qp *q)
{
    struct fab_host *const h = &f->host[host];
    const struct fab_shared *const known =
        join_shared(h->path, h->paths, peer, q->ev_first, q->ev_count);
    if (known != NULL)
        return (int)(known - h->path);
    struct mrc_path_table *const table = join_table(f, host, peer, q);
    struct mrc_ep_addr to = {.dport = MRC_UDP_PORT, .own_port = MRC_UDP_PORT};
    const int id = mrc_path_attach(h->e, table);
    fab_inner_address(to.src, host);
    fab_inner_address(to.dst, peer);
    if (id < 0 || mrc_path_lead(h->e, (uint32_t)id, &to) != MRC_OK)
        return -1;
    h->path[h->paths] = (struct fab_shared){
        .object = table, .id = (uint32_t)id, .peer = peer, .key = q->ev_first, .key2 = q->ev_count};
    return (int)h->paths++;
}

static int join_cc(struct fab *f, uint32_t host, uint32_t peer, const struct fab_qp *q)
{
    struct fab_host *const h = &f->host[host];
    const struct fab_shared *const known = join_shared(h->cc, h->ccs, peer, q->cc, 0);
    if (known != NULL)
        return (int)known->id;
    struct mrc_cc *const cc = fab_alloc(f, sizeof *cc);
    if (cc == NULL || mrc_cc_init(cc, &f->cc[q->cc], f->now) != MRC_OK)
        return -1;
    const int id = mrc_cc_attach(h->e, cc);
    if (id >= 0)
        h->cc[h->ccs++] =
            (struct fab_shared){.object = cc, .id = (uint32_t)id, .peer = peer, .key = q->cc};
    return id;
}

/* ---- queue pairs ---- */

static int join_qp(struct fab *f, uint32_t host, const struct fab_qp *q, uint32_t flow)
{
    struct fab_host *const h = &f->host[host];
    const struct mrc_qp_init init = {
        .pd = JOIN_PD,
        .send_cq = h->cq_send,
        .recv_cq = h->cq_recv,
        .sq_depth = q->depth,
        .rq_depth = q->depth,
        .mpr_max = q->mpr,
        .max_wimm_dest = (uint16_t)mrc_min32(q->depth, MRC_WIMM_DEST_MAX),
        .ev_max = (uint16_t)q->ev_count,
    };
    const size_t size = mrc_qp_size(&init);
    void *const mem = size != 0 ? fab_alloc(f, size) : NULL;
    const int qpn = mem != NULL ? mrc_qp_create(h->e, mem, &init) : -1;
    if (qpn < 0)
        return -1;
    MRC_ASSERT(h->flow_of[(uint32_t)qpn & h->qpn_mask] == FAB_NONE);
    h->flow_of[(uint32_t)qpn & h->qpn_mask] = flow;
    return qpn;
}

static int join_modify(struct fab *f, struct fab_flow *w, const struct fab_qp *q, uint32_t cc,
                       uint32_t sq_psn, uint32_t rq_psn)
{
    struct mrc_engine *const e = f->host[w->from].e;
    struct mrc_qp_attr a = {
        .state = MRC_QPS_INIT,
        .access = MRC_ACCESS_LOCAL_WRITE | MRC_ACCESS_REMOTE_WRITE,
        .timeout = q->timeout,
        .linear_cnt = q->linear_cnt,
        .exp_cnt = q->exp_cnt,
        .train_max = q->train_max,
        .path_mtu = q->mtu,
        .mpr = q->mpr,
        .mpr_dest = q->mpr,
        .max_wimm = (uint16_t)mrc_min32(q->depth, MRC_WIMM_DEST_MAX),
        .max_wimm_dest = (uint16_t)mrc_min32(q->depth, MRC_WIMM_DEST_MAX),
        .dport = MRC_UDP_PORT,
        .dest_qpn = w->qpn_peer,
        .sq_psn = sq_psn,
        .rq_psn = rq_psn,
        .path = f->host[w->from].path[w->path].id,
        .cc = cc,
        .sack_threshold = q->sack_bytes,
        .timestamps = q->timestamps,
        .recovery = q->recovery,
        .mode = (uint8_t)q->mode,
        .cap = (f->cfg.service_time != 0 ? 0u : MRC_QP_CAP_NO_SERVICE_TIME) |
               (f->cfg.trim_bytes == 0 ? MRC_QP_CAP_NO_TRIM_NACK : 0u),
    };
    fab_inner_address(a.src, w->from);
    fab_inner_address(a.dst, w->to);
    int r = mrc_qp_modify(e, w->qpn, &a, MRC_QP_STATE | MRC_QP_ACCESS | MRC_QP_MODE, f->now);
    a.state = MRC_QPS_RTR;
    if (r == MRC_OK)
        r = mrc_qp_modify(e, w->qpn, &a,
                          MRC_QP_STATE | MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH | MRC_QP_MPR_DEST |
                              MRC_QP_WIMM_DEST | MRC_QP_SACK | MRC_QP_CAP,
                          f->now);
    a.state = MRC_QPS_RTS;
    if (r == MRC_OK)
        r = mrc_qp_modify(e, w->qpn, &a,
                          MRC_QP_STATE | MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR | MRC_QP_WIMM |
                              MRC_QP_TIMEOUT | MRC_QP_RETRY | MRC_QP_TRAIN | MRC_QP_TIMESTAMPS |
                              MRC_QP_RECOVERY,
                          f->now);
    return r;
}

static bool join_receives(struct fab *f, const struct fab_flow *w, const struct fab_qp *q)
{
    const uint64_t id = 0;
    for (uint32_t k = 0; k < q->depth; k++)
        if (mrc_qp_post_recv(f->host[w->from].e, w->qpn, &id, 1) != 1)
            return false;
    return true;
}

static bool join_pair(struct fab *f, uint32_t n)
{
    const struct fab_qp *const q = &f->qp[n];
    struct fab_flow *const ab = &f->flow[2 * n];
    struct fab_flow *const ba = &f->flow[2 * n + 1];
    const uint32_t psn = (uint32_t)mrc_mix64(f->cfg.seed ^ (uint64_t)n << 16 ^ 6) & 0xFFFFFF;
    const int qa = join_qp(f, q->a, q, 2 * n);
    const int qb = join_qp(f, q->b, q, 2 * n + 1);
    const int pa = join_path(f, q->a, q->b, q);
    const int pb = join_path(f, q->b, q->a, q);
    const int ca = join_cc(f, q->a, q->b, q);
    const int cb = join_cc(f, q->b, q->a, q);
    if (qa < 0 || qb < 0 || pa < 0 || pb < 0 || ca < 0 || cb < 0)
        return false;
    *ab = (struct fab_flow){.from = q->a,
                            .to = q->b,
                            .qpn = (uint32_t)qa,
                            .qpn_peer = (uint32_t)qb,
                            .path = (uint32_t)pa,
                            .depth = q->depth,
                            .ready = FAB_NONE,
                            .bulk = FAB_NONE};
    *ba = *ab;
    ba->from = q->b;
    ba->to = q->a;
    ba->qpn = (uint32_t)qb;
    ba->qpn_peer = (uint32_t)qa;
    ba->path = (uint32_t)pb;
    const uint32_t back = psn ^ 0x800000;
    return join_modify(f, ab, q, (uint32_t)ca, psn, back) == MRC_OK &&
           join_modify(f, ba, q, (uint32_t)cb, back, psn) == MRC_OK && join_receives(f, ab, q) &&
           join_receives(f, ba, q);
}

/* ---- memory: a pattern to send from; targets, one each with verify, else one for all ---- */

static uint64_t join_place(struct fab *f, uint32_t flow, uint64_t bytes)
{
    struct fab_host *const h = &f->host[f->flow[flow].to];
    const uint64_t at = h->memory_bytes + FAB_GUARD;
    h->memory_bytes = at + bytes;
    return at;
}

static void join_targets(struct fab *f)
{
    for (uint32_t m = 0; m < f->msgs; m++)
        f->state[m].target = join_place(f, f->msg[m].flow, f->msg[m].bytes);
    for (uint32_t i = 0; i < f->bulks; i++) {
        const struct fab_bulk *const b = &f->bulk[i];
        f->flow[b->flow].bulk_target =
            join_place(f, b->flow, b->outstanding * (b->bytes + (uint64_t)FAB_GUARD) - FAB_GUARD);
    }
}

static bool join_region(struct fab *f, uint32_t host)
{
    struct fab_host *const h = &f->host[host];
    const uint32_t key = (uint32_t)mrc_mix64(f->cfg.seed ^ (uint64_t)host << 8 ^ 7);
    uint8_t *block = f->sink;
    if (f->cfg.verify != 0) {
        h->memory_bytes += FAB_GUARD;
        block = fab_alloc(f, h->memory_bytes);
        if (block == NULL)
            return false;
        memset(block, FAB_POISON, h->memory_bytes);
    } else {
        h->memory_bytes = (uint64_t)f->message_max + 1;
    }
    h->memory = f->cfg.verify != 0 ? block : block + FAB_GUARD;
    return mrc_mr_register(h->e, JOIN_PD, f->pattern, f->pattern_bytes, MRC_ACCESS_LOCAL_WRITE, key,
                           &h->lkey) == MRC_OK &&
           mrc_mr_register_at(h->e, JOIN_PD, h->memory, fab_memory_va(host), h->memory_bytes,
                              MRC_ACCESS_LOCAL_WRITE | MRC_ACCESS_REMOTE_WRITE, ~key,
                              &h->rkey) == MRC_OK;
}

static bool join_memory(struct fab *f)
{
    struct mrc_rand r;
    f->pattern_bytes = (uint64_t)f->message_max + FAB_PATTERN_SLACK + 8;
    f->pattern = fab_alloc(f, f->pattern_bytes);
    if (f->cfg.verify == 0)
        f->sink = fab_alloc(f, (uint64_t)f->message_max + 1 + 2 * FAB_GUARD);
    if (f->pattern == NULL || (f->cfg.verify == 0 && f->sink == NULL))
        return false;
    mrc_rand_seed(&r, f->cfg.seed ^ 8);
    for (uint64_t i = 0; i + 8 <= f->pattern_bytes; i += 8)
        mrc_put64(f->pattern + i, mrc_rand_next(&r));
    if (f->sink != NULL) {
        memset(f->sink, FAB_POISON, FAB_GUARD);
        memset(f->sink + FAB_GUARD + f->message_max + 1, FAB_POISON, FAB_GUARD);
    } else {
        join_targets(f);
    }
    for (uint32_t h = 0; h < f->cfg.hosts; h++)
        if (!join_region(f, h))
            return false;
    return true;
}

/* ---- who waits for whom ---- */

static void join_waits(struct fab *f)
{
    f->left = f->msgs;
    for (uint32_t m = 0; m < f->msgs; m++) {
        struct fab_state *const s = &f->state[m];
        s->started = s->arrived = s->done = MRC_NEVER;
        s->next = s->edge = FAB_NONE;
    }
    for (uint32_t m = f->msgs; m > 0; m--)
        for (uint32_t k = 2; k > 0; k--) {
            const uint32_t after = f->msg[m - 1].after[k - 1];
            const uint32_t edge = 2 * (m - 1) + k - 1;
            if (after == FAB_NONE)
                continue;
            f->state[m - 1].waits++;
            f->edge[edge] = f->state[after].edge;
            f->state[after].edge = edge;
        }
}

bool fab_join(struct fab *f, char why[FAB_WHY_MAX])
{
    if (!join_check(f, why) || !join_hosts(f))
        return false;
    for (uint32_t n = 0; n < f->qps; n++)
        if (!join_pair(f, n))
            return join_refuse(why, "queue pair", n);
    for (uint32_t i = 0; i < f->bulks; i++) {
        struct fab_flow *const w = &f->flow[f->bulk[i].flow];
        if (w->bulk != FAB_NONE)
            return join_refuse(why, "bulk flow", i);
        w->bulk = i;
    }
    if (!join_memory(f))
        return false;
    join_waits(f);
    return true;
}
