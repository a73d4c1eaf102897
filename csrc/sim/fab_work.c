/* SPDX-License-Identifier: BSD-2-Clause */
/* The work: messages that wait for times and arrivals, bulk flows that never end. Each message is a
 * Write with Immediate, whose completion at the receiver says that all of it has arrived (MRC
 * B.13). */
#include "fab_int.h"

enum { WORK_BATCH = 64 };
#define WORK_BULK_ID (UINT64_C(1) << 63)
#define WORK_BULK_IMM 0x80000000u

uint64_t fab_message_offset(uint64_t id)
{
    return mrc_mix64(id) % FAB_PATTERN_SLACK & ~(uint64_t)7;
}

/* ---- the timers: a binary heap by time, then by what ---- */

static bool timer_before(const struct fab_timer *a, const struct fab_timer *b)
{
    return a->at != b->at ? a->at < b->at : a->what < b->what;
}

static void timer_arm(struct fab *f)
{
    fab_heap_set(&f->heap, fab_source_timer(f), f->timers != 0 ? f->timer[0].at : MRC_NEVER);
}

void fab_timer_add(struct fab *f, mrc_ns at, uint32_t what)
{
    const struct fab_timer t = {.at = at, .what = what};
    MRC_ASSERT(f->timers < f->timers_max);
    uint32_t i = f->timers++;
    for (; i > 0 && timer_before(&t, &f->timer[(i - 1) / 2]); i = (i - 1) / 2)
        f->timer[i] = f->timer[(i - 1) / 2];
    f->timer[i] = t;
    timer_arm(f);
}

static uint32_t timer_take(struct fab *f)
{
    const uint32_t what = f->timer[0].what;
    const struct fab_timer last = f->timer[--f->timers];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= f->timers)
            break;
        if (child + 1 < f->timers && timer_before(&f->timer[child + 1], &f->timer[child]))
            child++;
        if (!timer_before(&f->timer[child], &last))
            break;
        f->timer[i] = f->timer[child];
        i = child;
    }
    if (f->timers != 0)
        f->timer[i] = last;
    return what;
}

/* ---- posting ---- */

static bool work_post(struct fab *f, struct fab_flow *w, uint64_t id, uint32_t imm, uint32_t bytes,
                      uint64_t target)
{
    struct fab_host *const from = &f->host[w->from];
    const struct mrc_send_wr wr = {
        .wr_id = id,
        .laddr = (uint64_t)(uintptr_t)(f->pattern + fab_message_offset(id)),
        .raddr = fab_memory_va(w->to) + target,
        .length = bytes,
        .lkey = from->lkey,
        .rkey = f->host[w->to].rkey,
        .imm = imm,
        .opcode = MRC_WR_RDMA_WRITE_WITH_IMM,
        .flags = MRC_SEND_SIGNALED,
    };
    if (mrc_qp_post_send(from->e, w->qpn, &wr, 1) != 1)
        return false;
    w->posted++;
    from->fresh = true;
    return true;
}

static void work_give_up(struct fab *f, uint32_t msg)
{
    struct fab_state *const s = &f->state[msg];
    if (s->given_up || s->arrived != MRC_NEVER)
        return;
    s->given_up = true;
    f->left--;
}

/* What has started and finds room in the send queue. */
static void work_push(struct fab *f, struct fab_flow *w)
{
    while (w->ready != FAB_NONE && (w->posted < w->depth || w->dead)) {
        const uint32_t m = w->ready;
        struct fab_state *const s = &f->state[m];
        if (!w->dead && !work_post(f, w, m, m, f->msg[m].bytes, s->target))
            return;
        w->ready = s->next;
        if (w->dead)
            work_give_up(f, m);
    }
    const struct fab_bulk *const b = w->bulk != FAB_NONE ? &f->bulk[w->bulk] : NULL;
    if (b == NULL || w->dead || f->now - f->start < b->start_ns ||
        (b->stop_ns != 0 && f->now - f->start >= b->stop_ns))
        return;
    while (w->posted < b->outstanding) {
        const uint64_t n = w->bulk_posted;
        const uint64_t slot = f->cfg.verify != 0 ? n % b->outstanding : 0;
        const uint64_t target = w->bulk_target + slot * (b->bytes + (uint64_t)FAB_GUARD);
        if (!work_post(f, w, WORK_BULK_ID | n, WORK_BULK_IMM | (uint32_t)n, b->bytes, target))
            return;
        w->bulk_posted++;
    }
}

static void work_ready(struct fab *f, uint32_t msg)
{
    struct fab_flow *const w = &f->flow[f->msg[msg].flow];
    struct fab_state *const s = &f->state[msg];
    s->started = f->now;
    s->next = FAB_NONE;
    if (w->ready == FAB_NONE)
        w->ready = msg;
    else
        f->state[w->ready_tail].next = msg;
    w->ready_tail = msg;
    work_push(f, w);
    fab_host_wake(f, w->from);
}

static void work_start(struct fab *f, uint32_t msg)
{
    if (f->msg[msg].delay_ns == 0)
        work_ready(f, msg);
    else
        fab_timer_add(f, f->now + f->msg[msg].delay_ns, msg);
}

void fab_work_start(struct fab *f)
{
    for (uint32_t m = 0; m < f->msgs; m++)
        if (f->state[m].waits == 0)
            work_start(f, m);
    for (uint32_t b = 0; b < f->bulks; b++)
        fab_timer_add(f, f->start + f->bulk[b].start_ns, f->msgs + b);
}

void fab_work_timers(struct fab *f)
{
    while (f->timers != 0 && f->timer[0].at <= f->now) {
        const uint32_t what = timer_take(f);
        if (what < f->msgs) {
            work_ready(f, what);
        } else if (what < f->msgs + f->bulks) {
            struct fab_flow *const w = &f->flow[f->bulk[what - f->msgs].flow];
            work_push(f, w);
            fab_host_wake(f, w->from);
        } else {
            const uint32_t port = what - f->msgs - f->bulks;
            f->carrier_due[port] = false;
            fab_host_carrier(f, port / f->cfg.planes, port % f->cfg.planes);
        }
    }
    timer_arm(f);
}

/* ---- arriving ---- */

/* With verify: the bytes are those of that message, and nothing around them has changed. */
static void work_verify(struct fab *f, uint32_t host, uint64_t id, uint64_t target, uint32_t bytes)
{
    const uint8_t *const at = f->host[host].memory + target;
    if (memcmp(at, f->pattern + fab_message_offset(id), bytes) != 0)
        fab_fail(f, "host %u: the %u bytes of message %llx are not what was sent", host, bytes,
                 (unsigned long long)id);
    for (uint32_t i = 1; i <= FAB_GUARD; i++)
        if (at[-(int)i] != FAB_POISON || at[bytes + i - 1] != FAB_POISON) {
            fab_fail(f, "host %u: memory beside message %llx has changed", host,
                     (unsigned long long)id);
            return;
        }
}

static void work_release(struct fab *f, uint32_t msg)
{
    for (uint32_t e = f->state[msg].edge; e != FAB_NONE; e = f->edge[e])
        if (--f->state[e / 2].waits == 0)
            work_start(f, e / 2);
}

static void work_arrived_bulk(struct fab *f, struct fab_flow *w, const struct mrc_wc *wc)
{
    const struct fab_bulk *const b = w->bulk != FAB_NONE ? &f->bulk[w->bulk] : NULL;
    const uint64_t n = w->arrived_bulk++;
    if (b == NULL || wc->byte_len != b->bytes || wc->imm != (WORK_BULK_IMM | (uint32_t)n)) {
        fab_fail(f, "host %u: bulk message %llu arrived as %u bytes, immediate %x", w->to,
                 (unsigned long long)n, wc->byte_len, wc->imm);
        return;
    }
    if (f->cfg.verify == 0)
        return;
    const uint64_t target = w->bulk_target + n % b->outstanding * (b->bytes + (uint64_t)FAB_GUARD);
    work_verify(f, w->to, WORK_BULK_ID | n, target, b->bytes);
    memset(f->host[w->to].memory + target, FAB_POISON, b->bytes);
}

static void work_arrived(struct fab *f, struct fab_flow *w, const struct mrc_wc *wc)
{
    const uint32_t m = wc->imm;
    if (wc->imm >= WORK_BULK_IMM) {
        work_arrived_bulk(f, w, wc);
        return;
    }
    if (m >= f->msgs || f->state[m].arrived != MRC_NEVER || &f->flow[f->msg[m].flow] != w ||
        wc->byte_len != f->msg[m].bytes) {
        fab_fail(f, "host %u: %u bytes arrived as message %u", w->to, wc->byte_len, m);
        return;
    }
    if (f->cfg.verify != 0)
        work_verify(f, w->to, m, f->state[m].target, f->msg[m].bytes);
    f->state[m].arrived = f->now;
    if (!f->state[m].given_up)
        f->left--;
    work_release(f, m);
}

/* ---- completions ---- */

static void work_recv_done(struct fab *f, uint32_t host, const struct mrc_wc *wc)
{
    struct fab_host *const h = &f->host[host];
    const uint32_t flow = h->flow_of[wc->qpn & h->qpn_mask];
    MRC_ASSERT(flow != FAB_NONE);
    struct fab_flow *const w = &f->flow[flow ^ 1]; /* what this QP receives */
    const uint64_t id = 0;
    if (wc->status != MRC_WC_SUCCESS)
        return; /* flushed */
    fab_mix(f, (uint64_t)wc->imm << 24 ^ wc->qpn);
    w->arrived++;
    f->totals.arrived++;
    if (mrc_qp_post_recv(h->e, wc->qpn, &id, 1) != 1)
        fab_fail(f, "host %u: no room for another receive", host);
    work_arrived(f, w, wc);
}

static void work_failed(struct fab *f, struct fab_flow *w, const struct mrc_wc *wc)
{
    w->failed++;
    f->totals.failed++;
    if ((wc->wr_id & WORK_BULK_ID) == 0)
        work_give_up(f, (uint32_t)wc->wr_id);
    if (w->dead)
        return;
    w->dead = true;
    fab_log(f, &(struct fab_event){.time = f->now,
                                   .kind = FAB_E_FAILED,
                                   .host = w->from,
                                   .peer = w->to,
                                   .ev = (uint32_t)(w - f->flow),
                                   .reason = wc->status});
}

static void work_send_done(struct fab *f, uint32_t host, const struct mrc_wc *wc)
{
    struct fab_host *const h = &f->host[host];
    const uint32_t flow = h->flow_of[wc->qpn & h->qpn_mask];
    MRC_ASSERT(flow != FAB_NONE);
    struct fab_flow *const w = &f->flow[flow];
    fab_mix(f, wc->wr_id ^ (uint64_t)wc->status << 40);
    w->posted--;
    if ((wc->wr_id & WORK_BULK_ID) == 0) {
        f->state[wc->wr_id].status = wc->status;
        if (wc->status == MRC_WC_SUCCESS)
            f->state[wc->wr_id].done = f->now;
    }
    if (wc->status != MRC_WC_SUCCESS)
        work_failed(f, w, wc);
    work_push(f, w);
}

void fab_work_completions(struct fab *f, uint32_t host)
{
    struct mrc_engine *const e = f->host[host].e;
    struct mrc_wc wc[WORK_BATCH];
    int n = 0;
    if (!mrc_cq_any(e))
        return;
    while ((n = mrc_cq_poll(e, f->host[host].cq_recv, wc, WORK_BATCH)) > 0)
        for (int i = 0; i < n; i++)
            work_recv_done(f, host, &wc[i]);
    while ((n = mrc_cq_poll(e, f->host[host].cq_send, wc, WORK_BATCH)) > 0)
        for (int i = 0; i < n; i++)
            work_send_done(f, host, &wc[i]);
}
