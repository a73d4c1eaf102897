/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw ports on the loopback of a namespace: what their tests share. */
#ifndef MRC_TEST_RAW_RIG_H
#define MRC_TEST_RAW_RIG_H

#include "io_port.h"
#include "net_child.h"
#include "t.h"

enum { IP_LEN = 40, UDP_LEN = 8, SRH_LEN = 24, NH_UDP = 17, NH_IPV6 = 41, NH_ROUTING = 43 };

static const uint8_t carrier[16] = {0xFC, 0xBB, [15] = 1}; /* made local by child_fabric */

static inline void child_fabric(void)
{
    child_loopback(9000);
    CHECK_EQ(system("ip -6 addr add fcbb::1/128 dev lo nodad"), 0);
    /* The kernel adds the local route from a work queue, so it may come after the address. */
    CHECK_EQ(system("for i in $(seq 500); do ip -6 route show table local | grep -q fcbb::1 &&"
                    " exit 0; sleep 0.01; done; exit 1"),
             0);
}

/* IPv6 header in front of len bytes. */
static inline void put_ip(uint8_t *p, uint8_t tclass, uint16_t len, uint8_t next,
                          const uint8_t dst[16])
{
    mrc_put32(p, 0x60000000u | (uint32_t)tclass << 20 | 0x12345);
    mrc_put16(p + 4, len);
    p[6] = next;
    p[7] = 64;
    memcpy(p + 8, port_loopback, 16);
    memcpy(p + 24, dst, 16);
}

static inline size_t put_template(uint8_t *t, bool srh)
{
    put_ip(t, 0, 0, srh ? NH_ROUTING : NH_IPV6, carrier);
    if (!srh)
        return IP_LEN;
    uint8_t *r = t + IP_LEN; /* debug copy of the carrier, no segments left (A.13.2 b) */
    memset(r, 0, SRH_LEN);
    r[0] = NH_IPV6;
    r[1] = 2;
    r[2] = 4;
    memcpy(r + 8, carrier, 16);
    return IP_LEN + SRH_LEN;
}

static inline uint32_t raw_lane(struct port *a, const struct port *b, uint32_t ev, int kind)
{
    struct mrc_lane_key key = port_key(b, ev);
    if (kind > 0)
        key.tmpl_len = (uint16_t)put_template(key.tmpl, kind == 2);
    const int64_t lane = mrc_io_lane_get(a->io, &key);
    if (lane < 0) {
        printf("cannot open lane: %s\n", a->io->error);
        abort();
    }
    return (uint32_t)lane;
}

#endif
