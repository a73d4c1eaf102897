/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets on their way: what the links do to them, what a third host adds, and their arrival. */
#include "world_int.h"

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

void world_address(uint8_t out[16], uint32_t host)
{
    memset(out, 0, 16);
    out[0] = 0xFD;
    out[15] = (uint8_t)(host + 1);
}

struct world_packet *world_packet_new(struct world *w)
{
    struct world_packet *p = w->free;
    if (p != NULL)
        w->free = p->next;
    else
        p = world_alloc(w, sizeof(*p));
    w->packets_live++;
    p->injected = false;
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
    p->id = ++w->packet_id;
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

/* Lost packets by what may be lost: a link that loses one kind only is a way of its own to fail. */
static void world_cover_hop(struct world *w, const struct world_hop *hop, bool passed)
{
    const struct sim_link *const l = world_link(w, hop->from, hop->to, hop->path);
    if (passed || l->cfg.fault_kinds == 0)
        return;
    const bool data = (l->cfg.fault_kinds & WORLD_KIND_DATA) != 0;
    world_seen(w, data ? WORLD_C_LOST_DATA : WORLD_C_LOST_CONTROL);
}

/* A switch cut it: the lengths still say the old size (A.13.6). */
void world_trim(struct world *w, struct mrc_rx_pkt *rx, uint32_t keep_bytes)
{
    const bool lasthop = w->cfg.trim_dscp == 0 ? (w->packet_id & 1) != 0
                                               : w->cfg.trim_dscp == WORLD_DSCP_TRIMMED_LASTHOP;
    const uint32_t dscp = lasthop ? WORLD_DSCP_TRIMMED_LASTHOP : WORLD_DSCP_TRIMMED;
    const uint32_t keep = keep_bytes - (MRC_NOMINAL_HDR + 8);
    rx->len = rx->len < keep ? rx->len : keep;
    rx->tclass = (uint8_t)(dscp << 2 | (rx->tclass & 3));
    world_seen(w, lasthop ? WORLD_C_TRIMMED_LASTHOP : WORLD_C_TRIMMED);
}

void world_transmit(struct world *w, uint32_t from, const struct mrc_tx_pkt *tx)
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
    const uint32_t kind = world_check_sent(w, from, to, path, &p->rx, &pkt, &p->flow);
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
    world_log_sent(w, from, to, path, p);
    world_cover_hop(w, &hop, n != 0 || !pass);
    if (w->hostile != NULL)
        world_hostile_see(w, p);
    world_mix(w, w->now ^ (uint64_t)from << 56 ^ (uint64_t)path << 40 ^ (uint64_t)n << 60);
    world_mix(w, w->crc(0xFFFFFFFF, tx->hdr, tx->hdr_len));
    for (int i = 0; i < n; i++) {
        struct world_packet *q = p;
        if (i > 0) {
            q = world_packet_new(w);
            memcpy(q->bytes, p->bytes, p->rx.len);
            q->rx = p->rx;
            q->rx.bytes = q->bytes;
            q->to = to;
            q->flow = p->flow;
            q->id = p->id;
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

void world_inject(struct world *w, uint32_t to, const struct mrc_rx_pkt *rx, uint32_t as_flow,
                  mrc_ns at)
{
    struct world_packet *const p = world_packet_new(w);
    p->rx = *rx;
    p->rx.len = mrc_min32(rx->len, sizeof(p->bytes));
    memcpy(p->bytes, rx->bytes, p->rx.len);
    p->rx.bytes = p->bytes;
    p->to = to;
    p->flow = as_flow;
    p->injected = true;
    p->id = ++w->packet_id;
    world_port_describe(p, &(struct sim_packet){.len_bytes = MRC_NOMINAL_HDR + 8 + p->rx.len},
                        false);
    world_push(w, (struct world_event){.at = at, .packet = p});
}
