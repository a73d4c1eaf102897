/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast the iCRC's polynomial is computed: `crc [SECONDS]`, over buffers as long as the payload
 * of a full packet. Prints gigabytes a second for the fastest implementation here, and whether that
 * is another one than the portable. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mrc_icrc.h"

enum { BUFFERS = 64, BYTES = 4096 };

static uint8_t data[BUFFERS][BYTES];

_Noreturn void mrc_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    abort();
}

static double crc_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    const mrc_crc32_fn crc = mrc_crc32_select();
    volatile uint32_t sink = 0;
    uint64_t rounds = 0;
    for (size_t i = 0; i < sizeof data; i++)
        data[i / BYTES][i % BYTES] = (uint8_t)(i * 31);
    const double start = crc_now();
    double now;
    do {
        uint32_t reg = UINT32_MAX;
        for (size_t i = 0; i < BUFFERS; i++)
            reg = crc(reg, data[i], BYTES);
        sink = reg;
        rounds++;
        now = crc_now();
    } while (now - start < seconds);
    (void)sink;
    printf("{\"gigabytes_per_second\": %.4f, \"accelerated\": %s}\n",
           (double)(rounds * sizeof data) / 1e9 / (now - start),
           crc == mrc_crc32_portable ? "false" : "true");
    return 0;
}
