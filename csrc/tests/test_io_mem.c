/* SPDX-License-Identifier: BSD-2-Clause */
#include "io_port.h"
#include "t.h"

struct pair {
    struct mrc_mem_wire *wire;
    struct port a;
    struct port b;
};

static struct pair pair_open(uint32_t ring, uint64_t seed)
{
    struct pair w = {.wire = mrc_mem_wire_create(ring, seed)};
    struct mrc_port_cfg cfg = {.kind = MRC_IO_MEM, .wire = w.wire};
    w.a = port_try(&cfg);
    cfg.mem_end = 1;
    w.b = port_try(&cfg);
    return w;
}

static void pair_close(struct pair *w)
{
    port_close(&w->a);
    port_close(&w->b);
    mrc_mem_wire_destroy(w->wire);
}

static void pair_send(struct port *from, uint32_t lane, uint32_t first, uint32_t n)
{
    for (uint32_t i = first; i < first + n; i++) {
        const struct mrc_tx_pkt pkt = port_pkt(from, lane, i, 64 + i % 100);
        port_tx(from, &pkt, 1);
    }
}

TEST(mem_tx__arrives_with_addresses_class_and_entropy)
{
    struct pair w = pair_open(0, 1);
    struct mrc_lane_key key = port_key(&w.b, 0xBEEFC123);
    key.src[0] = 0xA0;
    key.dst[0] = 0xB0;
    struct mrc_tx_pkt pkt = port_pkt(&w.a, (uint32_t)mrc_io_lane_get(w.a.io, &key), 5, 4096);
    pkt.tclass = 185;
    port_tx(&w.a, &pkt, 1);
    size_t n = 0;
    const struct arrival *in = port_rx(&w.b, 1, &n);
    CHECK_EQ(n, 1);
    CHECK(port_same(in, 5, 4096));
    CHECK_EQ(mrc_wire_ev(in->pkt.flow_label, in->pkt.sport), 0xBEEFC123);
    CHECK_EQ(in->pkt.dport, MRC_UDP_PORT);
    CHECK_EQ(in->pkt.tclass, 185);
    CHECK_MEM(in->pkt.src, key.src, 16);
    CHECK_MEM(in->pkt.dst, key.dst, 16);
    pair_close(&w);
}

TEST(mem_tx__both_directions_and_no_faults_unless_asked)
{
    struct pair w = pair_open(512, 1);
    const uint32_t there = port_lane(&w.a, &w.b, 0xC123);
    const uint32_t back = port_lane(&w.b, &w.a, 0xC124);
    size_t n = 0;
    pair_send(&w.a, there, 0, 200);
    pair_send(&w.b, back, 50, 100);
    const struct arrival *in = port_rx(&w.b, 200, &n);
    CHECK_EQ(n, 200);
    for (uint32_t i = 0; i < n; i++)
        CHECK(port_same(&in[i], i, 64 + i % 100));
    in = port_rx(&w.a, 100, &n);
    CHECK_EQ(n, 100);
    for (uint32_t i = 0; i < n; i++)
        CHECK(port_same(&in[i], 50 + i, 64 + (50 + i) % 100));
    pair_close(&w);
}

/* Which of 200 packets of each of two EVs arrive, as one string. */
static void fates(uint64_t seed, char out[401])
{
    struct pair w = pair_open(1024, seed);
    const uint32_t one = port_lane(&w.a, &w.b, 0xC123);
    const uint32_t two = port_lane(&w.a, &w.b, 0xC124);
    CHECK_EQ(mrc_mem_wire_faults(w.wire, -1, 100000, 50000), 0);
    for (uint32_t i = 0; i < 200; i++) {
        pair_send(&w.a, one, i, 1);
        pair_send(&w.a, two, i, 1);
    }
    memset(out, '0', 400);
    out[400] = '\0';
    size_t n = 0;
    const struct arrival *in = port_rx(&w.b, 0, &n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t number = in[i].pkt.len - 36 - 64; /* port_pkt sizes repeat after 100 */
        (*(out + (in[i].pkt.sport & 1) * 200 + number))++;
    }
    pair_close(&w);
}

TEST(mem_faults__follow_from_the_seed)
{
    char first[401];
    char again[401];
    char other[401];
    fates(7, first);
    fates(7, again);
    fates(8, other);
    CHECK(strcmp(first, again) == 0);
    CHECK(strcmp(first, other) != 0);
    unsigned arrived = 0;
    for (int i = 0; i < 400; i++)
        arrived += (unsigned)(first[i] - '0');
    /* 400 packets, a tenth lost, a twentieth of the rest doubled: 378 expected */
    CHECK(arrived > 340 && arrived < 416);
}

TEST(mem_faults__cut_one_ev_only_until_healed)
{
    struct pair w = pair_open(1024, 3);
    const uint32_t one = port_lane(&w.a, &w.b, 0xC123);
    const uint32_t two = port_lane(&w.a, &w.b, 0xC124);
    CHECK_EQ(mrc_mem_wire_faults(w.wire, 0xC123, 1000000, 0), 0);
    CHECK_EQ(mrc_mem_wire_faults(w.wire, 0xC124, 0, 1000000), 0);
    pair_send(&w.a, one, 0, 50);
    pair_send(&w.a, two, 0, 50);
    size_t n = 0;
    const struct arrival *in = port_rx(&w.b, 100, &n);
    CHECK_EQ(n, 100); /* each of the second EV twice */
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(in[i].pkt.sport, 0xC124);
    CHECK_EQ(mrc_mem_wire_faults(w.wire, 0xC123, 0, 0), 0);
    pair_send(&w.a, one, 0, 50);
    port_rx(&w.b, 50, &n);
    CHECK_EQ(n, 50);
    CHECK_EQ(mrc_mem_wire_faults(w.wire, 1, 1000001, 0), (uint64_t)MRC_ERR_INVAL);
    CHECK_EQ(mrc_mem_wire_faults(w.wire, (int64_t)1 << 32, 0, 0), (uint64_t)MRC_ERR_INVAL);
    pair_close(&w);
}

TEST(mem_tx__full_ring_holds_back_and_wakes_again)
{
    struct pair w = pair_open(16, 1);
    const uint32_t lane = port_lane(&w.a, &w.b, 0xC123);
    pair_send(&w.a, lane, 0, 100);
    CHECK_EQ(w.a.io->queues_held, 1);
    uint32_t next = 0;
    for (int turn = 0; next < 100 && turn < 100; turn++) {
        size_t n = 0;
        const struct arrival *in = port_rx(&w.b, 1, &n);
        for (uint32_t i = 0; i < n; i++, next++)
            CHECK(port_same(&in[i], next, 64 + next % 100));
        port_rx(&w.a, 0, &n); /* the sender hears that there is room */
        CHECK_EQ(n, 0);
    }
    CHECK_EQ(next, 100);
    CHECK_EQ(w.a.io->queues_held, 0);
    CHECK_EQ(w.a.io->slot_free_count, MRC_IO_PENDING_MAX);
    pair_close(&w);
}

TEST(mem_open__an_end_is_taken_once_and_the_wire_outlives_its_creator)
{
    const size_t fds = port_open_fds();
    struct pair w = pair_open(64, 1);
    struct mrc_port_cfg cfg = {.kind = MRC_IO_MEM, .wire = w.wire, .mem_end = 1};
    struct port c = port_try(&cfg);
    CHECK(c.io == NULL);
    CHECK_EQ(c.err, MRC_ERR_INVAL);
    cfg.mem_end = 2;
    c = port_try(&cfg);
    CHECK(c.io == NULL);
    mrc_mem_wire_destroy(w.wire);
    const uint32_t lane = port_lane(&w.a, &w.b, 0xC123);
    pair_send(&w.a, lane, 0, 1);
    size_t n = 0;
    port_rx(&w.b, 1, &n);
    CHECK_EQ(n, 1);
    port_close(&w.b);
    pair_send(&w.a, lane, 0, 1000); /* nobody there: gone, and nothing waits for ever */
    CHECK_EQ(w.a.io->queues_held, 0);
    port_close(&w.a);
    CHECK_EQ(port_open_fds(), fds);
}

TEST(mem_forget__region_and_lane)
{
    struct pair w = pair_open(4, 1);
    const uint32_t one = port_lane(&w.a, &w.b, 0xC123);
    const uint32_t two = port_lane(&w.a, &w.b, 0xC124);
    pair_send(&w.a, one, 0, 8); /* three fit: the ring keeps room for a duplicate */
    pair_send(&w.a, two, 8, 2);
    CHECK_EQ(w.a.io->slot_free_count, MRC_IO_PENDING_MAX - 7);
    w.a.io->ops->forget(w.a.io, port_payload[4], sizeof port_payload[0]);
    CHECK_EQ(w.a.io->slot_free_count, MRC_IO_PENDING_MAX - 6);
    mrc_io_lane_put(w.a.io, two);
    CHECK_EQ(w.a.io->slot_free_count, MRC_IO_PENDING_MAX - 4);
    pair_close(&w);
}
