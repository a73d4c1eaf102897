/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels, events of EVs and asynchronous ones, hints, device attributes (MRC C.1, C.2,
 * C.6). A channel is an eventfd that is readable exactly while it has an event; it is set right
 * when the pump is left, whatever call it was that made or took one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_pump_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool chan_due(const struct mrc_pump *p, uint32_t channel)
{
    return channel == 0 ? mrc_engine_async_any(p->engine) : mrc_cq_has_event(p->engine, channel);
}

void pump_signal(struct mrc_pump *p)
{
    for (uint32_t i = 0; i < p->channel_end; i++) {
        struct pump_channel *c = &p->channel[i];
        const bool due = c->open && chan_due(p, i);
        uint64_t count = 1;
        if (due == c->readable)
            continue;
        if (due ? write(c->fd, &count, sizeof count) > 0 : read(c->fd, &count, sizeof count) > 0)
            c->readable = due;
        p->thread.noted = p->thread.noted || due;
    }
}

void pump_close_channels(struct mrc_pump *p)
{
    for (uint32_t i = 0; i < p->channel_end; i++)
        if (p->channel[i].open)
            close(p->channel[i].fd);
}

static int chan_open(struct mrc_pump *p, uint32_t i)
{
    struct pump_channel *c = &p->channel[i];
    if (c->open)
        return MRC_OK;
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        const int err = errno;
        snprintf(p->error, sizeof p->error, "%s", strerror(err));
        return -(1000 + err);
    }
    const struct pump_channel fresh = {.fd = fd, .open = true};
    *c = fresh;
    if (i >= p->channel_end)
        p->channel_end = i + 1;
    return MRC_OK;
}

/* ---- channels ---- */

int mrc_pump_channel_create(struct mrc_pump *p)
{
    int err = pump_enter(p);
    if (err < 0)
        return err;
    for (uint32_t i = 1; i < PUMP_CHANNELS_MAX; i++) {
        if (p->channel[i].open)
            continue;
        err = chan_open(p, i);
        return pump_leave(p, err < 0 ? err : (int)i);
    }
    return pump_leave(p, pump_refuse(p, MRC_ERR_FULL, "completion channel"));
}

static struct pump_channel *chan_get(struct mrc_pump *p, uint32_t channel)
{
    return channel > 0 && channel < PUMP_CHANNELS_MAX && p->channel[channel].open
               ? &p->channel[channel]
               : NULL;
}

int mrc_pump_channel_destroy(struct mrc_pump *p, uint32_t channel)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    struct pump_channel *c = chan_get(p, channel);
    if (c == NULL)
        return pump_leave(p, pump_refuse(p, MRC_ERR_NOENT, "completion channel"));
    if (c->cqs != 0)
        return pump_leave(p, pump_refuse(p, MRC_ERR_BUSY, "completion channel"));
    close(c->fd);
    c->open = false;
    return pump_leave(p, MRC_OK);
}

int mrc_pump_channel_fd(struct mrc_pump *p, uint32_t channel)
{
    int err = pump_enter(p);
    if (err < 0)
        return err;
    if (channel == 0)
        err = chan_open(p, 0);
    else if (chan_get(p, channel) == NULL)
        err = pump_refuse(p, MRC_ERR_NOENT, "completion channel");
    return pump_leave(p, err < 0 ? err : p->channel[channel].fd);
}

int mrc_pump_cq_channel(struct mrc_pump *p, uint32_t cq, uint32_t channel)
{
    int err = pump_enter(p);
    if (err < 0)
        return err;
    struct pump_channel *c = chan_get(p, channel);
    err = c == NULL ? MRC_ERR_NOENT
          : cq < p->cfg.cq_max && p->cq_channel[cq] != 0
              ? MRC_ERR_BUSY
              : mrc_cq_set_channel(p->engine, cq, channel);
    if (err == MRC_OK) {
        p->cq_channel[cq] = (uint8_t)channel;
        c->cqs++;
    }
    return pump_leave(p, pump_refuse(p, err, "completion channel"));
}

void pump_cq_gone(struct mrc_pump *p, uint32_t cq)
{
    if (p->cq_channel[cq] != 0)
        p->channel[p->cq_channel[cq]].cqs--;
    p->cq_channel[cq] = 0;
}

int mrc_pump_cq_arm(struct mrc_pump *p, uint32_t cq, int solicited_only)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    const int result = mrc_cq_arm(p->engine, cq, solicited_only != 0);
    return pump_leave(p, pump_refuse(p, result, "completion queue"));
}

int mrc_pump_cq_event(struct mrc_pump *p, uint32_t channel)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, mrc_cq_next_event(p->engine, channel));
}

int mrc_pump_cq_ack(struct mrc_pump *p, uint32_t cq, uint32_t n)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    const int result = mrc_cq_ack_events(p->engine, cq, n);
    return pump_leave(p, pump_refuse(p, result, "completion events"));
}

/* ---- EV events ---- */

void pump_collect_events(struct mrc_pump *p)
{
    for (uint32_t i = 0; i < p->path_count; i++) {
        struct mrc_path_table *t = mrc_path_get(p->engine, p->paths[i]);
        while (p->event_tail - p->event_head < PUMP_EVENTS) {
            struct mrc_ev_event *e = &p->events[p->event_tail % PUMP_EVENTS];
            if (mrc_path_event_poll(t, e) == 0)
                break;
            e->table = p->paths[i];
            p->event_tail++;
        }
    }
}

int mrc_pump_events(struct mrc_pump *p, struct mrc_ev_event *out, int max)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    int n = 0;
    while (n < max) {
        if (p->event_head == p->event_tail)
            pump_collect_events(p);
        if (p->event_head == p->event_tail)
            break;
        out[n++] = p->events[p->event_head++ % PUMP_EVENTS];
    }
    return pump_leave(p, n);
}

int mrc_pump_path_events(struct mrc_pump *p, uint32_t path, struct mrc_ev_event *out, int max)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    struct mrc_path_table *t = pump_path(p, path);
    if (t == NULL)
        return pump_leave(p, MRC_ERR_NOENT);
    if (mrc_path_used(p->engine, path))
        return pump_leave(p, pump_refuse(p, MRC_ERR_BUSY, "path table"));
    int n = 0;
    uint32_t kept = p->event_head;
    for (uint32_t at = p->event_head; at != p->event_tail; at++) {
        const struct mrc_ev_event e = p->events[at % PUMP_EVENTS];
        if (e.table == path && n < max)
            out[n++] = e;
        else
            p->events[kept++ % PUMP_EVENTS] = e;
    }
    p->event_tail = kept;
    for (; n < max && mrc_path_event_poll(t, &out[n]) != 0; n++)
        out[n].table = path;
    if (n < max && mrc_path_event_rest(t, &out[n]) != 0)
        out[n++].table = path;
    return pump_leave(p, n);
}

/* ---- asynchronous events ---- */

int mrc_pump_async_take(struct mrc_pump *p, struct mrc_async_event *out)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, mrc_engine_async_take(p->engine, out));
}

int mrc_pump_async_ack(struct mrc_pump *p, uint32_t n)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, pump_refuse(p, mrc_engine_async_ack(p->engine, n), "asynchronous events"));
}

/* ---- hints, device ---- */

int mrc_pump_hint_create(struct mrc_pump *p, const struct mrc_qp_hint *hint)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, pump_refuse(p, mrc_hint_create(p->engine, hint), "queue pair hint"));
}

int mrc_pump_hint_query(struct mrc_pump *p, uint32_t id, struct mrc_qp_hint *out)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, pump_refuse(p, mrc_hint_query(p->engine, id, out), "queue pair hint"));
}

int mrc_pump_hint_modify(struct mrc_pump *p, uint32_t id, const struct mrc_qp_hint *hint)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, pump_refuse(p, mrc_hint_modify(p->engine, id, hint), "queue pair hint"));
}

int mrc_pump_hint_destroy(struct mrc_pump *p, uint32_t id)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, pump_refuse(p, mrc_hint_destroy(p->engine, id), "queue pair hint"));
}

int mrc_pump_query(struct mrc_pump *p, struct mrc_device_attr *out)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    mrc_engine_query(p->engine, out);
    return pump_leave(p, MRC_OK);
}
