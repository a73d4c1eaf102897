/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, QP hints, device attributes, asynchronous events (MRC C.1, C.2). */
#include "mrc_engine_int.h"

/* ---- completion queues ---- */

size_t mrc_cq_size(uint32_t depth) { return mrc_cq_ring_bytes(depth); }

int mrc_cq_create(struct mrc_engine *e, void *mem, uint32_t depth)
{
    return mrc_cq_add(&e->env.cqs, mem, depth);
}

void *mrc_cq_destroy(struct mrc_engine *e, uint32_t cq) { return mrc_cq_drop(&e->env.cqs, cq); }

int mrc_cq_poll(struct mrc_engine *e, uint32_t cq, struct mrc_wc *out, int max)
{
    return mrc_cq_take(&e->env.cqs, cq, out, max);
}

bool mrc_cq_any(const struct mrc_engine *e) { return e->env.cqs.waiting > 0; }

uint32_t mrc_cq_pushed(const struct mrc_engine *e) { return e->env.cqs.pushed; }

bool mrc_cq_overrun(const struct mrc_engine *e, uint32_t cq)
{
    return cq < e->env.cqs.max && e->env.cqs.cq[cq].overrun;
}

int mrc_cq_set_channel(struct mrc_engine *e, uint32_t cq, uint32_t channel)
{
    struct mrc_cq *q = mrc_cq_get(&e->env.cqs, cq);
    return q == NULL ? MRC_ERR_NOENT : mrc_cq_bind(q, channel);
}

int mrc_cq_arm(struct mrc_engine *e, uint32_t cq, bool solicited_only)
{
    struct mrc_cq *q = mrc_cq_get(&e->env.cqs, cq);
    return q == NULL ? MRC_ERR_NOENT : mrc_cq_notify(q, solicited_only);
}

int mrc_cq_next_event(struct mrc_engine *e, uint32_t channel)
{
    return mrc_cq_event(&e->env.cqs, channel);
}

bool mrc_cq_has_event(const struct mrc_engine *e, uint32_t channel)
{
    return mrc_cq_event_any(&e->env.cqs, channel);
}

int mrc_cq_ack_events(struct mrc_engine *e, uint32_t cq, uint32_t n)
{
    struct mrc_cq *q = mrc_cq_get(&e->env.cqs, cq);
    return q == NULL ? MRC_ERR_NOENT : mrc_cq_ack(q, n);
}

static void verbs_fail_users(struct mrc_engine *e, uint32_t cq)
{
    for (uint32_t i = 0; i < e->cfg.qp_max; i++) {
        struct mrc_qp *q = e->qp[i];
        if (q == NULL || (q->init.send_cq != cq && q->init.recv_cq != cq) ||
            q->attr.state == MRC_QPS_RESET)
            continue;
        mrc_qp_fail(q, MRC_WC_LOC_QP_OP_ERR, e->now);
        mrc_engine_touch_one(e, q);
    }
}

/* Flushing a QP may overrun the next queue; each is told of once, so this ends. */
void mrc_engine_cq_failed(struct mrc_engine *e)
{
    struct mrc_cq_table *t = &e->env.cqs;
    for (uint32_t i = 0; t->failed > 0; i = i + 1 < t->max ? i + 1 : 0) {
        struct mrc_cq *cq = &t->cq[i];
        if (!cq->overrun || cq->told)
            continue;
        cq->told = true;
        t->failed--;
        mrc_engine_event(e, MRC_ASYNC_CQ_ERR, i, 0);
        verbs_fail_users(e, i);
    }
}

/* ---- device ---- */

void mrc_device_query(struct mrc_device_attr *out)
{
    const struct mrc_device_attr most = {.api_version = MRC_API_VERSION,
                                         .mrc_protocol_version = MRC_WIRE_VERSIONS,
                                         .max_qp_hint = MRC_HINT_MAX,
                                         .cap = MRC_DEV_TRIM_NACK | MRC_DEV_DYNAMIC_MPR |
                                                MRC_DEV_SERVICE_TIME,
                                         .max_wimm = MRC_WIMM_SRC_MAX,
                                         .max_wimm_dest = MRC_WIMM_DEST_MAX,
                                         .max_mpr = MRC_MPR_MAX,
                                         .mpr_resolution = 1,
                                         .max_qp = 1 << 16,
                                         .max_cq = 1 << 16,
                                         .max_mr = 1 << 16,
                                         .max_cqe = MRC_CQ_DEPTH_MAX,
                                         .max_qp_wr = MRC_SQ_DEPTH_MAX};
    *out = most;
}

void mrc_engine_query(const struct mrc_engine *e, struct mrc_device_attr *out)
{
    mrc_device_query(out);
    out->max_qp_hint = e->cfg.hint_max;
    out->max_qp = e->cfg.qp_max;
    out->max_cq = e->cfg.cq_max;
    out->max_mr = e->cfg.mr_max;
    if (e->env.dscp_trimmed == 0)
        out->cap &= ~(uint32_t)MRC_DEV_TRIM_NACK;
    if (!e->env.service_time)
        out->cap &= ~(uint32_t)MRC_DEV_SERVICE_TIME;
}

/* ---- hints ---- */

static bool verbs_hint_ok(const struct mrc_qp_hint *h)
{
    const uint32_t known =
        MRC_HINT_QPS_PER_PEER | MRC_HINT_PEERS | MRC_HINT_INCAST | MRC_HINT_VENDOR;
    return (h->mask & ~known) == 0;
}

static struct mrc_hint_slot *verbs_hint(const struct mrc_engine *e, uint32_t id)
{
    return id < e->cfg.hint_max && e->hint[id].used ? &e->hint[id] : NULL;
}

static void verbs_hint_set(struct mrc_qp_hint *to, const struct mrc_qp_hint *from)
{
    to->mask |= from->mask;
    if ((from->mask & MRC_HINT_QPS_PER_PEER) != 0)
        to->qps_per_peer = from->qps_per_peer;
    if ((from->mask & MRC_HINT_PEERS) != 0)
        to->peers = from->peers;
    if ((from->mask & MRC_HINT_INCAST) != 0)
        to->incast = from->incast;
    if ((from->mask & MRC_HINT_VENDOR) != 0)
        memcpy(to->vendor, from->vendor, sizeof to->vendor);
}

int mrc_hint_create(struct mrc_engine *e, const struct mrc_qp_hint *hint)
{
    if (!verbs_hint_ok(hint))
        return MRC_ERR_INVAL;
    for (uint32_t i = 0; i < e->cfg.hint_max; i++) {
        struct mrc_hint_slot *s = &e->hint[i];
        if (s->used)
            continue;
        memset(s, 0, sizeof *s);
        s->used = true;
        verbs_hint_set(&s->hint, hint);
        return (int)i;
    }
    return MRC_ERR_FULL;
}

int mrc_hint_query(const struct mrc_engine *e, uint32_t id, struct mrc_qp_hint *out)
{
    const struct mrc_hint_slot *s = verbs_hint(e, id);
    if (s == NULL)
        return MRC_ERR_NOENT;
    *out = s->hint;
    return MRC_OK;
}

int mrc_hint_modify(struct mrc_engine *e, uint32_t id, const struct mrc_qp_hint *hint)
{
    struct mrc_hint_slot *s = verbs_hint(e, id);
    if (s == NULL)
        return MRC_ERR_NOENT;
    if (!verbs_hint_ok(hint))
        return MRC_ERR_INVAL;
    verbs_hint_set(&s->hint, hint);
    return MRC_OK;
}

int mrc_hint_destroy(struct mrc_engine *e, uint32_t id)
{
    struct mrc_hint_slot *s = verbs_hint(e, id);
    if (s == NULL)
        return MRC_ERR_NOENT;
    if (s->refs != 0)
        return MRC_ERR_BUSY;
    s->used = false;
    return MRC_OK;
}

/* ---- asynchronous events ---- */

void mrc_engine_event(struct mrc_engine *e, enum mrc_async_type type, uint32_t id, uint8_t plane)
{
    const struct mrc_async_event ev = {
        .time = e->now, .id = id, .type = (uint8_t)type, .plane = plane};
    mrc_async_push(&e->env.async, ev);
}

static void verbs_tell_mask(struct mrc_engine *e, uint32_t was, uint32_t is, uint32_t id,
                            enum mrc_async_type up, enum mrc_async_type down)
{
    for (uint8_t p = 1; p <= MRC_PLANE_MAX; p++)
        if (((was ^ is) >> p & 1) != 0)
            mrc_engine_event(e, (is >> p & 1) != 0 ? up : down, id, p);
}

void mrc_engine_ports(struct mrc_engine *e, uint32_t up)
{
    verbs_tell_mask(e, e->ports_up, up, 0, MRC_ASYNC_PORT_ACTIVE, MRC_ASYNC_PORT_ERR);
    e->ports_up = up;
}

void mrc_engine_tell_planes(struct mrc_engine *e, uint32_t path)
{
    struct mrc_path_slot *p = &e->path[path];
    struct mrc_ep_planes now;
    if (mrc_ep_planes(&e->ep, path, &now) != MRC_OK)
        return;
    verbs_tell_mask(e, p->remote_up, now.remote_up, path, MRC_ASYNC_PEER_PORT_ACTIVE,
                    MRC_ASYNC_PEER_PORT_ERR);
    p->remote_up = now.remote_up;
}

void mrc_engine_tell_paths(struct mrc_engine *e, uint32_t path)
{
    struct mrc_path_slot *p = &e->path[path];
    const bool bad = mrc_path_all_bad(p->table);
    if (bad == p->all_bad)
        return;
    p->all_bad = bad;
    mrc_engine_event(e, bad ? MRC_ASYNC_PATHS_BAD : MRC_ASYNC_PATHS_OK, path, 0);
}

int mrc_engine_async_take(struct mrc_engine *e, struct mrc_async_event *out)
{
    return mrc_async_take(&e->env.async, out);
}

int mrc_engine_async_ack(struct mrc_engine *e, uint32_t n)
{
    return mrc_async_ack(&e->env.async, n);
}

uint32_t mrc_engine_async_pushed(const struct mrc_engine *e) { return e->env.async.tail; }

bool mrc_engine_async_any(const struct mrc_engine *e)
{
    return e->env.async.taken != e->env.async.tail;
}
