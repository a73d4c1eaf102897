/* SPDX-License-Identifier: BSD-2-Clause */
/* A third host on the network. It sees every packet and answers some with packets of its own: from
 * its own address, copies of what it saw, or forgeries in a host's name with an iCRC that is right.
 * It does not know the memory keys of others, so what it forges may cost packets or connections,
 * but never a byte of memory. */
#include "world_int.h"

enum {
    HOSTILE_KEPT = 64,
    HOSTILE_STRANGER_HOST = 200, /* an address that no table leads to */
    HOSTILE_STORM = 24,          /* packets of one outbreak at most */
    HOSTILE_NACK_REASON = MRC_BTH_LEN + 2,
    HOSTILE_HEADER_PSN = MRC_BTH_LEN + 13, /* of SETH and NETH */
};

struct hostile_copy {
    struct mrc_rx_pkt rx;
    uint32_t to;
    uint32_t flow;
    uint8_t bytes[MRC_HDR_MAX + MRC_MTU_MAX + 8];
};

struct world_hostile {
    struct mrc_rand rand;
    uint32_t kinds;
    uint32_t ppm;
    mrc_ns end;
    uint32_t kept;
    struct hostile_copy copy[HOSTILE_KEPT];
};

void world_hostile(struct world *w, uint32_t kinds, uint32_t ppm, mrc_ns end)
{
    w->hostile = world_alloc(w, sizeof(*w->hostile));
    w->hostile->kinds = kinds;
    w->hostile->ppm = ppm;
    w->hostile->end = end;
    world_log_note(w, "hostile", kinds, ppm, 0);
    mrc_rand_seed(&w->hostile->rand, mrc_mix64(w->cfg.seed ^ 0x0E17));
}

static uint32_t hostile_below(struct world_hostile *h, uint32_t n)
{
    return mrc_rand_below(&h->rand, n);
}

/* The iCRC that these bytes and addresses should have. */
static void hostile_seal(struct world *w, struct mrc_rx_pkt *rx, uint8_t *bytes)
{
    if (rx->len < MRC_BTH_LEN + MRC_ICRC_LEN)
        return;
    const uint32_t reg =
        mrc_icrc6_begin(w->crc, rx->src, rx->dst, rx->sport, rx->dport, rx->udp_len);
    mrc_icrc_end(mrc_icrc_bth(w->crc, reg, bytes, rx->len - MRC_ICRC_LEN),
                 bytes + rx->len - MRC_ICRC_LEN);
}

static void hostile_keep(struct world_hostile *h, const struct world_packet *p)
{
    struct hostile_copy *const c = &h->copy[h->kept++ % HOSTILE_KEPT];
    c->rx = p->rx;
    c->to = p->to;
    c->flow = p->flow;
    memcpy(c->bytes, p->bytes, p->rx.len);
}

static struct hostile_copy *hostile_pick(struct world_hostile *h)
{
    return &h->copy[hostile_below(h, mrc_min32(h->kept, HOSTILE_KEPT))];
}

/* The flow's QPs get what is not theirs. */
static void hostile_noise(struct world *w, uint32_t flow)
{
    if (flow == WORLD_NO_FLOW)
        return;
    w->flow[flow].noise = true;
    w->flow[w->flow[flow].reverse].noise = true;
}

static void hostile_replay(struct world *w, const struct hostile_copy *c)
{
    struct mrc_rx_pkt rx = c->rx;
    rx.bytes = c->bytes;
    world_seen(w, WORLD_C_REPLAYED);
    hostile_noise(w, c->flow);
    world_inject(w, c->to, &rx, c->flow,
                 w->now + 1 + mrc_rand_next(&w->hostile->rand) % (5 * MRC_MSEC));
}

/* What another host sends in nobody's name: may not move anything. */
static void hostile_stranger(struct world *w, struct hostile_copy *c)
{
    struct mrc_rx_pkt rx = c->rx;
    uint8_t bytes[sizeof(c->bytes)];
    memcpy(bytes, c->bytes, rx.len);
    rx.bytes = bytes;
    world_address(rx.src, HOSTILE_STRANGER_HOST);
    hostile_seal(w, &rx, bytes);
    world_seen(w, WORLD_C_STRANGER);
    world_inject(w, c->to, &rx, WORLD_NO_FLOW, w->now + 1);
}

/* Header bytes at random, lengths that lie, cut anywhere. True: what it says is as it was. */
static bool hostile_garble(struct world_hostile *h, struct mrc_rx_pkt *rx, uint8_t *b)
{
    const uint32_t how = hostile_below(h, 6);
    switch (how) {
    case 0: b[0] = (uint8_t)(0xE0 | hostile_below(h, 32)); break; /* no opcode of ours */
    case 1: b[1] ^= (uint8_t)(1u << hostile_below(h, 8)); break;  /* se, m, pad, tver */
    case 2: rx->len = hostile_below(h, rx->len); break;
    case 3: rx->udp_len ^= (uint16_t)(1 + hostile_below(h, 0xFFFF)); break;
    case 4: mrc_put24(b + 5, (uint32_t)mrc_rand_next(&h->rand) & 0xFFFFFF); break; /* dqp */
    default: /* trimmed, anywhere */
        rx->tclass = (uint8_t)(WORLD_DSCP_TRIMMED << 2);
        rx->len = hostile_below(h, rx->len);
        break;
    }
    return how == 1;
}

static bool hostile_is_data(const uint8_t *b)
{
    return b[0] >= MRC_OP_WRITE_FIRST && b[0] <= MRC_OP_WRITE_ONLY_IMM;
}

/* Numbers no honest packet has: cumulative PSNs beyond what was sent, NACKs of anything. */
static void hostile_lie(struct world_hostile *h, uint8_t *b, uint32_t far)
{
    static const uint8_t reasons[] = {MRC_NACK_TRIMMED, MRC_NACK_NO_BITMAP, MRC_NACK_PSN_OOR_WINDOW,
                                      0x77};
    const uint32_t near = (mrc_get24(b + 9) + hostile_below(h, 400) - 200) & 0xFFFFFF;
    if (b[0] == MRC_OP_SACK || b[0] == MRC_OP_ACK)
        mrc_put24(b + 9, far);
    if (b[0] == MRC_OP_SACK)
        mrc_put24(b + HOSTILE_HEADER_PSN, far);
    if (b[0] == MRC_OP_NACK) {
        b[HOSTILE_NACK_REASON] = reasons[hostile_below(h, 4)];
        mrc_put24(b + 9, near);
        mrc_put24(b + HOSTILE_HEADER_PSN, near);
    }
}

/* Forged data has a key that opens nothing. Where a key is looked at, that ends the connection, so
 * nearly all of it has a PSN so far away that none is. */
static void hostile_data(struct world *w, const struct hostile_copy *c, uint8_t *b, uint32_t far)
{
    for (uint32_t k = MRC_BTH_LEN; k < 32; k++)
        b[k] ^= 0x5A;
    if (hostile_below(w->hostile, 100) != 0) {
        mrc_put24(b + 9, far);
    } else if (c->flow != WORLD_NO_FLOW) {
        w->flow[c->flow].may_fail = true;
        w->flow[w->flow[c->flow].reverse].may_fail = true;
    }
}

static void hostile_forge(struct world *w, struct hostile_copy *c)
{
    struct world_hostile *const h = w->hostile;
    const uint32_t n = hostile_below(h, 4) == 0 ? 1 + hostile_below(h, HOSTILE_STORM) : 1;
    hostile_noise(w, c->flow);
    if (c->rx.len < MRC_BTH_LEN + MRC_ICRC_LEN || c->bytes[0] == MRC_OP_EP_REQUEST)
        return; /* a forged port status is the peer's word: F.1 has nothing against it */
    for (uint32_t i = 0; i < n; i++) {
        struct mrc_rx_pkt rx = c->rx;
        uint8_t bytes[sizeof(c->bytes)];
        memcpy(bytes, c->bytes, rx.len);
        rx.bytes = bytes;
        const uint32_t far =
            (mrc_get24(bytes + 9) + 0x10000 + hostile_below(h, 0x600000)) & 0xFFFFFF;
        if (hostile_is_data(bytes))
            hostile_data(w, c, bytes, far);
        bool told = false;
        if (hostile_below(h, 2) == 0)
            hostile_lie(h, bytes, far);
        else
            told = hostile_garble(h, &rx, bytes) && !hostile_is_data(bytes);
        hostile_seal(w, &rx, bytes);
        world_seen(w, WORLD_C_FORGED);
        world_inject(w, c->to, &rx, told ? c->flow : WORLD_NO_FLOW, w->now + 1 + i);
    }
}

void world_hostile_see(struct world *w, const struct world_packet *p)
{
    struct world_hostile *const h = w->hostile;
    if (w->now >= h->end)
        return;
    hostile_keep(h, p);
    if (hostile_below(h, 1000000) >= h->ppm)
        return;
    struct hostile_copy *const c = hostile_pick(h);
    const uint32_t what = 1u << hostile_below(h, 3);
    if ((what & h->kinds) == 0)
        return;
    if (what == WORLD_STRANGER)
        hostile_stranger(w, c);
    else if (what == WORLD_REPLAY)
        hostile_replay(w, c);
    else
        hostile_forge(w, c);
}
