/* SPDX-License-Identifier: BSD-2-Clause */
#include "t.h"

#include "../core/mrc_icrc.h"
#include "../core/mrc_rand.h"

enum { LEN_MAX = 4200, ALIGN_MAX = 16 };

/* The definition, one bit at a time: what every other implementation here is held against. */
static uint32_t crc_by_bits(uint32_t reg, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        reg ^= p[i];
        for (int b = 0; b < 8; b++)
            reg = (reg >> 1) ^ ((reg & 1) != 0 ? 0xEDB88320u : 0u);
    }
    return reg;
}

static const uint8_t *noise(void)
{
    static uint8_t buf[LEN_MAX + ALIGN_MAX];
    struct mrc_rand r;
    mrc_rand_seed(&r, 1);
    for (size_t i = 0; i < sizeof(buf); i++)
        buf[i] = (uint8_t)(mrc_rand_next(&r) >> 56);
    return buf;
}

TEST(crc32__check_value)
{
    const uint8_t *const s = (const uint8_t *)"123456789";
    CHECK_EQ((uint32_t)~mrc_crc32_portable(0xFFFFFFFF, s, 9), 0xCBF43926);
    CHECK_EQ((uint32_t)~mrc_crc32_select()(0xFFFFFFFF, s, 9), 0xCBF43926);
}

TEST(crc32__register_after_eight_ones)
{
    uint8_t ones[8];
    memset(ones, 0xFF, sizeof(ones));
    CHECK_EQ(mrc_crc32_portable(0xFFFFFFFF, ones, 8), 0xDEBB20E3);
}

TEST(crc32__portable_equals_definition)
{
    const uint8_t *const buf = noise();
    for (size_t n = 0; n <= 300; n++)
        for (size_t at = 0; at < 9; at++)
            CHECK_EQ(mrc_crc32_portable(0xFFFFFFFF, buf + at, n),
                     crc_by_bits(0xFFFFFFFF, buf + at, n));
    CHECK_EQ(mrc_crc32_portable(0x12345678, buf, LEN_MAX), crc_by_bits(0x12345678, buf, LEN_MAX));
}

TEST(crc32__fast_equals_portable)
{
    static const size_t aligns[] = {0, 1, 3, 4, 8, 15};
    const uint8_t *const buf = noise();
    mrc_crc32_fn fast;
    for (unsigned i = 1; (fast = mrc_crc32_nth(i)) != NULL; i++)
        for (size_t k = 0; k < sizeof(aligns) / sizeof(aligns[0]); k++)
            for (size_t n = 0; n <= LEN_MAX; n++)
                CHECK_EQ(fast(0xDEBB20E3, buf + aligns[k], n),
                         mrc_crc32_portable(0xDEBB20E3, buf + aligns[k], n));
}

TEST(crc32__the_fastest_is_taken)
{
    unsigned n = 0;
    while (mrc_crc32_nth(n) != NULL)
        n++;
    CHECK(n >= 1);
    CHECK(mrc_crc32_nth(0) == mrc_crc32_portable);
    CHECK(mrc_crc32_select() == mrc_crc32_nth(n - 1));
}

/* No byte outside the buffer is touched: each buffer ends where the allocation ends (for ASan). */
TEST(crc32__fast_reads_nothing_outside)
{
    mrc_crc32_fn fast;
    for (unsigned i = 1; (fast = mrc_crc32_nth(i)) != NULL; i++)
        for (size_t n = 1; n <= 600; n++) {
            uint8_t *const p = malloc(n);
            if (p == NULL)
                abort();
            memset(p, (int)n, n);
            CHECK_EQ(fast(0, p, n), mrc_crc32_portable(0, p, n));
            free(p);
        }
}

TEST(crc32__split_anywhere)
{
    const mrc_crc32_fn fast = mrc_crc32_select();
    const uint8_t *const buf = noise();
    const uint32_t whole = fast(0xFFFFFFFF, buf, 1000);
    for (size_t cut = 0; cut <= 1000; cut++)
        CHECK_EQ(fast(fast(0xFFFFFFFF, buf, cut), buf + cut, 1000 - cut), whole);
}

/* ---- coverage and masks, A.13.3 ---- */

struct whole {
    uint8_t ip[60];
    size_t ip_len;
    uint8_t udp[8];
    uint8_t bth[256];
    size_t n; /* BTH to pad */
};

static uint32_t whole_by_definition(const struct whole *w)
{
    uint8_t b[8 + 60 + 8 + 256];
    size_t n = 8;
    memset(b, 0xFF, 8);
    memcpy(b + n, w->ip, w->ip_len);
    if (w->ip_len == 40) {
        b[n] |= 0x0F;
        memset(b + n + 1, 0xFF, 3);
        b[n + 7] = 0xFF;
    } else {
        b[n + 1] = 0xFF;
        b[n + 8] = 0xFF;
        memset(b + n + 10, 0xFF, 2);
    }
    n += w->ip_len;
    memcpy(b + n, w->udp, 8);
    memset(b + n + 6, 0xFF, 2);
    n += 8;
    memcpy(b + n, w->bth, w->n);
    b[n + 4] = 0xFF;
    n += w->n;
    return ~crc_by_bits(0xFFFFFFFF, b, n);
}

static uint32_t whole_by_core(const struct whole *w)
{
    const mrc_crc32_fn crc = mrc_crc32_select();
    const uint16_t sport = mrc_get16(w->udp);
    const uint16_t dport = mrc_get16(w->udp + 2);
    const uint16_t len = mrc_get16(w->udp + 4);
    uint32_t reg = w->ip_len == 40 ? mrc_icrc6_begin(crc, w->ip + 8, w->ip + 24, sport, dport, len)
                                   : mrc_icrc4_begin(crc, w->ip, sport, dport, len);
    uint8_t out[4];
    mrc_icrc_end(mrc_icrc_bth(crc, reg, w->bth, w->n), out);
    return (uint32_t)out[0] | ((uint32_t)out[1] << 8) | ((uint32_t)out[2] << 16) |
           ((uint32_t)out[3] << 24);
}

static struct whole whole_make(size_t ip_len, size_t n)
{
    struct whole w = {.ip_len = ip_len, .n = n};
    const uint8_t *const buf = noise();
    memcpy(w.ip, buf, ip_len);
    memcpy(w.udp, buf + 64, 8);
    memcpy(w.bth, buf + 80, n);
    mrc_put16(w.udp + 4, (uint16_t)(8 + n + 4));
    if (ip_len == 40) {
        w.ip[0] = 0x60;
        mrc_put16(w.ip + 4, (uint16_t)(8 + n + 4));
        w.ip[6] = 17;
    } else {
        w.ip[0] = (uint8_t)(0x40 | (ip_len / 4));
    }
    return w;
}

TEST(icrc__covers_what_the_definition_covers)
{
    for (size_t n = 12; n <= 256; n++) {
        const struct whole v6 = whole_make(40, n);
        CHECK_EQ(whole_by_core(&v6), whole_by_definition(&v6));
    }
    for (size_t ip_len = 20; ip_len <= 60; ip_len += 4) {
        struct whole v4 = whole_make(ip_len == 40 ? 44 : ip_len, 36);
        CHECK_EQ(whole_by_core(&v4), whole_by_definition(&v4));
    }
}

TEST(icrc__var_res_may_change_in_flight)
{
    struct whole w = whole_make(40, 100);
    const uint32_t before = whole_by_core(&w);
    w.bth[4] ^= 0xC0;
    CHECK_EQ(whole_by_core(&w), before);
}

TEST(icrc__every_other_bit_after_the_ip_header_is_covered)
{
    struct whole w = whole_make(40, 60);
    const uint32_t before = whole_by_core(&w);
    for (size_t bit = 0; bit < 60 * 8; bit++) {
        if (bit / 8 == 4)
            continue;
        w.bth[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        CHECK(whole_by_core(&w) != before);
        w.bth[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    for (size_t byte = 0; byte < 6; byte++) { /* ports and length; 4971 and 4791 differ */
        w.udp[byte] ^= 1;
        CHECK(whole_by_core(&w) != before);
        w.udp[byte] ^= 1;
    }
}

TEST(icrc_end__least_significant_byte_first)
{
    uint8_t out[4];
    mrc_icrc_end(~0x11223344u, out);
    CHECK_MEM(out, ((const uint8_t[4]){0x44, 0x33, 0x22, 0x11}), 4);
}
