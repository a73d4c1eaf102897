/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_rxtrack.h"
#include "t.h"

enum { WINDOW = 1024 };

static _Alignas(64) uint8_t mem[4096];

static struct mrc_rxtrack fresh(uint32_t rq_psn, uint32_t window)
{
    struct mrc_rxtrack t;
    mrc_rxtrack_init(&t, mem, WINDOW);
    mrc_rxtrack_start(&t, mrc_psn(rq_psn), window);
    return t;
}

static struct mrc_rx_advance take(struct mrc_rxtrack *t, uint32_t psn)
{
    return mrc_rxtrack_accept(t, mrc_psn(psn), 300, false, false);
}

TEST(rxtrack_classify__window_edges)
{
    struct mrc_rxtrack t = fresh(100, 128);
    CHECK(mrc_rxtrack_classify(&t, mrc_psn(100)) == MRC_RX_NEW);
    CHECK(mrc_rxtrack_classify(&t, mrc_psn(227)) == MRC_RX_NEW);
    CHECK(mrc_rxtrack_classify(&t, mrc_psn(228)) == MRC_RX_OOR_WINDOW);
    CHECK(mrc_rxtrack_classify(&t, mrc_psn(99)) == MRC_RX_DUPLICATE);
    CHECK(mrc_rxtrack_classify(&t, mrc_psn(227 + (1 << 22) - 1)) == MRC_RX_OOR_WINDOW);
    CHECK(mrc_rxtrack_classify(&t, mrc_psn(227 + (1 << 22))) == MRC_RX_STALE); /* H8 */
    CHECK(mrc_rxtrack_classify(&t, mrc_psn(99u - (1u << 22) - 1u)) == MRC_RX_STALE);
}

TEST(rxtrack_accept__sack_of_the_worked_example)
{
    /* B.4: PSN 0..11 sent, 5 and 8 missing. */
    struct mrc_rxtrack t = fresh(0, WINDOW);
    for (uint32_t p = 0; p < 12; p++)
        if (p != 5 && p != 8)
            take(&t, p);
    const struct mrc_sack_map m = mrc_rxtrack_sack(&t);
    CHECK_EQ(t.cack.v, 4);
    CHECK_EQ(m.offset, 1);
    CHECK_EQ(m.bitmap, 0x76);
    CHECK_EQ(t.ooo_count, 5);
    CHECK(!m.more);
}

TEST(rxtrack_accept__advance_counts_messages_and_requests)
{
    struct mrc_rxtrack t = fresh(0xFFFFFE, WINDOW); /* across the wrap */
    struct mrc_rx_advance a = mrc_rxtrack_accept(&t, mrc_psn(0xFFFFFF), 300, true, true);
    CHECK(a.psns == 0 && a.messages == 0 && !a.ar_passed);
    a = mrc_rxtrack_accept(&t, mrc_psn(1), 300, false, true);
    CHECK(a.psns == 0);
    a = mrc_rxtrack_accept(&t, mrc_psn(0xFFFFFE), 300, false, false);
    CHECK(a.psns == 2 && a.messages == 1 && a.ar_passed);
    a = mrc_rxtrack_accept(&t, mrc_psn(0), 300, false, false);
    CHECK(a.psns == 2 && a.messages == 1 && !a.ar_passed);
    CHECK_EQ(t.cack.v, 1);
    CHECK_EQ(t.ooo_count, 0);
    CHECK_EQ(mrc_rxtrack_rcvd_units(&t), (4 * 300 + 255) / 256);
}

/* Field report 12: displacement up to MPR - 1 is placed, never taken for a duplicate. */
TEST(rxtrack_accept__displacement_up_to_the_window)
{
    struct mrc_rxtrack t = fresh(7, WINDOW);
    for (uint32_t p = WINDOW - 1; p > 0; p--) {
        CHECK(mrc_rxtrack_classify(&t, mrc_psn(7 + p)) == MRC_RX_NEW);
        CHECK_EQ(take(&t, 7 + p).psns, 0);
        CHECK(mrc_rxtrack_classify(&t, mrc_psn(7 + p)) == MRC_RX_DUPLICATE);
    }
    CHECK_EQ(take(&t, 7).psns, WINDOW);
    CHECK_EQ(t.cack.v, 7 + WINDOW - 1);
    CHECK_EQ(t.ooo_count, 0);
}

/* H36: over a window wider than 64 PSNs the SACKs walk over all of it; each arrival is reported. */
TEST(rxtrack_sack__walks_over_a_wide_window)
{
    struct mrc_rxtrack t = fresh(0, WINDOW);
    bool reported[WINDOW] = {false};
    for (uint32_t p = 1; p < 500; p++)
        if (p % 7 != 0)
            take(&t, p);
    struct mrc_sack_map m;
    uint32_t sacks = 0;
    do {
        m = mrc_rxtrack_sack(&t);
        sacks++;
        for (uint32_t i = 0; i < 64; i++)
            if (((m.bitmap >> i) & 1u) != 0)
                reported[mrc_psn_add(t.cack, m.offset + (int32_t)i).v] = true;
    } while (m.more && sacks < 100);
    CHECK_EQ(sacks, (500 + 63) / 64);
    for (uint32_t p = 1; p < 500; p++)
        CHECK(reported[p] == (p % 7 != 0));
    /* Bit 63 is the newest arrival when nothing is left to report. */
    m = mrc_rxtrack_sack(&t);
    CHECK_EQ(m.offset, mrc_psn_diff(t.max_rcv, t.cack) - 63);
    CHECK((m.bitmap >> 63) == 1);
    /* A late arrival below is news, and the next SACK goes back for it. */
    take(&t, 14);
    m = mrc_rxtrack_sack(&t);
    CHECK_EQ(mrc_psn_add(t.cack, m.offset).v, 14);
    CHECK((m.bitmap & 1u) == 1);
}

/* Field report 14: in-order traffic across the wrap is never out of order. */
TEST(rxtrack_accept__in_order_across_the_wrap)
{
    struct mrc_rxtrack t = fresh(0xFFFF00, WINDOW);
    for (uint32_t i = 0; i < 600; i++) {
        CHECK_EQ(take(&t, (0xFFFF00 + i) & 0xFFFFFF).psns, 1);
        CHECK_EQ(t.ooo_count, 0);
        CHECK_EQ(mrc_rxtrack_sack(&t).bitmap, 0);
    }
}

/* Field report 4: any arrival permutation frees every slot once; cack never retreats. */
TEST(rxtrack_accept__random_permutations)
{
    uint32_t seed = 1;
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t order[WINDOW];
        struct mrc_rxtrack t = fresh(0xFFFFFF - round, WINDOW);
        const uint32_t first = 0xFFFFFF - round;
        uint32_t moved = 0;
        for (uint32_t i = 0; i < WINDOW; i++)
            order[i] = i;
        for (uint32_t i = WINDOW - 1; i > 0; i--) {
            seed = seed * 1664525 + 1013904223;
            const uint32_t k = (seed >> 8) % (i + 1);
            const uint32_t x = order[i];
            order[i] = order[k];
            order[k] = x;
        }
        for (uint32_t i = 0; i < WINDOW; i++)
            moved += take(&t, (first + order[i]) & 0xFFFFFF).psns;
        CHECK_EQ(moved, WINDOW);
        CHECK_EQ(t.ooo_count, 0);
        for (uint32_t w = 0; w < WINDOW / 64; w++)
            CHECK_EQ(t.got.word[w] | t.ar.word[w] | t.last.word[w], 0);
    }
}
