/* SPDX-License-Identifier: BSD-2-Clause */
/* Test harness: one executable per test file.
 *
 *   TEST(function__case) { CHECK(cond); CHECK_EQ(got, want); CHECK_MEM(got, want, n); }
 *
 * A test registers itself. A failed check is printed and fails its test; the test goes on.
 * Arguments name the tests to run (any part of the name, or "=" and the whole of it); "-v" in front
 * prints each name; "--write" makes golden files anew.
 * Last line: "N passed, N failed". */
#ifndef MRC_TEST_H
#define MRC_TEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct t_test {
    const char *name;
    void (*run)(void);
    struct t_test *next;
};

static struct t_test *t_first;
static struct t_test **t_last = &t_first;
static const char *t_current = "(none)";
static bool t_write;        /* --write: golden files are made, not compared */
static unsigned t_failures; /* failed checks of the current test */

static inline void t_add(struct t_test *t)
{
    *t_last = t;
    t_last = &t->next;
}

static inline void t_fail(const char *file, int line, const char *what)
{
    if (t_failures++ < 10) /* the first ones say it; thousands more say nothing new */
        printf("%s:%d: %s: %s\n", file, line, t_current, what);
}

static inline void t_fail_eq(const char *file, int line, const char *what, uint64_t got,
                             uint64_t want)
{
    char s[256];
    snprintf(s, sizeof(s), "%s: got %" PRIu64 " (0x%" PRIx64 "), want %" PRIu64 " (0x%" PRIx64 ")",
             what, got, got, want, want);
    t_fail(file, line, s);
}

static inline void t_fail_mem(const char *file, int line, const char *what, const void *got,
                              const void *want, size_t n)
{
    const uint8_t *const g = got;
    const uint8_t *const w = want;
    size_t i = 0;
    while (i < n && g[i] == w[i])
        i++;
    char s[256];
    snprintf(s, sizeof(s), "%s: byte %zu of %zu: got 0x%02x, want 0x%02x", what, i, n, g[i], w[i]);
    t_fail(file, line, s);
}

#define TEST(fn)                                                                                   \
    static void fn(void);                                                                          \
    __attribute__((constructor)) static void t_register_##fn(void)                                 \
    {                                                                                              \
        static struct t_test t = {#fn, fn, NULL};                                                  \
        t_add(&t);                                                                                 \
    }                                                                                              \
    static void fn(void)

#define CHECK(cond) ((cond) ? (void)0 : t_fail(__FILE__, __LINE__, #cond))
#define CHECK_EQ(got, want)                                                                        \
    do {                                                                                           \
        const uint64_t t_got = (uint64_t)(got);                                                    \
        const uint64_t t_want = (uint64_t)(want);                                                  \
        if (t_got != t_want)                                                                       \
            t_fail_eq(__FILE__, __LINE__, #got " == " #want, t_got, t_want);                       \
    } while (0)
#define CHECK_MEM(got, want, n)                                                                    \
    (memcmp((got), (want), (n)) == 0                                                               \
         ? (void)0                                                                                 \
         : t_fail_mem(__FILE__, __LINE__, #got " == " #want, (got), (want), (n)))

/* The core's way out of an impossible state. */
_Noreturn void mrc_panic(const char *file, int line, const char *what);
_Noreturn void mrc_panic(const char *file, int line, const char *what)
{
    printf("%s:%d: panic in %s: %s\n", file, line, t_current, what);
    fflush(NULL);
    abort();
}

static inline bool t_wanted(const char *name, int argc, char **argv)
{
    bool any = false;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-')
            continue;
        if (argv[i][0] == '=' ? strcmp(name, argv[i] + 1) == 0 : strstr(name, argv[i]) != NULL)
            return true;
        any = true;
    }
    return !any;
}

int main(int argc, char **argv)
{
    const bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    for (int i = 1; i < argc; i++)
        t_write = t_write || strcmp(argv[i], "--write") == 0;
    unsigned passed = 0;
    unsigned failed = 0;
    for (struct t_test *t = t_first; t != NULL; t = t->next) {
        if (!t_wanted(t->name, argc, argv))
            continue;
        t_current = t->name;
        t_failures = 0;
        t->run();
        t_failures == 0 ? passed++ : failed++;
        if (t_failures > 10)
            printf("%s: %u failed checks in all\n", t->name, t_failures);
        if (verbose)
            printf("%s %s\n", t_failures == 0 ? "ok  " : "FAIL", t->name);
        fflush(stdout);
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0 || passed == 0;
}

#endif
