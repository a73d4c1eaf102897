/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_emit.h"

uint32_t mrc_emit_by(const struct mrc_env *env, const struct mrc_peer *peer,
                     const struct mrc_path_entry_cfg *entry, struct mrc_tx_pkt *out)
{
    const uint16_t sport = (uint16_t)entry->ev;
    const uint8_t *src = entry->addr != NULL ? entry->addr->src : peer->src;
    const uint8_t *dst = entry->addr != NULL ? entry->addr->dst : peer->dst;
    out->ev = entry->ev;
    out->lane = entry->lane;
    out->port = entry->port;
    return mrc_icrc6_begin(env->crc, src, dst, sport, peer->dport, mrc_tx_udp_len(out));
}

void mrc_emit(const struct mrc_env *env, const struct mrc_peer *peer,
              const struct mrc_path_entry_cfg *entry, uint8_t tclass, struct mrc_pkt *pkt,
              struct mrc_tx_pkt *out)
{
    pkt->pad = (uint8_t)(-pkt->payload_len & 3u);
    pkt->p_key = 0xFFFF; /* H6 */
    pkt->dqp = peer->dest_qpn;
    pkt->spdcid = (uint16_t)peer->qpn; /* H5 */
    pkt->dpdcid = (uint16_t)peer->dest_qpn;
    if (env->se_bit7 && pkt->se) { /* H2: the sender may be told to use IBTA's position */
        pkt->se = false;
        pkt->m_bit = true;
    }
    out->hdr_len = (uint8_t)mrc_wire_encode(out->hdr, pkt);
    out->payload = pkt->payload;
    out->payload_len = pkt->payload_len;
    out->tclass = tclass;
    out->train = 0;
    out->tail_len = (uint8_t)(pkt->pad + MRC_ICRC_LEN);
    memset(out->tail, 0, sizeof out->tail);

    uint32_t reg = mrc_emit_by(env, peer, entry, out);
    reg = mrc_icrc_own(env->crc, reg, out->hdr, out->hdr_len);
    if (pkt->payload_len > 0)
        reg = env->crc(reg, pkt->payload, pkt->payload_len);
    if (pkt->pad > 0)
        reg = env->crc(reg, out->tail, pkt->pad);
    mrc_icrc_end(reg, out->tail + pkt->pad);
}

void mrc_emit_middle(const struct mrc_env *env, uint32_t reg, uint32_t psn, bool a, uint64_t va,
                     struct mrc_tx_pkt *out)
{
    mrc_wire_middle(out->hdr, psn, a, va);
    reg = mrc_icrc_own(env->crc, reg, out->hdr, out->hdr_len);
    mrc_icrc_end(env->crc(reg, out->payload, out->payload_len), out->tail);
}
