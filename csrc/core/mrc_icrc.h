/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant CRC (MRC A.13.3): CRC-32 of IEEE 802.3 over masked IP and UDP headers and everything
 * from BTH to the pad. PCLMUL or VPCLMULQDQ where the processor has it, a portable table
 * otherwise. */
#ifndef MRC_ICRC_H
#define MRC_ICRC_H

#include "mrc_base.h"

/* Advance a CRC register (not complemented) over n bytes. */
typedef uint32_t (*mrc_crc32_fn)(uint32_t reg, const uint8_t *p, size_t n);

/* Fastest implementation for this processor. Asks the processor each time: call once, keep it. */
mrc_crc32_fn mrc_crc32_select(void);
/* All that this processor can run, the portable one first, the fastest last; NULL: no more. */
mrc_crc32_fn mrc_crc32_nth(unsigned n);
uint32_t mrc_crc32_portable(uint32_t reg, const uint8_t *p, size_t n);

/* Register after eight 0xFF bytes, the masked IPv6 header and the masked UDP header. udp_len is the
 * UDP length field (8 + BTH..iCRC). */
uint32_t mrc_icrc6_begin(mrc_crc32_fn crc, const uint8_t src[16], const uint8_t dst[16],
                         uint16_t sport, uint16_t dport, uint16_t udp_len);

/* Register after the same for IPv4; ip points at the 20..60 byte header as on the wire. */
uint32_t mrc_icrc4_begin(mrc_crc32_fn crc, const uint8_t *ip, uint16_t sport, uint16_t dport,
                         uint16_t udp_len);

/* Continue over headers that start with BTH: byte 4 (var-res) is masked. n >= 12. */
uint32_t mrc_icrc_bth(mrc_crc32_fn crc, uint32_t reg, const uint8_t *bth, size_t n);
/* The same for headers that may be written to meanwhile: without a copy. */
uint32_t mrc_icrc_own(mrc_crc32_fn crc, uint32_t reg, uint8_t *hdr, size_t n);

/* The four bytes as they go on the wire: complement, least significant byte first. */
static inline void mrc_icrc_end(uint32_t reg, uint8_t out[4])
{
    const uint32_t v = ~reg;
    out[0] = (uint8_t)v;
    out[1] = (uint8_t)(v >> 8);
    out[2] = (uint8_t)(v >> 16);
    out[3] = (uint8_t)(v >> 24);
}

#endif
