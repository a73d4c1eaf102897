/* SPDX-License-Identifier: BSD-2-Clause */
/* Path tables of a pump: their lanes, and whether packets fit through them. */
#include "mrc_clock.h"
#include "mrc_pump_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- path tables ---- */

static void pump_lanes_put(struct mrc_pump *p, const struct mrc_path_entry_cfg *e, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        mrc_io_lane_put(p->ports[e[i].port].io, e[i].lane);
}

/* From where to where the packets of a lane go: as its plane has it, or the peer. */
static void pump_lane_ends(struct mrc_lane_key *key, const struct mrc_path_cfg *cfg, uint8_t plane)
{
    for (uint32_t k = 0; k < cfg->addr_count; k++) {
        if (cfg->addrs[k].plane == plane) {
            memcpy(key->src, cfg->addrs[k].src, sizeof key->src);
            memcpy(key->dst, cfg->addrs[k].dst, sizeof key->dst);
        }
    }
}

/* One entry and one lane for each lanes[i]; all or nothing. */
static int pump_lanes_get(struct mrc_pump *p, uint32_t port, const struct mrc_peer_addr *peer,
                          const uint8_t src[16], const struct mrc_path_cfg *cfg,
                          const struct mrc_lane_cfg *lanes, struct mrc_path_entry_cfg *out)
{
    struct mrc_io *io = p->ports[port].io;
    for (uint32_t i = 0; i < cfg->count; i++) {
        struct mrc_lane_key key = {.scope_id = peer->scope_id != 0 ? peer->scope_id : io->scope_id,
                                   .ev = lanes[i].ev,
                                   .dport = peer->dport != 0 ? peer->dport : MRC_UDP_PORT,
                                   .tmpl_len = lanes[i].tmpl_len};
        memcpy(key.src, src, sizeof key.src);
        memcpy(key.dst, peer->dst, sizeof key.dst);
        pump_lane_ends(&key, cfg, lanes[i].plane);
        int64_t lane = MRC_ERR_INVAL;
        if (key.tmpl_len <= sizeof key.tmpl) {
            memcpy(key.tmpl, lanes[i].tmpl, key.tmpl_len);
            lane = mrc_io_lane_get(io, &key);
        } else {
            snprintf(p->error, sizeof p->error, "EV 0x%08x: outer header of %u bytes, at most %zu",
                     (unsigned)key.ev, (unsigned)key.tmpl_len, sizeof key.tmpl);
        }
        if (lane < 0) {
            pump_lanes_put(p, out, i);
            return (int)lane;
        }
        out[i] = (struct mrc_path_entry_cfg){.ev = lanes[i].ev,
                                             .plane = lanes[i].plane,
                                             .port = (uint8_t)port,
                                             .lane = (uint32_t)lane,
                                             .backup = lanes[i].backup != 0};
    }
    return MRC_OK;
}

/* The table over lanes that are open. */
static int pump_table(struct mrc_pump *p, const struct mrc_path_cfg *cfg,
                      const struct mrc_path_entry_cfg *entries, size_t size)
{
    void *mem = pump_alloc(p, size);
    if (mem == NULL)
        return -(1000 + ENOMEM);
    int id = MRC_ERR_INVAL;
    struct mrc_path_table *t = mrc_path_init(mem, cfg, entries, mrc_clock_now());
    if (t == NULL)
        snprintf(p->error, sizeof p->error,
                 "path table: an EV or the addresses of a plane occur twice, a plane is outside 1 "
                 "to %d, an address is ::, or all are backups",
                 (int)MRC_PLANE_MAX);
    else
        id = pump_refuse(p, mrc_path_attach(p->engine, t), "path table");
    if (id < 0)
        pump_free(p, mem);
    return id;
}

void pump_local_planes(struct mrc_pump *p, uint32_t path)
{
    struct mrc_ep_planes now = {.remote_up = MRC_PLANES_ALL};
    (void)mrc_path_planes(p->engine, path, &now);
    (void)mrc_path_planes_set(p->engine, path, p->local_up, now.remote_up);
}

/* Where the table leads, for endpoint operations; nowhere when the peer is ::. */
static void pump_lead(struct mrc_pump *p, uint32_t port, const struct mrc_peer_addr *peer,
                      const uint8_t src[16], uint32_t path)
{
    struct mrc_ep_addr to = {.dport = peer->dport != 0 ? peer->dport : MRC_UDP_PORT,
                             .own_port = p->ports[port].io->stats.udp_port};
    memcpy(to.src, src, sizeof to.src);
    memcpy(to.dst, peer->dst, sizeof to.dst);
    (void)mrc_path_lead(p->engine, path, &to);
    if (p->local_up != MRC_PLANES_ALL)
        pump_local_planes(p, path);
}

/* Answers to what is sent from this address must come to the port, too. */
static int pump_plane_heard(struct mrc_pump *p, uint32_t port, const struct mrc_plane_addr *a)
{
    struct mrc_peer_addr peer = {0};
    uint8_t src[16];
    memcpy(peer.src, a->src, sizeof peer.src);
    memcpy(peer.dst, a->dst, sizeof peer.dst);
    return mrc_io_source(p->ports[port].io, &peer, src);
}

static int pump_path_create(struct mrc_pump *p, uint32_t port, const struct mrc_peer_addr *peer,
                            const struct mrc_path_cfg *cfg, const struct mrc_lane_cfg *lanes,
                            uint8_t src[16])
{
    if (port >= p->port_count)
        return pump_refuse(p, MRC_ERR_NOENT, "port");
    if (p->path_count == p->cfg.path_max)
        return pump_refuse(p, MRC_ERR_FULL, "path table");
    const size_t size = mrc_path_size(cfg);
    if (size == 0)
        return pump_refuse(p, MRC_ERR_INVAL, "path table");
    int err = mrc_io_source(p->ports[port].io, peer, src);
    for (uint32_t k = 0; err >= 0 && k < cfg->addr_count; k++)
        err = pump_plane_heard(p, port, &cfg->addrs[k]);
    if (err < 0)
        return err;
    struct mrc_path_entry_cfg *entries = calloc(cfg->count, sizeof *entries);
    if (entries == NULL)
        return -(1000 + ENOMEM);
    err = pump_lanes_get(p, port, peer, src, cfg, lanes, entries);
    if (err == MRC_OK) {
        err = pump_table(p, cfg, entries, size);
        if (err < 0) {
            pump_lanes_put(p, entries, cfg->count);
        } else {
            p->paths[p->path_count++] = (uint32_t)err;
            pump_lead(p, port, peer, src, (uint32_t)err);
        }
    }
    free(entries);
    return err;
}

int mrc_pump_path_create(struct mrc_pump *p, uint32_t port, const struct mrc_peer_addr *peer,
                         const struct mrc_path_cfg *cfg, const struct mrc_lane_cfg *lanes,
                         uint8_t src_out[16])
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, pump_path_create(p, port, peer, cfg, lanes, src_out));
}

/* The longest header a data packet can have behind UDP: BTH, METH, TSETH, RETH, ImmDt; and iCRC. */
enum { PUMP_HEADERS = 12 + 4 + 4 + 16 + 4 + 4 };

int pump_path_fits(struct mrc_pump *p, uint32_t path, uint32_t path_mtu)
{
    const struct mrc_path_table *t = mrc_path_get(p->engine, path);
    for (uint16_t i = 0; t != NULL && i < mrc_path_count(t); i++) {
        const struct mrc_path_entry_cfg *e = mrc_path_entry(t, i);
        struct mrc_io *io = p->ports[e->port].io;
        const uint32_t room = io->ops->lane_room(io, e->lane);
        if (room < path_mtu + PUMP_HEADERS) {
            snprintf(p->error, sizeof p->error,
                     "EV 0x%08x: the route has room for %u bytes of a packet, path MTU %u with its "
                     "headers needs %u",
                     (unsigned)e->ev, (unsigned)room, (unsigned)path_mtu,
                     (unsigned)(path_mtu + PUMP_HEADERS));
            return MRC_ERR_INVAL;
        }
    }
    return MRC_OK;
}

struct mrc_path_table *pump_path(struct mrc_pump *p, uint32_t path)
{
    struct mrc_path_table *t = mrc_path_get(p->engine, path);
    if (t == NULL)
        pump_refuse(p, MRC_ERR_NOENT, "path table");
    return t;
}

int mrc_pump_path_destroy(struct mrc_pump *p, uint32_t path)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    struct mrc_path_table *t = pump_path(p, path);
    if (t == NULL)
        return pump_leave(p, MRC_ERR_NOENT);
    pump_collect_events(p);
    if (mrc_path_detach(p->engine, path) == NULL)
        return pump_leave(p, pump_refuse(p, MRC_ERR_BUSY, "path table"));
    for (uint16_t i = 0; i < mrc_path_count(t); i++)
        pump_lanes_put(p, mrc_path_entry(t, i), 1);
    for (uint32_t i = 0; i < p->path_count; i++) {
        if (p->paths[i] == path) {
            p->paths[i] = p->paths[--p->path_count];
            break;
        }
    }
    pump_free(p, t);
    return pump_leave(p, MRC_OK);
}

int mrc_pump_path_stats(struct mrc_pump *p, uint32_t path, struct mrc_path_stats *out, int max)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    const struct mrc_path_table *t = pump_path(p, path);
    if (t == NULL)
        return pump_leave(p, MRC_ERR_NOENT);
    int n = 0;
    for (; n < max && n < (int)mrc_path_count(t); n++)
        mrc_path_stats(t, (uint16_t)n, &out[n]);
    return pump_leave(p, n);
}

int mrc_pump_path_rtt_anew(struct mrc_pump *p, uint32_t path)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    struct mrc_path_table *t = pump_path(p, path);
    if (t == NULL)
        return pump_leave(p, MRC_ERR_NOENT);
    mrc_path_rtt_anew(t);
    return pump_leave(p, MRC_OK);
}

int mrc_pump_path_set_state(struct mrc_pump *p, uint32_t path, uint32_t ev, int state)
{
    int err = pump_enter(p);
    if (err < 0)
        return err;
    struct mrc_path_table *t = pump_path(p, path);
    if (t == NULL)
        return pump_leave(p, MRC_ERR_NOENT);
    const uint16_t i = mrc_path_find(t, ev);
    if (i == MRC_EV_NONE)
        return pump_leave(p, pump_refuse(p, MRC_ERR_NOENT, "EV"));
    if (state != MRC_EV_GOOD && state != MRC_EV_DENIED)
        return pump_leave(p, pump_refuse(p, MRC_ERR_INVAL, "EV state"));
    err = mrc_path_set_state(t, i, (enum mrc_ev_state)state, mrc_clock_now());
    pump_kick(p);
    return pump_leave(p, pump_refuse(p, err, "EV state"));
}

/* The lane beside that of entry i: all but EV and outer header as there. */
static int64_t pump_lane_like(struct mrc_pump *p, const struct mrc_path_entry_cfg *entry,
                              const struct mrc_lane_cfg *cfg)
{
    struct mrc_io *io = p->ports[entry->port].io;
    struct mrc_lane_key key = io->lanes[entry->lane].key;
    if (cfg->tmpl_len > sizeof key.tmpl)
        return pump_refuse(p, MRC_ERR_INVAL, "outer header");
    key.ev = cfg->ev;
    key.tmpl_len = cfg->tmpl_len;
    memset(key.tmpl, 0, sizeof key.tmpl);
    memcpy(key.tmpl, cfg->tmpl, cfg->tmpl_len);
    return mrc_io_lane_get(io, &key);
}

static int pump_path_replace(struct mrc_pump *p, struct mrc_path_table *t, uint32_t ev,
                             const struct mrc_lane_cfg *cfg, int state)
{
    const uint16_t i = mrc_path_find(t, ev);
    if (i == MRC_EV_NONE)
        return pump_refuse(p, MRC_ERR_NOENT, "EV");
    const struct mrc_path_entry_cfg old = *mrc_path_entry(t, i);
    const int64_t lane = pump_lane_like(p, &old, cfg);
    if (lane < 0)
        return (int)lane;
    struct mrc_path_entry_cfg to = old;
    to.ev = cfg->ev;
    to.plane = cfg->plane;
    to.lane = (uint32_t)lane;
    const int err = mrc_path_replace(t, i, &to, (enum mrc_ev_state)state, mrc_clock_now());
    pump_lanes_put(p, err == MRC_OK ? &old : &to, 1);
    return pump_refuse(p, err, "EV to replace");
}

int mrc_pump_path_replace(struct mrc_pump *p, uint32_t path, uint32_t ev,
                          const struct mrc_lane_cfg *lane, int state)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    struct mrc_path_table *t = pump_path(p, path);
    if (t == NULL)
        return pump_leave(p, MRC_ERR_NOENT);
    const int result = pump_path_replace(p, t, ev, lane, state);
    pump_kick(p);
    return pump_leave(p, result);
}

int mrc_pump_path_set_events(struct mrc_pump *p, uint32_t path, uint8_t mask)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    struct mrc_path_table *t = pump_path(p, path);
    if (t == NULL)
        return pump_leave(p, MRC_ERR_NOENT);
    if (mask > MRC_EV_EVENTS_NONE)
        return pump_leave(p, pump_refuse(p, MRC_ERR_INVAL, "event mask"));
    mrc_path_set_events(t, mask);
    return pump_leave(p, MRC_OK);
}

int mrc_pump_path_set_planes(struct mrc_pump *p, uint32_t path, uint32_t local_up,
                             uint32_t remote_up)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    const int result = mrc_path_planes_set(p->engine, path, local_up, remote_up);
    pump_kick(p);
    return pump_leave(p, pump_refuse(p, result, "path table"));
}

int mrc_pump_path_planes(struct mrc_pump *p, uint32_t path, struct mrc_ep_planes *out)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, pump_refuse(p, mrc_path_planes(p->engine, path, out), "path table"));
}
