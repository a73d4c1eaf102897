/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets as bytes: outer IPv6, inner IPv6, UDP, BTH to iCRC (MRC A.1, A.2, A.12, A.13). */
#include "fab_int.h"

enum {
    PKT_INNER = FAB_IPV6,
    PKT_UDP = 2 * FAB_IPV6,
    PKT_HOP_LIMIT = 64, /* A.2 */
    PKT_NEXT_IPV6 = 41,
    PKT_NEXT_UDP = 17,
};

/* ---- the pool ---- */

struct fab_packet *fab_packet_new(struct fab *f)
{
    struct fab_packet *const p = f->free;
    if (p == NULL)
        return NULL;
    f->free = p->next;
    f->totals.in_flight++;
    return p;
}

void fab_packet_free(struct fab *f, struct fab_packet *p)
{
    p->next = f->free;
    f->free = p;
    f->totals.in_flight--;
}

void fab_packet_drop(struct fab *f, struct fab_packet *p, enum fab_drop why)
{
    f->totals.dropped[why]++;
    fab_mix(f, f->now ^ (uint64_t)why << 56);
    fab_packet_free(f, p);
}

/* ---- headers ---- */

static void pkt_ipv6(uint8_t *ip, uint8_t tclass, uint32_t label, uint32_t payload, uint8_t next)
{
    mrc_put32(ip, 6u << 28 | (uint32_t)tclass << 20 | label);
    mrc_put16(ip + 4, (uint16_t)payload);
    ip[6] = next;
    ip[7] = PKT_HOP_LIMIT;
}

static uint8_t pkt_tclass(const uint8_t *ip) { return (uint8_t)(mrc_get16(ip) >> 4); }

static void pkt_set_tclass(uint8_t *ip, uint8_t tclass)
{
    mrc_put16(ip, (uint16_t)((mrc_get16(ip) & 0xF00F) | tclass << 4));
}

static void pkt_describe(const struct fab *f, struct fab_packet *p)
{
    const uint8_t tclass = pkt_tclass(p->heads);
    const uint8_t dscp = tclass >> 2;
    p->item = (struct sim_item){
        .len_bytes = p->ip_bytes + f->cfg.frame_bytes,
        .cls = (uint8_t)(dscp == FAB_DSCP_CONTROL ? SIM_CONTROL : SIM_DATA),
        .ect = (tclass & 3) != 0,
        .trimmable = f->cfg.trim_bytes != 0 && p->ip_bytes > f->cfg.trim_bytes &&
                     (dscp == FAB_DSCP_DATA || dscp == FAB_DSCP_RETX),
    };
}

void fab_packet_fill(struct fab *f, struct fab_packet *p, uint32_t from, uint32_t to,
                     const struct mrc_tx_pkt *tx)
{
    const uint32_t udp_len = mrc_tx_udp_len(tx);
    const uint32_t label = tx->ev >> 16; /* A.12 */
    uint8_t *const h = p->heads;
    pkt_ipv6(h, tx->tclass, label, FAB_IPV6 + udp_len, PKT_NEXT_IPV6); /* A.13.1: copied */
    fab_inner_address(h + 8, from);
    mrc_put16(h + 8 + 2, (uint16_t)(tx->port + 1)); /* the host's address of that plane */
    fab_carrier(&f->cfg, h + 24, from, to, tx->ev);
    pkt_ipv6(h + PKT_INNER, tx->tclass, label, udp_len, PKT_NEXT_UDP);
    fab_inner_address(h + PKT_INNER + 8, from);
    fab_inner_address(h + PKT_INNER + 24, to);
    mrc_put16(h + PKT_UDP, (uint16_t)tx->ev);
    mrc_put16(h + PKT_UDP + 2, MRC_UDP_PORT);
    mrc_put16(h + PKT_UDP + 4, (uint16_t)udp_len);
    mrc_put16(h + PKT_UDP + 6, 0); /* A.13.4 */
    memcpy(p->hdr, tx->hdr, sizeof p->hdr);
    memcpy(p->tail, tx->tail, sizeof p->tail);
    p->hdr_len = tx->hdr_len;
    p->tail_len = tx->tail_len;
    p->payload = tx->payload;
    p->payload_len = tx->payload_len;
    p->ip_bytes = 2 * FAB_IPV6 + udp_len;
    p->corrupt = 0;
    pkt_describe(f, p);
}

/* A.13.6. A switch sees the outer header; a software one mends the inner lengths too, since a
 * host's kernel would drop what is shorter than it says. */
void fab_packet_cut(const struct fab *f, struct fab_packet *p, bool lasthop)
{
    const uint8_t dscp = lasthop ? FAB_DSCP_LASTHOP : FAB_DSCP_TRIMMED;
    uint8_t *const h = p->heads;
    pkt_set_tclass(h, (uint8_t)(dscp << 2 | (pkt_tclass(h) & 3)));
    p->ip_bytes = f->cfg.trim_bytes;
    p->item.cls = SIM_TRIMMED;
    p->item.len_bytes = p->ip_bytes + f->cfg.frame_bytes;
    p->item.trimmable = false;
    if (f->cfg.trim_keeps_lengths != 0)
        return;
    mrc_put16(h + 4, (uint16_t)(p->ip_bytes - FAB_IPV6));
    mrc_put16(h + PKT_INNER + 4, (uint16_t)(p->ip_bytes - 2 * FAB_IPV6));
    mrc_put16(h + PKT_UDP + 4, (uint16_t)(p->ip_bytes - 2 * FAB_IPV6));
}

/* ---- at the receiver ---- */

/* BTH to the end, as much as is there. The payload is copied when somebody looks at it. */
static uint8_t *pkt_assemble(struct fab *f, const struct fab_packet *p, uint32_t len)
{
    uint8_t *const bytes = f->rx + MRC_HDR_MAX - p->hdr_len;
    memcpy(bytes, p->hdr, p->hdr_len);
    if (p->payload_len != 0 && (f->cfg.verify != 0 || f->cfg.icrc != 0))
        memcpy(f->rx + MRC_HDR_MAX, p->payload, p->payload_len);
    memcpy(f->rx + MRC_HDR_MAX + p->payload_len, p->tail, p->tail_len);
    if (p->corrupt == 0)
        return bytes;
    if (f->cfg.icrc != 0 || p->item.cls == SIM_TRIMMED)
        sim_corrupt(bytes, len, p->corrupt);
    else
        bytes[len - 1] ^= 1; /* nobody computes it, but it must not match */
    return bytes;
}

bool fab_packet_open(struct fab *f, const struct fab_packet *p, uint32_t host, uint32_t plane,
                     struct mrc_rx_pkt *out)
{
    const uint8_t *const h = p->heads;
    const uint16_t own = fab_usid(&f->cfg, FAB_ROLE_HOST, plane, host % f->cfg.hosts_per_t0);
    uint8_t want[16];
    fab_inner_address(want, host);
    if (mrc_get16(h + 28) != own || memcmp(h + PKT_INNER + 24, want, 16) != 0)
        return false;
    const uint8_t outer = pkt_tclass(h);
    const uint8_t dscp = outer >> 2;
    const uint32_t len = p->ip_bytes - FAB_HEADS;
    out->bytes = pkt_assemble(f, p, len);
    out->len = len;
    out->udp_len = mrc_get16(h + PKT_UDP + 4);
    out->sport = mrc_get16(h + PKT_UDP);
    out->dport = mrc_get16(h + PKT_UDP + 2);
    out->tclass = pkt_tclass(h + PKT_INNER);
    out->outer_ce = (outer & 3) == 3;                         /* RFC 6040 */
    if (dscp == FAB_DSCP_TRIMMED || dscp == FAB_DSCP_LASTHOP) /* no switch sees the inner class */
        out->tclass = (uint8_t)(dscp << 2 | (out->tclass & 3));
    out->flow_label = mrc_get32(h + PKT_INNER) & 0xFFFFF;
    memcpy(out->src, h + PKT_INNER + 8, 16);
    memcpy(out->dst, h + PKT_INNER + 24, 16);
    out->port = (uint8_t)plane;
    return true;
}
