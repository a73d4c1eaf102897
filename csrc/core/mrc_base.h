/* SPDX-License-Identifier: BSD-2-Clause */
/* What every file of the core may assume: time, errors, limits, assertions. */
#ifndef MRC_BASE_H
#define MRC_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Nanoseconds of a monotonic clock that the caller owns. The core never reads a clock. */
typedef uint64_t mrc_ns;

#define MRC_NEVER UINT64_MAX
#define MRC_USEC ((mrc_ns)1000)
#define MRC_MSEC ((mrc_ns)1000000)
#define MRC_SEC ((mrc_ns)1000000000)

/* Local misuse. A bad packet is never one of these: it is a drop reason and a counter. */
enum mrc_err {
    MRC_OK = 0,
    MRC_ERR_INVAL = -1,  /* an argument is out of its range */
    MRC_ERR_STATE = -2,  /* the object is not in a state that allows the call */
    MRC_ERR_FULL = -3,   /* ring or pool has no room; retry after completions */
    MRC_ERR_NOENT = -4,  /* no such object */
    MRC_ERR_BUSY = -5,   /* object is in use, or another thread is in the engine */
    MRC_ERR_ACCESS = -6, /* key, access flags or bounds refuse the memory */
};

/* Limits, all asserted where they matter. */
enum {
    MRC_MTU_MIN = 256,
    MRC_MTU_MAX = 4096,
    MRC_EV_MAX = 4096,    /* entries of one path table */
    MRC_EV_NONE = 0xFFFF, /* "no entry" */
    MRC_PLANE_MAX = 31,   /* plane (port) numbers are 1..31: bit N of a mask is plane N (MRC C.5) */
    MRC_MPR_UNIT = 128,   /* PSNs per unit of MPR (B.12) */
    MRC_MPR_MAX = 64,     /* units; 8192 PSNs: bitmap memory is bounded by this */
    MRC_TRAIN_MAX = 16,   /* packets of one path sent back to back */
    MRC_MSG_BYTES_MAX = 0x80000000, /* H20 */
};

/* Defined by whoever links the core: prints and ends the process. Never returns. */
_Noreturn void mrc_panic(const char *file, int line, const char *what);

/* An impossible state. Stays on in release builds. */
#define MRC_ASSERT(cond)                                                                           \
    do {                                                                                           \
        if (__builtin_expect(!(cond), 0))                                                          \
            mrc_panic(__FILE__, __LINE__, #cond);                                                  \
    } while (0)

/* All that this function calls becomes part of it, as far as the compiler sees it: for the short
 * cut that most packets take. */
#define MRC_FLAT __attribute__((flatten))

static inline uint16_t mrc_get16(const uint8_t *p) { return (uint16_t)((p[0] << 8) | p[1]); }
static inline uint32_t mrc_get24(const uint8_t *p)
{
    return ((uint32_t)p[0] << 16) | ((uint32_t)p[1] << 8) | p[2];
}
static inline uint32_t mrc_get32(const uint8_t *p)
{
    return ((uint32_t)p[0] << 24) | mrc_get24(p + 1);
}
static inline uint64_t mrc_get64(const uint8_t *p)
{
    return ((uint64_t)mrc_get32(p) << 32) | mrc_get32(p + 4);
}
static inline void mrc_put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}
static inline void mrc_put24(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 16);
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)v;
}
static inline void mrc_put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    mrc_put24(p + 1, v & 0xFFFFFF);
}
static inline void mrc_put64(uint8_t *p, uint64_t v)
{
    mrc_put32(p, (uint32_t)(v >> 32));
    mrc_put32(p + 4, (uint32_t)v);
}

/* Carving one block into parts: each begins on a cache line. */
static inline size_t mrc_align(size_t n) { return (n + 63) & ~(size_t)63; }
/* Smallest power of two >= n, n <= 2^31. */
static inline uint32_t mrc_pow2(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p <<= 1;
    return p;
}

static inline uint32_t mrc_min32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint64_t mrc_min64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t mrc_max64(uint64_t a, uint64_t b) { return a > b ? a : b; }

#endif
