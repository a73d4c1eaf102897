/* SPDX-License-Identifier: BSD-2-Clause */
/* What it costs that the state of many queue pairs does not fit into the caches.
 *
 *   walk PIECES [-t SECONDS] [-b LINES] [-H]
 *
 * Goes round PIECES pieces of state in an order that no prefetcher knows, and changes LINES cache
 * lines spread over each; -H asks for large pages. A turn with one piece stands for PACKETS
 * packets. Prints nanoseconds a packet as one JSON object. */
#include <stdbool.h>
#include <sys/mman.h>

#include "../loop.h"

enum {
    PIECE_BYTES = 8192, /* of a queue pair with its tables; whole pages */
    LINE_BYTES = 64,
    PACKETS = 16, /* that follow each other in one of 10,000 queue pairs */
    TURNS = 1024, /* between two looks at the clock */
    PIECES_MAX = 1 << 20,
    STRIDE = 7919, /* a prime: goes through all pieces whose number it does not divide */
    HUGE_BYTES = 2 << 20,
};

static double walk_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One visit: each line depends on the one before, as the fields of a queue pair do. */
static uint64_t walk_visit(uint8_t *piece, int lines)
{
    uint64_t sum = 0;
    for (int i = 0; i < lines; i++) {
        const size_t at = ((size_t)i * 37 + (sum & 1)) % (PIECE_BYTES / LINE_BYTES) * LINE_BYTES;
        uint64_t v;
        memcpy(&v, piece + at, sizeof v);
        v += 2;
        memcpy(piece + at, &v, sizeof v);
        sum += v;
    }
    return sum;
}

int main(int argc, char **argv)
{
    struct loop_options o = LOOP_DEFAULTS;
    bool huge = false;
    int opt;
    if (argc < 2) {
        fputs("usage: walk PIECES [-t SECONDS] [-b LINES] [-H]\n", stderr);
        return 1;
    }
    const size_t pieces = (size_t)loop_number(argv[1], 1, PIECES_MAX);
    o.batch = 20;
    while ((opt = getopt(argc - 1, argv + 1, LOOP_LETTERS "H")) != -1) {
        if (opt == 'H')
            huge = true;
        else if (!loop_option(&o, opt, optarg))
            return 1;
    }
    const size_t bytes = (pieces * PIECE_BYTES + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    uint8_t *state = aligned_alloc(HUGE_BYTES, bytes);
    if (state == NULL || madvise(state, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0)
        loop_die("memory");
    memset(state, 0, bytes);
    uint64_t turns = 0;
    uint64_t sum = 0;
    size_t at = 0;
    const double start = walk_cpu();
    double now;
    do {
        for (int i = 0; i < TURNS; i++) {
            sum += walk_visit(state + at * PIECE_BYTES, o.batch);
            at = (at + STRIDE) % pieces;
        }
        turns += TURNS;
        now = walk_cpu();
    } while (now < start + o.seconds);
    printf("{\"ns_per_packet\": %.4f, \"pieces\": %zu, \"odd\": %d}\n",
           1e9 * (now - start) / (double)turns / PACKETS, pieces, (int)(sum & 1));
    return 0;
}
