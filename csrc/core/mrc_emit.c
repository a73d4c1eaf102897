/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_emit.h"

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
    out->ev = entry->ev;
    out->lane = entry->lane;
    out->port = entry->port;
    out->tclass = tclass;
    out->train = 0;
    out->tail_len = (uint8_t)(pkt->pad + MRC_ICRC_LEN);
    memset(out->tail, 0, sizeof out->tail);

    const uint16_t sport = (uint16_t)entry->ev;
    const uint8_t *src = entry->addr != NULL ? entry->addr->src : peer->src;
    const uint8_t *dst = entry->addr != NULL ? entry->addr->dst : peer->dst;
    uint32_t reg = mrc_icrc6_begin(env->crc, src, dst, sport, peer->dport, mrc_tx_udp_len(out));
    reg = mrc_icrc_bth(env->crc, reg, out->hdr, out->hdr_len);
    if (pkt->payload_len > 0)
        reg = env->crc(reg, pkt->payload, pkt->payload_len);
    if (pkt->pad > 0)
        reg = env->crc(reg, out->tail, pkt->pad);
    mrc_icrc_end(reg, out->tail + pkt->pad);
}
