/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes through the decoder; what it accepts must survive encoding and decoding again.
 *
 * With clang: -fsanitize=fuzzer,address,undefined. Without: add -DMRC_FUZZ_MAIN for a main that
 * replays files, or random bytes: fuzz_wire [-n COUNT] [-s SEED] [FILE ...]. */
#include <stdio.h>
#include <stdlib.h>

#include "../core/mrc_rand.h"
#include "../core/mrc_wire.h"

_Noreturn void mrc_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: panic: %s\n", file, line, what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int trimmed = 0; trimmed < 2; trimmed++) {
        struct mrc_pkt p;
        if (mrc_wire_decode(&p, data, size, trimmed != 0) != MRC_WIRE_OK)
            continue;
        if ((mrc_opcode_flags(p.opcode) & MRC_OPF_DATA) != 0) {
            MRC_ASSERT(p.payload >= data && p.payload <= data + size);
            MRC_ASSERT(p.payload_len <= (size_t)(data + size - p.payload));
        }

        struct mrc_pkt q;
        uint8_t b[MRC_HDR_MAX + 3 + MRC_ICRC_LEN] = {0};
        const size_t n = mrc_wire_encode(b, &p);
        MRC_ASSERT(n <= MRC_HDR_MAX);
        MRC_ASSERT(mrc_wire_decode(&q, b, n + p.pad + MRC_ICRC_LEN, false) == MRC_WIRE_OK);
        q.payload = p.payload;
        q.payload_len = p.payload_len;
        q.icrc_absent = p.icrc_absent;
        uint8_t c[MRC_HDR_MAX];
        MRC_ASSERT(mrc_wire_encode(c, &q) == n);
        MRC_ASSERT(memcmp(b, c, n) == 0);
    }
    return 0;
}

#ifdef MRC_FUZZ_MAIN
static void fuzz_file(const char *name)
{
    uint8_t buf[65536];
    FILE *f = fopen(name, "rb");
    if (f == NULL) {
        perror(name);
        exit(2);
    }
    const size_t n = fread(buf, 1, sizeof(buf), f);
    fclose(f);
    LLVMFuzzerTestOneInput(buf, n);
}

/* Random bytes behind an opcode that is mostly known, in a block of exactly their size. */
static void fuzz_random(uint64_t seed, unsigned long count)
{
    static const uint8_t ops[] = {0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB,
                                  0xD1, 0xD8, 0xD9, 0xDC, 0xDD, 0xDE};
    struct mrc_rand r;
    mrc_rand_seed(&r, seed);
    for (unsigned long k = 0; k < count; k++) {
        const uint32_t n = mrc_rand_below(&r, 80);
        uint8_t *const p = malloc(n != 0 ? n : 1);
        if (p == NULL)
            abort();
        for (uint32_t i = 0; i < n; i++)
            p[i] = (uint8_t)(mrc_rand_next(&r) >> 56);
        if (n > 1 && mrc_rand_below(&r, 8) != 0) {
            p[0] = ops[mrc_rand_below(&r, sizeof(ops))];
            p[1] &= 0xF0;
        }
        LLVMFuzzerTestOneInput(p, n);
        free(p);
    }
    printf("%lu inputs, seed %llu\n", count, (unsigned long long)seed);
}

int main(int argc, char **argv)
{
    unsigned long count = 200000;
    unsigned long long seed = 1;
    bool files = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-n") == 0 && i + 1 < argc) {
            count = strtoul(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 0);
        } else {
            fuzz_file(argv[i]);
            files = true;
        }
    }
    if (!files)
        fuzz_random(seed, count);
    return 0;
}
#endif
