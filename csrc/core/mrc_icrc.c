/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_icrc.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define ICRC_HAVE_CLMUL 1
#include <cpuid.h>
#include <immintrin.h>
#endif

/* ---- portable: eight bytes a step, one table per byte ----
 *
 * Entry n of table k is the register that byte n leaves after k further zero bytes. That is linear
 * in the bits of n, so eight values give a table, and the 64 values for all eight tables are the
 * register's consecutive one-bit steps from the polynomial on. */
#define ICRC_BIT(n, i, v) (((n) >> (i)) & 1 ? (v) : 0u)
#define ICRC_1(n, a, b, c, d, e, f, g, h)                                                          \
    (ICRC_BIT(n, 7, a) ^ ICRC_BIT(n, 6, b) ^ ICRC_BIT(n, 5, c) ^ ICRC_BIT(n, 4, d) ^               \
     ICRC_BIT(n, 3, e) ^ ICRC_BIT(n, 2, f) ^ ICRC_BIT(n, 1, g) ^ ICRC_BIT(n, 0, h))
#define ICRC_4(n, ...)                                                                             \
    ICRC_1((n), __VA_ARGS__), ICRC_1((n) + 1, __VA_ARGS__), ICRC_1((n) + 2, __VA_ARGS__),          \
        ICRC_1((n) + 3, __VA_ARGS__)
#define ICRC_16(n, ...)                                                                            \
    ICRC_4((n), __VA_ARGS__), ICRC_4((n) + 4, __VA_ARGS__), ICRC_4((n) + 8, __VA_ARGS__),          \
        ICRC_4((n) + 12, __VA_ARGS__)
#define ICRC_64(n, ...)                                                                            \
    ICRC_16((n), __VA_ARGS__), ICRC_16((n) + 16, __VA_ARGS__), ICRC_16((n) + 32, __VA_ARGS__),     \
        ICRC_16((n) + 48, __VA_ARGS__)
#define ICRC_TABLE(...)                                                                            \
    {                                                                                              \
        ICRC_64(0, __VA_ARGS__), ICRC_64(64, __VA_ARGS__), ICRC_64(128, __VA_ARGS__),              \
            ICRC_64(192, __VA_ARGS__)                                                              \
    }

static const uint32_t icrc_table[8][256] = {
    ICRC_TABLE(0xEDB88320, 0x76DC4190, 0x3B6E20C8, 0x1DB71064, 0x0EDB8832, 0x076DC419, 0xEE0E612C,
               0x77073096),
    ICRC_TABLE(0x3B83984B, 0xF0794F05, 0x958424A2, 0x4AC21251, 0xC8D98A08, 0x646CC504, 0x32366282,
               0x191B3141),
    ICRC_TABLE(0xE1351B80, 0x709A8DC0, 0x384D46E0, 0x1C26A370, 0x0E1351B8, 0x0709A8DC, 0x0384D46E,
               0x01C26A37),
    ICRC_TABLE(0xED59B63B, 0x9B14583D, 0xA032AF3E, 0x5019579F, 0xC5B428EF, 0x8F629757, 0xAA09C88B,
               0xB8BC6765),
    ICRC_TABLE(0xB1E6B092, 0x58F35849, 0xC1C12F04, 0x60E09782, 0x30704BC1, 0xF580A6C0, 0x7AC05360,
               0x3D6029B0),
    ICRC_TABLE(0x1EB014D8, 0x0F580A6C, 0x07AC0536, 0x03D6029B, 0xEC53826D, 0x9B914216, 0x4DC8A10B,
               0xCB5CD3A5),
    ICRC_TABLE(0x8816EAF2, 0x440B7579, 0xCFBD399C, 0x67DE9CCE, 0x33EF4E67, 0xF44F2413, 0x979F1129,
               0xA6770BB4),
    ICRC_TABLE(0x533B85DA, 0x299DC2ED, 0xF9766256, 0x7CBB312B, 0xD3E51BB5, 0x844A0EFA, 0x4225077D,
               0xCCAA009E),
};

uint32_t mrc_crc32_portable(uint32_t reg, const uint8_t *p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8) {
        const uint32_t x = reg ^ ((uint32_t)p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) |
                                  ((uint32_t)p[3] << 24));
        reg = icrc_table[7][x & 0xFF] ^ icrc_table[6][(x >> 8) & 0xFF] ^
              icrc_table[5][(x >> 16) & 0xFF] ^ icrc_table[4][x >> 24] ^ icrc_table[3][p[4]] ^
              icrc_table[2][p[5]] ^ icrc_table[1][p[6]] ^ icrc_table[0][p[7]];
    }
    for (; n > 0; n--, p++)
        reg = (reg >> 8) ^ icrc_table[0][(reg ^ *p) & 0xFF];
    return reg;
}

/* ---- carry-less multiplication ----
 *
 * In the reflected order of the CRC a 128-bit accumulator stands for a polynomial hi, lo. Moving it
 * D bits forward is lo * (x^(D+32) mod P) + hi * (x^(D-32) mod P): two multiplications, and at most
 * 128 bits again. The constants are those residues, reflected and shifted left by one, because a
 * product of two reflected 64-bit numbers comes out one bit low. Four accumulators hide the latency
 * of the multiplier; the last 16 bytes and the tail go through the table, which spares a separate
 * reduction. Where a multiplication takes two pairs at once, each accumulator is two. */
#ifdef ICRC_HAVE_CLMUL
#define ICRC_CLMUL __attribute__((target("pclmul,sse4.1")))
#define ICRC_WIDE __attribute__((target("avx2,vpclmulqdq,pclmul")))

enum {
    ICRC_WIDE_MIN = 256, /* bytes: below, two registers at once gain nothing */
    ICRC_WIDE_STEP = 128,
    ICRC_OSXSAVE = 1 << 27, /* leaf 1 */
    ICRC_AVX2 = 1 << 5,     /* leaf 7 */
    ICRC_VPCLMUL = 1 << 10,
    ICRC_YMM = 6, /* XCR0: the system saves SSE and AVX state */
};

ICRC_CLMUL static inline __m128i icrc_load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

ICRC_CLMUL static inline __m128i icrc_fold(__m128i acc, __m128i k, __m128i next)
{
    const __m128i lo = _mm_clmulepi64_si128(acc, k, 0x00);
    const __m128i hi = _mm_clmulepi64_si128(acc, k, 0x11);
    return _mm_xor_si128(_mm_xor_si128(lo, hi), next);
}

/* From 128 bits forward. */
ICRC_CLMUL static inline __m128i icrc_next(__m128i acc, __m128i next)
{
    return icrc_fold(acc, _mm_set_epi64x(0x0CCAA009E, 0x1751997D0), next);
}

/* What is left behind the accumulator. */
ICRC_CLMUL static inline uint32_t icrc_rest(__m128i a, const uint8_t *p, size_t n)
{
    for (; n >= 16; n -= 16, p += 16)
        a = icrc_next(a, icrc_load(p));
    uint8_t last[16];
    _mm_storeu_si128((__m128i *)(void *)last, a);
    return mrc_crc32_portable(mrc_crc32_portable(0, last, sizeof(last)), p, n);
}

ICRC_CLMUL static uint32_t icrc_clmul(uint32_t reg, const uint8_t *p, size_t n)
{
    if (n < 32)
        return mrc_crc32_portable(reg, p, n);

    __m128i a = _mm_xor_si128(icrc_load(p), _mm_cvtsi32_si128((int)reg));
    p += 16;
    n -= 16;
    if (n >= 112) {
        const __m128i k512 = _mm_set_epi64x(0x1C6E41596, 0x154442BD4);
        __m128i b = icrc_load(p);
        __m128i c = icrc_load(p + 16);
        __m128i d = icrc_load(p + 32);
        p += 48;
        n -= 48;
        for (; n >= 64; n -= 64, p += 64) {
            a = icrc_fold(a, k512, icrc_load(p));
            b = icrc_fold(b, k512, icrc_load(p + 16));
            c = icrc_fold(c, k512, icrc_load(p + 32));
            d = icrc_fold(d, k512, icrc_load(p + 48));
        }
        a = icrc_next(icrc_next(icrc_next(a, b), c), d);
    }
    return icrc_rest(a, p, n);
}

ICRC_WIDE static inline __m256i icrc_load2(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

ICRC_WIDE static inline __m256i icrc_fold2(__m256i acc, __m256i k, __m256i next)
{
    const __m256i lo = _mm256_clmulepi64_epi128(acc, k, 0x00);
    const __m256i hi = _mm256_clmulepi64_epi128(acc, k, 0x11);
    return _mm256_xor_si256(_mm256_xor_si256(lo, hi), next);
}

/* The first half of acc lies before the second. */
ICRC_WIDE static inline __m128i icrc_next2(__m128i a, __m256i acc)
{
    a = icrc_next(a, _mm256_castsi256_si128(acc));
    return icrc_next(a, _mm256_extracti128_si256(acc, 1));
}

ICRC_WIDE static uint32_t icrc_vpclmul(uint32_t reg, const uint8_t *p, size_t n)
{
    if (n < ICRC_WIDE_MIN)
        return icrc_clmul(reg, p, n);

    const __m256i k1024 = _mm256_set_epi64x(0x14A7FE880, 0x1E88EF372, 0x14A7FE880, 0x1E88EF372);
    const __m128i begin = _mm_cvtsi32_si128((int)reg);
    __m256i a = _mm256_xor_si256(icrc_load2(p), _mm256_zextsi128_si256(begin));
    __m256i b = icrc_load2(p + 32);
    __m256i c = icrc_load2(p + 64);
    __m256i d = icrc_load2(p + 96);
    p += ICRC_WIDE_STEP;
    n -= ICRC_WIDE_STEP;
    for (; n >= ICRC_WIDE_STEP; n -= ICRC_WIDE_STEP, p += ICRC_WIDE_STEP) {
        a = icrc_fold2(a, k1024, icrc_load2(p));
        b = icrc_fold2(b, k1024, icrc_load2(p + 32));
        c = icrc_fold2(c, k1024, icrc_load2(p + 64));
        d = icrc_fold2(d, k1024, icrc_load2(p + 96));
    }
    const __m128i first = icrc_next(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    return icrc_rest(icrc_next2(icrc_next2(icrc_next2(first, b), c), d), p, n);
}

/* Leaves by hand: the compiler's own query would need a symbol from its run-time library. Of SSE
 * state the operating system needs no asking; of AVX state it does. */
static unsigned icrc_fastest(void)
{
    unsigned int a = 0;
    unsigned int b = 0;
    unsigned int c = 0;
    unsigned int d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_PCLMUL) == 0 || (c & bit_SSE4_1) == 0)
        return 0;
    if ((c & ICRC_OSXSAVE) == 0 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
        (b & ICRC_AVX2) == 0 || (c & ICRC_VPCLMUL) == 0)
        return 1;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & ICRC_YMM) == ICRC_YMM ? 2 : 1;
}
#else
static unsigned icrc_fastest(void) { return 0; }
#endif

mrc_crc32_fn mrc_crc32_nth(unsigned n)
{
    static const mrc_crc32_fn all[] = {
        mrc_crc32_portable,
#ifdef ICRC_HAVE_CLMUL
        icrc_clmul,
        icrc_vpclmul,
#endif
    };
    return n <= icrc_fastest() ? all[n] : NULL;
}

mrc_crc32_fn mrc_crc32_select(void) { return mrc_crc32_nth(icrc_fastest()); }

/* ---- what the iCRC covers, A.13.3 ---- */

#define ICRC_AFTER_8_ONES 0xDEBB20E3u /* register after the eight leading 0xFF bytes */

enum {
    ICRC_IP6_LEN = 40,
    ICRC_IP4_LEN_MIN = 20,
    ICRC_IP4_LEN_MAX = 60,
    ICRC_UDP_LEN = 8,
    ICRC_BTH_VAR_RES = 4,
    ICRC_IPPROTO_UDP = 17,
};

static void icrc_put_udp(uint8_t *p, uint16_t sport, uint16_t dport, uint16_t udp_len)
{
    mrc_put32(p, (uint32_t)sport << 16 | dport);
    mrc_put32(p + 4, (uint32_t)udp_len << 16 | 0xFFFF); /* checksum, masked */
}

uint32_t mrc_icrc6_begin(mrc_crc32_fn crc, const uint8_t src[16], const uint8_t dst[16],
                         uint16_t sport, uint16_t dport, uint16_t udp_len)
{
    uint8_t h[ICRC_IP6_LEN + ICRC_UDP_LEN];
    mrc_put32(h, 0x6FFFFFFF); /* version; traffic class and flow label masked */
    mrc_put16(h + 4, udp_len);
    h[6] = ICRC_IPPROTO_UDP;
    h[7] = 0xFF; /* hop limit, masked */
    memcpy(h + 8, src, 16);
    memcpy(h + 24, dst, 16);
    icrc_put_udp(h + ICRC_IP6_LEN, sport, dport, udp_len);
    return crc(ICRC_AFTER_8_ONES, h, sizeof(h));
}

uint32_t mrc_icrc4_begin(mrc_crc32_fn crc, const uint8_t *ip, uint16_t sport, uint16_t dport,
                         uint16_t udp_len)
{
    const size_t ip_len = (size_t)(ip[0] & 0x0F) * 4;
    MRC_ASSERT(ip_len >= ICRC_IP4_LEN_MIN && ip_len <= ICRC_IP4_LEN_MAX);

    uint8_t h[ICRC_IP4_LEN_MAX + ICRC_UDP_LEN];
    memcpy(h, ip, ip_len);
    h[1] = 0xFF;               /* TOS */
    h[8] = 0xFF;               /* TTL */
    mrc_put16(h + 10, 0xFFFF); /* header checksum */
    icrc_put_udp(h + ip_len, sport, dport, udp_len);
    return crc(ICRC_AFTER_8_ONES, h, ip_len + ICRC_UDP_LEN);
}

uint32_t mrc_icrc_bth(mrc_crc32_fn crc, uint32_t reg, const uint8_t *bth, size_t n)
{
    MRC_ASSERT(n >= 12);
    /* One call for all headers: the copy reaches past the largest of them. */
    uint8_t head[64];
    const bool more = n > sizeof(head);
    if (more)
        memcpy(head, bth, sizeof(head)); /* of a length that the compiler knows */
    else
        memcpy(head, bth, n);
    head[ICRC_BTH_VAR_RES] = 0xFF;
    if (more)
        return crc(crc(reg, head, sizeof(head)), bth + sizeof(head), n - sizeof(head));
    return crc(reg, head, n);
}

uint32_t mrc_icrc_own(mrc_crc32_fn crc, uint32_t reg, uint8_t *hdr, size_t n)
{
    const uint8_t var_res = hdr[ICRC_BTH_VAR_RES];
    hdr[ICRC_BTH_VAR_RES] = 0xFF;
    reg = crc(reg, hdr, n);
    hdr[ICRC_BTH_VAR_RES] = var_res;
    return reg;
}
