/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of QPs under way: another life, errors, an end with work outstanding. */
#include "world_int.h"

enum { LIFE_PSN_FAR = 1 << 22 }; /* at least so far from the numbers of the former life (H8) */

/* Both engines see what has reached them: what they do next rests on all the world knows. */
static void life_turn(struct world *w, const struct world_flow *f)
{
    world_turn(w, f->from);
    world_turn(w, f->to);
}

static void life_kick(struct world *w, const struct world_flow *f)
{
    world_kick(w, f->from);
    world_kick(w, f->to);
}

/* No further work; what was accepted must still complete. */
static void life_stop(struct world_flow *f) { f->load.messages = f->posted; }

static void life_settle(struct world *w, struct world_flow *f)
{
    world_completions(w, f->from);
    world_settle(w, f);
}

static void life_check_flushed(struct world *w, const struct world_flow *f)
{
    const uint32_t i = (uint32_t)(f - w->flow);
    if (f->completed != f->posted) /* field reports 47, 49 */
        world_fail(w, "flow %u: %llu of %llu work requests completed at its end", i,
                   (unsigned long long)f->completed, (unsigned long long)f->posted);
}

/* A number that no packet of the former life is near. */
static uint32_t life_psn(struct world_flow *f)
{
    const uint32_t room = (1u << 23) - LIFE_PSN_FAR - (1u << 20);
    const int32_t step = (int32_t)(LIFE_PSN_FAR + mrc_rand_below(&f->rand, room));
    const bool back = mrc_rand_below(&f->rand, 2) != 0;
    return mrc_psn_add(f->psn_next, back ? -step : step).v;
}

uint32_t world_reset(struct world *w, uint32_t flow)
{
    struct world_flow *const f = &w->flow[flow];
    struct world_flow *const back = &w->flow[f->reverse];
    const struct mrc_qp_attr reset = {.state = MRC_QPS_RESET};
    const struct world_load again = f->load;
    const struct world_load again_back = back->load;
    uint32_t qpn[2];
    life_turn(w, f);
    life_stop(f);
    life_stop(back);
    for (int side = 0; side < 2; side++) {
        struct world_flow *const own = side == 0 ? f : back;
        life_settle(w, own);
        const int r =
            mrc_qp_modify(w->host[own->from].e, own->qpn_from, &reset, MRC_QP_STATE, w->now);
        if (r <= 0)
            world_fail(w, "mrc_qp_modify to RESET: %d", r);
        world_completions(w, own->from);
        qpn[side] = (uint32_t)r; /* another, so that packets of this life find nobody */
    }
    life_check_flushed(w, f);
    life_check_flushed(w, back);
    f->retired = back->retired = true;
    world_seen(w, WORLD_C_RESET);
    world_log_note(w, "reset", flow, f->reverse, 0);

    struct world_qp_cfg q = f->qp;
    const bool forward = f->from == q.a;
    q.psn_ab = life_psn(forward ? f : back);
    q.psn_ba = life_psn(forward ? back : f);
    const uint32_t i = world_reconnect(w, f, &q, qpn[forward ? 0 : 1], qpn[forward ? 1 : 0]);
    const uint32_t anew = forward ? i : i + 1;
    w->flow[i].noise = w->flow[i + 1].noise = true;
    world_load(w, anew, &again);
    world_load(w, w->flow[anew].reverse, &again_back);
    life_kick(w, f);
    return anew;
}

void world_destroy(struct world *w, uint32_t flow)
{
    struct world_flow *const f = &w->flow[flow];
    struct world_flow *const back = &w->flow[f->reverse];
    if (f->ended)
        return;
    life_turn(w, f);
    life_stop(f);
    f->may_fail = back->may_fail = true;
    if (f->posted != f->completed)
        world_seen(w, WORLD_C_DESTROYED);
    life_settle(w, f);
    void *const mem = mrc_qp_destroy(w->host[f->from].e, f->qpn_from);
    if (mem == NULL)
        world_fail(w, "mrc_qp_destroy refuses");
    else
        memset(mem, 0xEE, 64); /* the memory is ours again */
    f->ended = true;
    world_log_note(w, "destroy", flow, 0, 0);
    world_completions(w, f->from);
    life_check_flushed(w, f);
    f->dead = true;
    life_kick(w, f);
}

void world_error(struct world *w, uint32_t flow)
{
    struct world_flow *const f = &w->flow[flow];
    const struct mrc_qp_attr err = {.state = MRC_QPS_ERR};
    if (f->dead)
        return;
    life_turn(w, f);
    f->may_fail = w->flow[f->reverse].may_fail = true;
    world_seen(w, WORLD_C_ERROR_BY_HAND);
    world_log_note(w, "error", flow, 0, 0);
    life_settle(w, f);
    if (mrc_qp_modify(w->host[f->from].e, f->qpn_from, &err, MRC_QP_STATE, w->now) != MRC_OK)
        world_fail(w, "mrc_qp_modify to ERR refused");
    world_completions(w, f->from);
    f->dead = true;
    life_kick(w, f);
}

void world_bad_key(struct world *w, uint32_t flow)
{
    struct world_flow *const f = &w->flow[flow];
    if (f->dead || f->retired || f->load.bytes_max == 0 || f->posted - f->completed >= f->slots)
        return;
    f->may_fail = w->flow[f->reverse].may_fail = true;
    if (world_post_to(w, f, 1, f->va + WORLD_GUARD, f->rkey ^ 0x00C0FFEE))
        world_seen(w, WORLD_C_BAD_KEY);
    world_kick(w, f->from);
}

static void life_resume(struct world *w, void *arg, uint32_t host)
{
    (void)arg;
    mrc_engine_rx_pause(w->host[host].e, false);
}

void world_pause(struct world *w, uint32_t host, mrc_ns for_ns)
{
    mrc_engine_rx_pause(w->host[host].e, true);
    world_at(w, w->now + for_ns, life_resume, NULL, host);
    world_seen(w, WORLD_C_PAUSED);
}

void world_mpr(struct world *w, uint32_t flow, uint16_t mpr)
{
    const struct world_flow *const f = &w->flow[flow];
    const struct mrc_qp_attr a = {.mpr_dest = mpr};
    if (f->retired || w->flow[f->reverse].dead)
        return;
    life_turn(w, f);
    const int r = mrc_qp_modify(w->host[f->to].e, f->qpn_to, &a, MRC_QP_MPR_DEST, w->now);
    if (r != MRC_OK)
        world_fail(w, "mrc_qp_modify MPR_DEST %u: %d", mpr, r);
    world_log_note(w, "mpr", flow, mpr, 0);
    life_kick(w, f);
}

void world_end(struct world *w)
{
    for (uint32_t i = 0; i < w->flows; i++)
        w->host[w->flow[i].from].stalled_until = 0;
    for (uint32_t i = 0; i < w->flows && w->failure[0] == '\0'; i++)
        if (!w->flow[i].retired)
            world_destroy(w, i);
    for (uint32_t i = 0; i < w->flows && w->failure[0] == '\0'; i++) {
        const struct world_flow *const f = &w->flow[i];
        if (mrc_mr_deregister(w->host[f->from].e, f->lkey) != MRC_OK ||
            mrc_mr_deregister(w->host[f->to].e, f->rkey) != MRC_OK)
            world_fail(w, "flow %u: its memory is still in use after its end", i);
        if (f->recv_posted != f->recv_taken) /* flushed ones included */
            world_fail(w, "flow %u: %llu of %llu receives completed at its end", i,
                       (unsigned long long)f->recv_taken, (unsigned long long)f->recv_posted);
        world_memory_check(w, &w->flow[i]);
    }
    for (uint32_t a = 0; a < w->cfg.hosts && w->failure[0] == '\0'; a++)
        for (uint32_t b = 0; b < w->cfg.hosts; b++)
            if (a != b && w->host[a].cc[b]->inflight != 0) /* field reports 19, 27 */
                world_fail(w, "host %u: %lld bytes to host %u in flight after the end", a,
                           (long long)w->host[a].cc[b]->inflight, b);
}
