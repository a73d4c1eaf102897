/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports, wires, switches: a packet from one port to the next. */
#include "fab_int.h"

/* ---- a port ---- */

static bool net_strikes(struct fab_link *l, uint32_t ppm)
{
    return ppm != 0 && mrc_rand_below(&l->rand, 1000000) < ppm;
}

static uint64_t net_waiting(const struct fab_link *l)
{
    return l->port.waiting_bytes[SIM_DATA] + l->port.waiting_bytes[SIM_CONTROL] +
           l->port.waiting_bytes[SIM_TRIMMED];
}

static void net_gone(struct fab *f, const struct fab_link *l, uint32_t bytes)
{
    if (l->tier == FAB_HOST_UP)
        fab_host_room(f, l->from, bytes);
}

void fab_link_enter(struct fab *f, uint32_t link, struct fab_packet *p)
{
    struct fab_link *const l = &f->link[link];
    const bool lasthop = l->tier == FAB_HOST_DOWN;
    if (fab_link_is_down(l) || (l->mtu != 0 && p->ip_bytes > l->mtu)) {
        l->refused++;
        fab_packet_drop(f, p, fab_link_is_down(l) ? FAB_DROP_DOWN : FAB_DROP_MTU);
        return;
    }
    if (p->item.trimmable && net_strikes(l, l->trim_ppm)) {
        fab_packet_cut(f, p, lasthop);
        l->port.stats.trimmed++;
    }
    const bool idle = l->port.sending == NULL;
    const enum sim_verdict verdict = sim_queue_push(&l->port, &p->item, f->now);
    if (verdict == SIM_DROPPED) {
        fab_packet_drop(f, p, FAB_DROP_QUEUE);
        return;
    }
    if (verdict == SIM_CUT)
        fab_packet_cut(f, p, lasthop);
    if (l->tier == FAB_HOST_UP)
        f->host[l->from].waiting_bytes += p->item.len_bytes;
    l->peak_bytes = mrc_max64(l->peak_bytes, net_waiting(l));
    if (idle)
        fab_heap_set(&f->heap, fab_source_tx(link), sim_queue_deadline(&l->port));
}

/* Everything the port holds is gone, what it is sending included. */
void fab_link_flush(struct fab *f, uint32_t link, enum fab_drop why)
{
    struct fab_link *const l = &f->link[link];
    struct sim_item *item;
    while ((item = sim_queue_flush(&l->port)) != NULL) {
        const uint32_t bytes = item->len_bytes;
        l->refused++;
        fab_packet_drop(f, (struct fab_packet *)(void *)item, why);
        net_gone(f, l, bytes);
    }
    fab_heap_set(&f->heap, fab_source_tx(link), MRC_NEVER);
}

/* ---- the wire ---- */

/* By time of arrival; without jitter that is at the end. */
static void net_launch(struct fab *f, uint32_t link, struct fab_packet *p)
{
    struct fab_link *const l = &f->link[link];
    struct fab_packet *before = l->tail;
    while (before != NULL && before->at > p->at)
        before = before->prev;
    p->prev = before;
    p->next = before != NULL ? before->next : l->head;
    if (p->next != NULL)
        p->next->prev = p;
    else
        l->tail = p;
    if (before != NULL)
        before->next = p;
    else
        l->head = p;
    if (l->head == p)
        fab_heap_set(&f->heap, fab_source_arrive(f, link), p->at);
}

static struct fab_packet *net_copy(struct fab *f, const struct fab_packet *p)
{
    struct fab_packet *const q = fab_packet_new(f);
    if (q == NULL) /* the copy is not made, which nobody misses */
        return NULL;
    *q = *p;
    f->totals.copied++;
    return q;
}

static void net_mark(struct fab_link *l, struct fab_packet *p)
{
    if (p->item.ect && net_strikes(l, l->mark_ppm)) {
        p->item.ce = true;
        l->port.stats.marked++;
    }
    if (p->item.ce)
        p->heads[1] |= 3 << 4; /* outer; the inner header is the hosts' business (RFC 6040) */
}

static void net_onto_wire(struct fab *f, uint32_t link, struct fab_packet *p)
{
    struct fab_link *const l = &f->link[link];
    struct sim_delivery d[SIM_COPIES_MAX];
    if (l->plain) {
        p->at = f->now + l->wire.cfg.delay_ns;
        net_launch(f, link, p);
        return;
    }
    const struct sim_packet sp = {.len_bytes = p->item.len_bytes, .kind = 1};
    const bool cut = l->wire.cut;
    const int n = sim_link_submit(&l->wire, &sp, f->now, d);
    if (n == 0) {
        fab_packet_drop(f, p, cut ? FAB_DROP_CUT : FAB_DROP_LOSS);
        return;
    }
    struct fab_packet *const twin = n > 1 ? net_copy(f, p) : NULL;
    p->at = d[0].at;
    p->corrupt = d[0].corrupt != 0 ? d[0].corrupt : p->corrupt;
    net_launch(f, link, p);
    if (twin == NULL)
        return;
    twin->at = d[1].at;
    twin->corrupt = d[1].corrupt != 0 ? d[1].corrupt : twin->corrupt;
    net_launch(f, link, twin);
}

static void net_sent(struct fab *f, uint32_t link)
{
    struct fab_link *const l = &f->link[link];
    struct sim_item *const item = sim_queue_pop(&l->port, f->now);
    MRC_ASSERT(item != NULL);
    fab_heap_set(&f->heap, fab_source_tx(link), sim_queue_deadline(&l->port));
    struct fab_packet *const p = (struct fab_packet *)(void *)item;
    const uint32_t bytes = item->len_bytes;
    f->totals.hops++;
    net_mark(l, p);
    net_onto_wire(f, link, p);
    net_gone(f, l, bytes);
}

/* ---- a switch ---- */

static void net_forward(struct fab *f, uint32_t sw, struct fab_packet *p)
{
    const struct fab_switch *const s = &f->sw[sw];
    uint8_t *const ip = p->heads;
    if (s->stopped) {
        fab_packet_drop(f, p, FAB_DROP_STOPPED);
        return;
    }
    if (ip[7] <= 1) {
        fab_packet_drop(f, p, FAB_DROP_HOP_LIMIT);
        return;
    }
    ip[7]--;
    const uint32_t link =
        s->no_routes ? FAB_NONE : fab_route_find(&s->routes, fab_un_shift(ip + 24, s->usid));
    if (link == FAB_NONE)
        fab_packet_drop(f, p, FAB_DROP_NO_ROUTE);
    else
        fab_link_enter(f, link, p);
}

static void net_arrived(struct fab *f, uint32_t link)
{
    struct fab_link *const l = &f->link[link];
    struct fab_packet *const p = l->head;
    MRC_ASSERT(p != NULL && p->at <= f->now);
    l->head = p->next;
    if (l->head != NULL)
        l->head->prev = NULL;
    else
        l->tail = NULL;
    fab_heap_set(&f->heap, fab_source_arrive(f, link), l->head != NULL ? l->head->at : MRC_NEVER);
    if (l->tier == FAB_HOST_DOWN)
        fab_host_arrive(f, l->to, l->plane, p);
    else
        net_forward(f, l->to, p);
}

void fab_link_event(struct fab *f, uint32_t source)
{
    if (source < f->links)
        net_sent(f, source);
    else
        net_arrived(f, source - f->links);
}
