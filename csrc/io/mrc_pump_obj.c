/* SPDX-License-Identifier: BSD-2-Clause */
/* What hangs off a pump: endpoint operations, controllers, regions, queues. The memory is the
 * pump's; the core borrows it. Work that makes a turn due wakes whoever waits. */
#include "mrc_clock.h"
#include "mrc_pump_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int mrc_pump_rx_pause(struct mrc_pump *p, bool paused)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    mrc_engine_rx_pause(p->engine, paused);
    return pump_leave(p, MRC_OK);
}

/* ---- endpoint operations ---- */

int mrc_pump_set_planes(struct mrc_pump *p, uint32_t local_up)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    p->local_up = local_up & MRC_PLANES_ALL;
    mrc_engine_ports(p->engine, p->local_up);
    for (uint32_t i = 0; i < p->path_count; i++)
        pump_local_planes(p, p->paths[i]);
    pump_kick(p);
    return pump_leave(p, MRC_OK);
}

int mrc_pump_ep_post(struct mrc_pump *p, const struct mrc_ep_req *req, int n)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    const int result = mrc_engine_ep_post(p->engine, req, n, mrc_clock_now());
    if (result > 0)
        pump_kick(p);
    return pump_leave(p, pump_refuse(p, result, "EV probe"));
}

int mrc_pump_ep_poll(struct mrc_pump *p, struct mrc_ep_rsp *out, int max)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, mrc_engine_ep_poll(p->engine, out, max));
}

/* ---- controllers ---- */

int mrc_pump_cc_create(struct mrc_pump *p, const struct mrc_cc_cfg *cfg)
{
    int err = pump_enter(p);
    if (err < 0)
        return err;
    struct mrc_cc *cc = pump_alloc(p, sizeof *cc);
    if (cc == NULL)
        return pump_leave(p, -(1000 + ENOMEM));
    err = mrc_cc_init(cc, cfg, mrc_clock_now());
    if (err >= 0)
        err = mrc_cc_attach(p->engine, cc);
    if (err < 0)
        pump_free(p, cc);
    return pump_leave(p, pump_refuse(p, err, "congestion controller"));
}

int mrc_pump_cc_destroy(struct mrc_pump *p, uint32_t cc)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    struct mrc_cc *mem = mrc_cc_detach(p->engine, cc);
    if (mem == NULL)
        return pump_leave(p, pump_refuse(p, MRC_ERR_BUSY, "congestion controller"));
    pump_free(p, mem);
    return pump_leave(p, MRC_OK);
}

int mrc_pump_cc_query(struct mrc_pump *p, uint32_t cc, struct mrc_cc_info *out)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, pump_refuse(p, mrc_cc_query(p->engine, cc, out), "congestion controller"));
}

/* ---- memory regions ---- */

int mrc_pump_mr_register(struct mrc_pump *p, uint32_t pd, void *addr, uint64_t len, uint8_t access,
                         uint32_t key, uint32_t *rkey)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    struct pump_mr *mr = NULL;
    for (uint32_t i = 0; i < p->cfg.mr_max && mr == NULL; i++) {
        if (!p->mrs[i].used)
            mr = &p->mrs[i];
    }
    if (mr == NULL)
        return pump_leave(p, pump_refuse(p, MRC_ERR_FULL, "memory region"));
    const int result = mrc_mr_register(p->engine, pd, addr, len, access, key, rkey);
    if (result >= 0)
        *mr = (struct pump_mr){.len = len, .addr = addr, .rkey = *rkey, .used = true};
    return pump_leave(p, pump_refuse(p, result, "memory region"));
}

int mrc_pump_mr_deregister(struct mrc_pump *p, uint32_t rkey)
{
    int err = pump_enter(p);
    if (err < 0)
        return err;
    err = mrc_mr_deregister(p->engine, rkey);
    if (err < 0)
        return pump_leave(p, pump_refuse(p, err, "memory region"));
    for (uint32_t i = 0; i < p->cfg.mr_max; i++) {
        struct pump_mr *mr = &p->mrs[i];
        if (!mr->used || mr->rkey != rkey)
            continue;
        /* Packets that wait for a socket point into memory that may go now. */
        for (uint32_t k = 0; k < p->port_count; k++)
            p->ports[k].io->ops->forget(p->ports[k].io, mr->addr, mr->len);
        mr->used = false;
        break;
    }
    return pump_leave(p, MRC_OK);
}

/* ---- completion queues ---- */

int mrc_pump_cq_create(struct mrc_pump *p, uint32_t depth)
{
    int err = pump_enter(p);
    if (err < 0)
        return err;
    const size_t size = mrc_cq_size(depth);
    if (size == 0)
        return pump_leave(p, pump_refuse(p, MRC_ERR_INVAL, "completion queue"));
    void *mem = pump_alloc(p, size);
    if (mem == NULL)
        return pump_leave(p, -(1000 + ENOMEM));
    err = mrc_cq_create(p->engine, mem, depth);
    if (err < 0)
        pump_free(p, mem);
    return pump_leave(p, pump_refuse(p, err, "completion queue"));
}

int mrc_pump_cq_destroy(struct mrc_pump *p, uint32_t cq)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    void *mem = mrc_cq_destroy(p->engine, cq);
    if (mem == NULL)
        return pump_leave(p, pump_refuse(p, MRC_ERR_BUSY, "completion queue"));
    pump_free(p, mem);
    pump_cq_gone(p, cq);
    return pump_leave(p, MRC_OK);
}

int mrc_pump_cq_poll(struct mrc_pump *p, uint32_t cq, struct mrc_wc *out, int max)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, pump_refuse(p, mrc_cq_poll(p->engine, cq, out, max), "completion queue"));
}

int mrc_pump_cq_overrun(struct mrc_pump *p, uint32_t cq)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, mrc_cq_overrun(p->engine, cq) ? 1 : 0);
}

/* ---- queue pairs ---- */

int mrc_pump_qp_create(struct mrc_pump *p, const struct mrc_qp_init *init)
{
    int err = pump_enter(p);
    if (err < 0)
        return err;
    const size_t size = mrc_qp_size(init);
    if (size == 0)
        return pump_leave(p, pump_refuse(p, MRC_ERR_INVAL, "queue pair"));
    void *mem = pump_alloc(p, size);
    if (mem == NULL)
        return pump_leave(p, -(1000 + ENOMEM));
    err = mrc_qp_create(p->engine, mem, init);
    if (err < 0)
        pump_free(p, mem);
    return pump_leave(p, pump_refuse_qp(p, 0, err));
}

/* Before anything is sent: full packets that the route cannot take would all be lost. What else is
 * wrong with the attributes the core says. */
static int pump_qp_fits(struct mrc_pump *p, uint32_t qpn, const struct mrc_qp_attr *attr,
                        uint32_t mask)
{
    const uint32_t both = MRC_QP_AV | MRC_QP_PATH;
    struct mrc_qp_attr now;
    if ((mask & both) == 0 || mrc_qp_query(p->engine, qpn, &now, both | MRC_QP_STATE) != MRC_OK ||
        ((mask & both) != both && now.state < MRC_QPS_RTR))
        return MRC_OK;
    const uint16_t mtu = (mask & MRC_QP_AV) != 0 ? attr->path_mtu : now.path_mtu;
    const uint32_t path = (mask & MRC_QP_PATH) != 0 ? attr->path : now.path;
    return mtu <= MRC_MTU_MAX ? pump_path_fits(p, path, mtu) : MRC_OK;
}

int mrc_pump_qp_modify(struct mrc_pump *p, uint32_t qpn, const struct mrc_qp_attr *attr,
                       uint32_t mask)
{
    int err = pump_enter(p);
    if (err < 0)
        return err;
    err = pump_qp_fits(p, qpn, attr, mask);
    if (err < 0)
        return pump_leave(p, err);
    err = mrc_qp_modify(p->engine, qpn, attr, mask, mrc_clock_now());
    pump_kick(p);
    return pump_leave(p, pump_refuse_qp(p, qpn, err));
}

int mrc_pump_qp_query(struct mrc_pump *p, uint32_t qpn, struct mrc_qp_attr *attr, uint32_t mask)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, pump_refuse(p, mrc_qp_query(p->engine, qpn, attr, mask), "queue pair"));
}

int mrc_pump_qp_destroy(struct mrc_pump *p, uint32_t qpn)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    void *mem = mrc_qp_destroy(p->engine, qpn);
    if (mem == NULL)
        return pump_leave(p, pump_refuse(p, MRC_ERR_NOENT, "queue pair"));
    pump_free(p, mem);
    pump_kick(p); /* flushed completions are waiting */
    return pump_leave(p, MRC_OK);
}

int mrc_pump_post_send(struct mrc_pump *p, uint32_t qpn, const struct mrc_send_wr *wr, int n)
{
    return mrc_pump_post(p, qpn, wr, n, MRC_POST);
}

int mrc_pump_post(struct mrc_pump *p, uint32_t qpn, const struct mrc_send_wr *wr, int n, int when)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    const int done = mrc_qp_post_send(p->engine, qpn, wr, n);
    if (done > 0)
        pump_posted(p, when);
    return pump_leave(p, pump_refuse(p, done, "send queue"));
}

int mrc_pump_push(struct mrc_pump *p)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    if (mrc_engine_tx_pending(p->engine))
        pump_posted(p, MRC_POST_NOW);
    return pump_leave(p, MRC_OK);
}

int mrc_pump_post_recv(struct mrc_pump *p, uint32_t qpn, const uint64_t *wr_id, int n)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    const int done = mrc_qp_post_recv(p->engine, qpn, wr_id, n);
    return pump_leave(p, pump_refuse(p, done, "receive queue"));
}

int mrc_pump_qp_stats(struct mrc_pump *p, uint32_t qpn, struct mrc_qp_stats *out)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, pump_refuse(p, mrc_qp_stats(p->engine, qpn, out), "queue pair"));
}

uint64_t mrc_pump_drops(struct mrc_pump *p, int reason)
{
    if (reason < 0 || reason >= MRC_DROP_COUNT || pump_enter(p) < 0)
        return UINT64_MAX;
    const uint64_t n = mrc_engine_drops(p->engine, (enum mrc_drop)reason);
    (void)pump_leave(p, 0);
    return n;
}
