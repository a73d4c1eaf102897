/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_bits.h"
#include "t.h"

enum { CAP = 256 };

static uint64_t words[CAP / 64];

static struct mrc_bits fresh(void)
{
    struct mrc_bits b;
    mrc_bits_init(&b, words, CAP);
    return b;
}

TEST(bits_capacity__power_of_two_from_64)
{
    CHECK_EQ(mrc_bits_capacity(1), 64);
    CHECK_EQ(mrc_bits_capacity(64), 64);
    CHECK_EQ(mrc_bits_capacity(65), 128);
    CHECK_EQ(mrc_bits_capacity(1025), 2048);
}

TEST(bits_set__psn_wrap_is_just_another_index)
{
    struct mrc_bits b = fresh();
    mrc_bits_set(&b, 0xFFFFFF);
    mrc_bits_set(&b, 0);
    CHECK(mrc_bits_test(&b, 0xFFFFFF) && mrc_bits_test(&b, 0) && !mrc_bits_test(&b, 1));
    CHECK_EQ(mrc_bits_export64(&b, 0xFFFFFE), 6);
    mrc_bits_clear(&b, 0xFFFFFF);
    CHECK_EQ(mrc_bits_export64(&b, 0xFFFFFE), 4);
}

/* Every operation against the obvious loop, at every alignment. */
TEST(bits_export_run_next_take__equal_a_plain_loop)
{
    uint32_t seed = 12345;
    for (uint32_t round = 0; round < 2000; round++) {
        struct mrc_bits b = fresh();
        bool plain[CAP] = {false};
        const uint32_t density = round % 5;
        for (uint32_t i = 0; i < CAP; i++) {
            seed = seed * 1664525 + 1013904223;
            if ((seed >> 24) % 5 < density) {
                mrc_bits_set(&b, i);
                plain[i] = true;
            }
        }
        const uint32_t from = round % CAP;
        const uint32_t n = (seed >> 8) % (CAP + 1);
        uint64_t want = 0;
        for (uint32_t i = 0; i < 64; i++)
            want |= (uint64_t)plain[(from + i) % CAP] << i;
        CHECK_EQ(mrc_bits_export64(&b, from), want);
        uint32_t run = 0;
        while (run < n && plain[(from + run) % CAP])
            run++;
        CHECK_EQ(mrc_bits_run(&b, from, n), run);
        uint32_t next = 0;
        while (next < n && !plain[(from + next) % CAP])
            next++;
        CHECK_EQ(mrc_bits_next(&b, from, n), next);
        uint32_t count = 0;
        for (uint32_t i = 0; i < n; i++) {
            count += plain[(from + i) % CAP] ? 1 : 0;
            plain[(from + i) % CAP] = false;
        }
        CHECK_EQ(mrc_bits_take(&b, from, n), count);
        for (uint32_t i = 0; i < CAP; i++)
            CHECK(mrc_bits_test(&b, i) == plain[i]);
    }
}
