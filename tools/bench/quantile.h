/* SPDX-License-Identifier: BSD-2-Clause */
/* Round trips: every one kept, sorted at the end, printed as one JSON object. */
#ifndef MRC_BENCH_QUANTILE_H
#define MRC_BENCH_QUANTILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { QUANTILE_MAX = 1 << 22, QUANTILE_WARM_UP = 200 };

struct quantile {
    uint32_t *ns;
    uint64_t seen; /* the first QUANTILE_WARM_UP are not kept */
    uint64_t count;
};

static inline void quantile_add(struct quantile *q, uint64_t ns)
{
    if (q->ns == NULL)
        q->ns = malloc(QUANTILE_MAX * sizeof *q->ns);
    if (q->ns == NULL)
        abort();
    if (q->seen++ < QUANTILE_WARM_UP || q->count == QUANTILE_MAX)
        return;
    q->ns[q->count++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static int quantile_compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static inline void quantile_print(struct quantile *q)
{
    qsort(q->ns, q->count, sizeof *q->ns, quantile_compare);
    const uint64_t n = q->count;
    printf("{\"count\": %llu", (unsigned long long)n);
    if (n > 0)
        printf(", \"p50_us\": %.3f, \"p99_us\": %.3f, \"min_us\": %.3f, \"max_us\": %.3f",
               q->ns[n / 2] / 1e3, q->ns[n - 1 - n / 100] / 1e3, q->ns[0] / 1e3,
               q->ns[n - 1] / 1e3);
    puts("}");
}

#endif
