/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's objects: creation, lookup, attachment, end. Completion queues, hints and events:
 * mrc_engine_verbs.c. */
#include "mrc_engine_int.h"

enum { MRC_ENGINE_MAX = 1 << 16, MRC_CQ_MAX = 1 << 16 };
enum {
    ENG_POOL_QP = 64,
    ENG_POOL_MIN = 256,
    ENG_POOL_MAX = 4096,
    ENG_RX_POOL_MIN = 1024
}; /* units */

static uint32_t eng_bits(uint32_t n)
{
    uint32_t b = 2; /* so that generation 1 gives QPNs above the reserved 0, 1, 2 */
    while (((uint32_t)1 << b) < n)
        b++;
    return b;
}

/* ---- the engine ---- */

/* What we send must not look as if it had been trimmed; DSCP 0 is never taken for that. */
static bool eng_class_trimmed(const struct mrc_engine_cfg *c, uint8_t dscp)
{
    return dscp != 0 && (dscp == c->dscp_trimmed || dscp == c->dscp_trimmed_lasthop);
}

static bool eng_cfg_ok(const struct mrc_engine_cfg *c)
{
    return c->qp_max >= 1 && c->qp_max <= MRC_ENGINE_MAX && c->mr_max >= 1 &&
           c->mr_max <= MRC_ENGINE_MAX && c->cq_max >= 1 && c->cq_max <= MRC_CQ_MAX &&
           c->path_max >= 1 && c->path_max <= MRC_ENGINE_MAX && c->cc_max >= 1 &&
           c->cc_max <= MRC_ENGINE_MAX && c->dscp_data < 64 && c->dscp_retx < 64 &&
           c->dscp_control < 64 && c->dscp_trimmed < 64 && c->dscp_trimmed_lasthop < 64 &&
           c->penalty_percent < 100 && c->icrc_skip_percent < 100 && c->service_time <= 1 &&
           c->pool_kib <= MRC_POOL_KIB_MAX && c->dscp_no_trim < 64 &&
           !eng_class_trimmed(c, c->dscp_data) && !eng_class_trimmed(c, c->dscp_retx) &&
           !eng_class_trimmed(c, c->dscp_no_trim) && !eng_class_trimmed(c, c->dscp_control) &&
           c->hint_max <= MRC_HINT_MAX && c->api_version <= MRC_API_VERSION;
}

/* One QP may have the largest window there is. */
static uint32_t eng_pool_units(const struct mrc_engine_cfg *c)
{
    if (c->pool_kib != 0)
        return (uint32_t)((uint64_t)c->pool_kib * 1024 / MRC_POOL_UNIT);
    return mrc_min32(c->qp_max < 4 ? ENG_POOL_MIN : c->qp_max * ENG_POOL_QP, ENG_POOL_MAX);
}

/* A QP may have half of it: all early immediates that may be agreed on, and more. */
static uint32_t eng_rx_pool_units(const struct mrc_engine_cfg *c)
{
    const uint32_t units = eng_pool_units(c);
    return c->pool_kib != 0 || units > ENG_RX_POOL_MIN ? units : ENG_RX_POOL_MIN;
}

/* All but the pools. */
static size_t eng_tables(const struct mrc_engine_cfg *c)
{
    return mrc_align(sizeof(struct mrc_engine)) + mrc_align(mrc_mr_bytes(c->mr_max)) +
           mrc_align(mrc_cq_table_bytes(c->cq_max)) +
           mrc_align(c->qp_max * sizeof(struct mrc_qp *)) +
           mrc_align(c->qp_max * sizeof(uint32_t)) +
           mrc_align(c->path_max * sizeof(struct mrc_path_slot)) +
           mrc_align(c->cc_max * sizeof(struct mrc_cc_slot)) +
           mrc_align(mrc_ep_bytes(c->path_max)) +
           mrc_align(c->hint_max * sizeof(struct mrc_hint_slot)) +
           mrc_align((c->qp_max + c->path_max + 1) * sizeof(struct mrc_heap_node *));
}

static void eng_classes(struct mrc_env *env, const struct mrc_engine_cfg *c)
{
    const uint8_t ect0 = 2; /* A.13.5: data ECT(0), control Not-ECT */
    const bool exact = c->dscp_exact != 0;
    const uint8_t retx = exact || c->dscp_retx != 0 ? c->dscp_retx : c->dscp_data;
    const uint8_t control = exact || c->dscp_control != 0 ? c->dscp_control : 46;
    env->tclass_no_trim = (uint8_t)(c->dscp_no_trim << 2 | ect0);
    env->tclass_data = (uint8_t)(c->dscp_data << 2 | ect0);
    env->tclass_retx = (uint8_t)(retx << 2 | ect0);
    env->tclass_control = (uint8_t)(control << 2);
    env->dscp_trimmed = c->dscp_trimmed;
    env->dscp_trimmed_lasthop = c->dscp_trimmed_lasthop;
    env->se_bit7 = c->se_bit7 != 0;
    env->rx.ooo_max = c->ooo_max;
    env->rx.imm_max = c->imm_max;
    env->rx.penalty_percent = c->penalty_percent;
    env->icrc_skip_percent = c->icrc_skip_percent;
    env->service_time = c->service_time != 0;
}

size_t mrc_engine_size(const struct mrc_engine_cfg *c)
{
    if (!eng_cfg_ok(c))
        return 0;
    return eng_tables(c) + mrc_align(mrc_pool_bytes(eng_pool_units(c))) +
           mrc_pool_bytes(eng_rx_pool_units(c));
}

struct mrc_engine *mrc_engine_init(void *mem, const struct mrc_engine_cfg *c, mrc_ns now)
{
    if (mem == NULL || !eng_cfg_ok(c))
        return NULL;
    uint8_t *m = mem;
    if (c->mem_zeroed == 0)
        memset(mem, 0, eng_tables(c)); /* the rest is not touched before it is lent */
    struct mrc_engine *e = mem;
    uint8_t *const pools = m + eng_tables(c);
    mrc_pool_init(&e->env.pool, pools, eng_pool_units(c));
    mrc_pool_init(&e->env.rx_pool, pools + mrc_align(mrc_pool_bytes(eng_pool_units(c))),
                  eng_rx_pool_units(c));
    m += mrc_align(sizeof *e);
    e->cfg = *c;
    e->now = now;
    e->ports_up = MRC_PLANES_ALL;
    eng_classes(&e->env, c);
    e->env.crc = mrc_crc32_select();
    mrc_rand_seed(&e->rand, c->seed);
    mrc_mr_init(&e->env.mrs, m, c->mr_max);
    m += mrc_align(mrc_mr_bytes(c->mr_max));
    mrc_cq_table_init(&e->env.cqs, m, c->cq_max);
    m += mrc_align(mrc_cq_table_bytes(c->cq_max));
    e->qp = (struct mrc_qp **)(void *)m;
    m += mrc_align(c->qp_max * sizeof(struct mrc_qp *));
    e->qp_generation = (uint32_t *)(void *)m;
    m += mrc_align(c->qp_max * sizeof(uint32_t));
    e->path = (struct mrc_path_slot *)(void *)m;
    m += mrc_align(c->path_max * sizeof(struct mrc_path_slot));
    e->cc = (struct mrc_cc_slot *)(void *)m;
    m += mrc_align(c->cc_max * sizeof(struct mrc_cc_slot));
    mrc_ep_init(&e->ep, m, &e->env, c->path_max, c->seed);
    m += mrc_align(mrc_ep_bytes(c->path_max));
    e->hint = (struct mrc_hint_slot *)(void *)m;
    m += mrc_align(c->hint_max * sizeof(struct mrc_hint_slot));
    mrc_heap_init(&e->timers, (struct mrc_heap_node **)(void *)m, c->qp_max + c->path_max + 1);
    e->qp_index_bits = eng_bits(c->qp_max);
    for (uint32_t i = 0; i < c->qp_max; i++)
        e->qp_generation[i] = 1 + mrc_rand_below(&e->rand, (1u << (24 - e->qp_index_bits)) - 1);
    mrc_list_init(&e->control);
    mrc_list_init(&e->ready);
    mrc_list_init(&e->urgent);
    mrc_list_init(&e->probing);
    return e;
}

/* ---- regions ---- */

int mrc_mr_register(struct mrc_engine *e, uint32_t pd, void *addr, uint64_t len, uint8_t access,
                    uint32_t key, uint32_t *rkey)
{
    return mrc_mr_add(&e->env.mrs, pd, addr, (uint64_t)(uintptr_t)addr, len, access, key, rkey);
}

int mrc_mr_register_at(struct mrc_engine *e, uint32_t pd, void *addr, uint64_t va, uint64_t len,
                       uint8_t access, uint32_t key, uint32_t *rkey)
{
    return mrc_mr_add(&e->env.mrs, pd, addr, va, len, access, key, rkey);
}

int mrc_mr_deregister(struct mrc_engine *e, uint32_t rkey)
{
    return mrc_mr_drop(&e->env.mrs, rkey);
}

/* ---- path tables ---- */

int mrc_path_attach(struct mrc_engine *e, struct mrc_path_table *t)
{
    for (uint32_t i = 0; t != NULL && i < e->cfg.path_max; i++) {
        struct mrc_path_slot *p = &e->path[i];
        if (p->table != NULL)
            continue;
        memset(p, 0, sizeof *p);
        p->table = t;
        mrc_list_init(&p->users);
        mrc_list_init(&p->probing);
        p->remote_up = MRC_PLANES_ALL;
        return (int)i;
    }
    return t == NULL ? MRC_ERR_INVAL : MRC_ERR_FULL;
}

struct mrc_path_table *mrc_path_get(struct mrc_engine *e, uint32_t path)
{
    return path < e->cfg.path_max ? e->path[path].table : NULL;
}

bool mrc_path_used(struct mrc_engine *e, uint32_t path)
{
    return mrc_path_get(e, path) != NULL && !mrc_list_empty(&e->path[path].users);
}

struct mrc_path_table *mrc_path_detach(struct mrc_engine *e, uint32_t path)
{
    struct mrc_path_table *t = mrc_path_get(e, path);
    if (t == NULL || mrc_path_used(e, path))
        return NULL;
    mrc_ep_forget(&e->ep, path);
    mrc_engine_ep_timer(e);
    mrc_heap_remove(&e->timers, &e->path[path].timer);
    mrc_list_remove(&e->path[path].probing);
    e->path[path].table = NULL;
    return t;
}

/* ---- endpoint operations ---- */

int mrc_path_lead(struct mrc_engine *e, uint32_t path, const struct mrc_ep_addr *to)
{
    return mrc_ep_lead(&e->ep, path, mrc_path_get(e, path), to);
}

int mrc_path_planes_set(struct mrc_engine *e, uint32_t path, uint32_t local_up, uint32_t remote_up)
{
    struct mrc_path_table *t = mrc_path_get(e, path);
    if (t == NULL)
        return MRC_ERR_NOENT;
    if (mrc_ep_set_planes(&e->ep, path, local_up, remote_up) == MRC_ERR_NOENT)
        mrc_path_set_planes(t, local_up, remote_up); /* nobody to tell */
    mrc_engine_ep_timer(e);
    mrc_engine_touch_path(e, path);
    return MRC_OK;
}

int mrc_path_planes(const struct mrc_engine *e, uint32_t path, struct mrc_ep_planes *out)
{
    return mrc_ep_planes(&e->ep, path, out);
}

int mrc_engine_ep_post(struct mrc_engine *e, const struct mrc_ep_req *req, int n, mrc_ns now)
{
    const int done = mrc_ep_post(&e->ep, req, n, now);
    mrc_engine_ep_timer(e);
    return done;
}

int mrc_engine_ep_poll(struct mrc_engine *e, struct mrc_ep_rsp *out, int max)
{
    return mrc_ep_take(&e->ep, out, max);
}

bool mrc_engine_ep_any(const struct mrc_engine *e) { return mrc_ep_results(&e->ep); }

/* ---- controllers ---- */

int mrc_cc_attach(struct mrc_engine *e, struct mrc_cc *cc)
{
    for (uint32_t i = 0; cc != NULL && i < e->cfg.cc_max; i++) {
        struct mrc_cc_slot *s = &e->cc[i];
        if (s->cc != NULL)
            continue;
        memset(s, 0, sizeof *s);
        s->cc = cc;
        mrc_list_init(&s->ready);
        mrc_list_init(&s->again);
        mrc_list_init(&s->fresh);
        mrc_list_init(&s->users);
        return (int)i;
    }
    return cc == NULL ? MRC_ERR_INVAL : MRC_ERR_FULL;
}

struct mrc_cc *mrc_cc_detach(struct mrc_engine *e, uint32_t cc)
{
    if (cc >= e->cfg.cc_max || e->cc[cc].cc == NULL || e->cc[cc].refs != 0)
        return NULL;
    struct mrc_cc *c = e->cc[cc].cc;
    mrc_list_remove(&e->cc[cc].ready);
    e->cc[cc].cc = NULL;
    return c;
}

/* ---- queue pairs ---- */

struct mrc_qp *mrc_engine_qp(const struct mrc_engine *e, uint32_t qpn)
{
    const uint32_t i = qpn & ((1u << e->qp_index_bits) - 1);
    if (i >= e->cfg.qp_max || e->qp[i] == NULL || e->qp[i]->peer.qpn != qpn)
        return NULL;
    return e->qp[i];
}

size_t mrc_qp_size(const struct mrc_qp_init *init) { return mrc_qp_bytes(init); }

/* The upper bits count the lives of an index, so that packets of a former life find nobody. */
static uint32_t eng_next_qpn(struct mrc_engine *e, uint32_t i)
{
    const uint32_t generations = 1u << (24 - e->qp_index_bits);
    const uint32_t g = e->qp_generation[i];
    e->qp_generation[i] = g + 1 < generations ? g + 1 : 1;
    return g << e->qp_index_bits | i;
}

int mrc_qp_create(struct mrc_engine *e, void *mem, const struct mrc_qp_init *init)
{
    struct mrc_cq *scq = mrc_cq_get(&e->env.cqs, init->send_cq);
    struct mrc_cq *rcq = mrc_cq_get(&e->env.cqs, init->recv_cq);
    if (mem == NULL || mrc_qp_bytes(init) == 0 || scq == NULL || rcq == NULL)
        return MRC_ERR_INVAL;
    if (scq->overrun || rcq->overrun)
        return MRC_ERR_STATE;
    for (uint32_t n = 0; n < e->cfg.qp_max; n++) {
        const uint32_t i = (e->qp_next + n) % e->cfg.qp_max;
        if (e->qp[i] != NULL)
            continue;
        const uint32_t qpn = eng_next_qpn(e, i);
        e->qp[i] = mrc_qp_init_at(mem, &e->env, init, qpn, mrc_rand_next(&e->rand));
        e->qp_next = (i + 1) % e->cfg.qp_max;
        scq->refs++;
        rcq->refs++;
        return (int)qpn;
    }
    return MRC_ERR_FULL;
}

/* What the QP had in flight is free for the others (flushed by now). */
static void eng_leave_cc(struct mrc_engine *e, struct mrc_qp *q, uint32_t cc)
{
    mrc_list_remove(&q->cc_link);
    mrc_sched_withdraw(q);
    e->cc[cc].refs--;
    mrc_sched_wake(e, &e->cc[cc]);
}

/* The QP has other attributes now: what it shares learns of it. */
static void eng_rejoin(struct mrc_engine *e, struct mrc_qp *q, const struct mrc_qp_attr *old,
                       const struct mrc_qp_refs *had)
{
    if (q->path != had->path) {
        mrc_list_remove(&q->path_link);
        if (q->path != NULL)
            mrc_list_push(&e->path[q->attr.path].users, &q->path_link);
    }
    if (q->cc != had->cc) {
        if (had->cc != NULL)
            eng_leave_cc(e, q, old->cc);
        if (q->cc != NULL) {
            e->cc[q->attr.cc].refs++;
            mrc_list_push(&e->cc[q->attr.cc].users, &q->cc_link);
        }
    }
    if (q->hint != had->hint) {
        if (had->hint != NULL)
            e->hint[old->hint].refs--;
        if (q->hint != NULL)
            e->hint[q->attr.hint].refs++;
    }
}

/* Which of the ids stand for nothing: mask bits. An unknown controller is out of range. */
static uint32_t eng_refs(const struct mrc_engine *e, const struct mrc_qp_attr *a, uint32_t mask,
                         struct mrc_qp_refs *out)
{
    memset(out, 0, sizeof *out);
    if ((mask & MRC_QP_PATH) != 0 && a->path < e->cfg.path_max)
        out->path = e->path[a->path].table;
    if ((mask & MRC_QP_CC) != 0 && a->cc < e->cfg.cc_max)
        out->cc = e->cc[a->cc].cc;
    if ((mask & MRC_QP_PATH) != 0 && out->path == NULL)
        return MRC_QP_PATH;
    if ((mask & MRC_QP_HINT) == 0 || a->hint == MRC_HINT_NONE)
        return 0;
    if (a->hint >= e->cfg.hint_max || !e->hint[a->hint].used)
        return MRC_QP_HINT;
    out->hint = &e->hint[a->hint].hint;
    return 0;
}

int mrc_qp_modify(struct mrc_engine *e, uint32_t qpn, const struct mrc_qp_attr *attr, uint32_t mask,
                  mrc_ns now)
{
    struct mrc_qp *q = mrc_engine_qp(e, qpn);
    struct mrc_qp_refs refs;
    if (q == NULL)
        return MRC_ERR_NOENT;
    q->refused = eng_refs(e, attr, mask, &refs);
    q->refused_why = MRC_QP_WHY_NOENT;
    if (q->refused != 0)
        return MRC_ERR_NOENT;
    e->now = now;
    const struct mrc_qp_attr old = q->attr;
    const struct mrc_qp_refs had = {q->path, q->cc, q->hint};
    const int err = mrc_qp_apply(q, attr, mask, &refs, now);
    if (err != MRC_OK)
        return err;
    eng_rejoin(e, q, &old, &had);
    int result = MRC_OK;
    if ((mask & MRC_QP_STATE) != 0 && attr->state == MRC_QPS_RESET) {
        mrc_list_remove(&q->control);
        q->peer.qpn = eng_next_qpn(e, qpn & ((1u << e->qp_index_bits) - 1));
        result = (int)q->peer.qpn;
    }
    mrc_engine_touch(e, q);
    return result;
}

int mrc_qp_query(const struct mrc_engine *e, uint32_t qpn, struct mrc_qp_attr *attr, uint32_t mask)
{
    const struct mrc_qp *q = mrc_engine_qp(e, qpn);
    if (q == NULL)
        return MRC_ERR_NOENT;
    memset(attr, 0, sizeof *attr);
    mrc_qp_copy_attr(attr, &q->attr, mask);
    if ((mask & MRC_QP_STATE) != 0)
        attr->state = q->attr.state;
    return MRC_OK;
}

void *mrc_qp_destroy(struct mrc_engine *e, uint32_t qpn)
{
    struct mrc_qp *q = mrc_engine_qp(e, qpn);
    if (q == NULL)
        return NULL;
    mrc_qp_flush(q, MRC_WC_WR_FLUSH_ERR, e->now);
    mrc_list_remove(&q->path_link);
    if (q->cc != NULL)
        eng_leave_cc(e, q, q->attr.cc);
    if (q->hint != NULL)
        e->hint[q->attr.hint].refs--;
    mrc_list_remove(&q->control);
    mrc_heap_remove(&e->timers, &q->timer);
    e->env.cqs.cq[q->init.send_cq].refs--;
    e->env.cqs.cq[q->init.recv_cq].refs--;
    e->qp[qpn & ((1u << e->qp_index_bits) - 1)] = NULL;
    if (e->env.cqs.failed > 0) /* no room for what was flushed */
        mrc_engine_cq_failed(e);
    return q;
}

int mrc_qp_post_send(struct mrc_engine *e, uint32_t qpn, const struct mrc_send_wr *wr, int n)
{
    struct mrc_qp *q = mrc_engine_qp(e, qpn);
    if (q == NULL)
        return MRC_ERR_NOENT;
    const int done = mrc_qp_send(q, wr, n);
    if (done > 0)
        mrc_sched_offer(e, q);
    return done;
}

int mrc_qp_post_recv(struct mrc_engine *e, uint32_t qpn, const uint64_t *wr_id, int n)
{
    struct mrc_qp *q = mrc_engine_qp(e, qpn);
    return q == NULL ? MRC_ERR_NOENT : mrc_qp_recv(q, wr_id, n);
}

int mrc_qp_stats(const struct mrc_engine *e, uint32_t qpn, struct mrc_qp_stats *out)
{
    const struct mrc_qp *q = mrc_engine_qp(e, qpn);
    if (q == NULL)
        return MRC_ERR_NOENT;
    mrc_qp_read_stats(q, out);
    return MRC_OK;
}

void mrc_engine_rx_pause(struct mrc_engine *e, bool paused) { e->env.rx.paused = paused; }

void mrc_engine_rx_backlog(struct mrc_engine *e, bool more) { mrc_rxload_turn(&e->env.rx, more); }

uint64_t mrc_engine_drops(const struct mrc_engine *e, enum mrc_drop d)
{
    return (uint32_t)d < MRC_DROP_COUNT ? e->env.drops[d] : 0;
}
