/* SPDX-License-Identifier: BSD-2-Clause */
/* vopr: a seed becomes a topology, a workload and a series of faults; the world watches.
 *
 *   vopr [-v] [-c] [-2] [-t LOG] [-f FILE] [SEED [COUNT]]
 *
 * One line a seed: verdict, what was drawn, how much happened, trace hash. -v traces every packet
 * to stderr, -t writes the log that the checker reads. -f runs the seeds of a file (first word of
 * each line, # comments). -c: say at the end how often each kind of fault and of reaction occurred,
 * and fail when one never did in 300 seeds or more. -2: run each seed twice, the second time with
 * everything elsewhere in memory, which is full of litter, and fail when that gives another hash.
 * Exit code 1 when a seed failed. The same seed gives the same hash, on every run and every
 * compiler. */
#include <errno.h>
#include <stdlib.h>

#include "world_plan.h"

static uint64_t vopr_seed; /* for the panic message */

_Noreturn void mrc_panic(const char *file, int line, const char *what);
_Noreturn void mrc_panic(const char *file, int line, const char *what)
{
    fflush(stdout);
    fprintf(stderr, "seed %llu PANIC %s:%d: %s\n", (unsigned long long)vopr_seed, file, line, what);
    abort();
}

enum {
    VOPR_FINISH_S = 300,
    VOPR_COVERAGE_SEEDS = 300, /* from so many on every kind must have occurred */
    VOPR_LITTER = 0xA5,
    VOPR_ELSEWHERE = 1300000, /* bytes that are taken before a second run */
};

/* What all seeds together have seen. */
struct vopr_totals {
    FILE *trace;
    FILE *log;
    bool twice;
    uint64_t seeds;
    uint64_t cover[WORLD_COVER_COUNT];
    uint64_t drops[MRC_DROP_COUNT];
};

/* A QP ends here only because its retries ran out, or because something was done to it or to its
 * peer's. */
static void vopr_check_error(struct world *w, const struct world_flow *f)
{
    const struct world_flow *const back = &w->flow[f->reverse];
    if (!f->dead || f->status == 0 || f->may_fail)
        return;
    if (f->status == MRC_WC_RETRY_EXC_ERR && f->qp.exp_cnt == 25)
        world_fail(w, "QP with unlimited retries ran out of them");
    else if (f->status != MRC_WC_RETRY_EXC_ERR && !back->dead)
        world_fail(w, "QP failed with status %u, which this network cannot cause", f->status);
}

static void vopr_add(struct world *w, struct vopr_totals *t)
{
    world_cover_links(w);
    t->seeds++;
    for (uint32_t i = 0; i < WORLD_COVER_COUNT; i++)
        t->cover[i] += w->cover[i];
    for (uint32_t h = 0; h < w->cfg.hosts; h++)
        for (uint32_t i = 0; i < MRC_DROP_COUNT; i++)
            t->drops[i] += mrc_engine_drops(w->host[h].e, (enum mrc_drop)i);
}

/* What is left after the faults: the whole work at a tenth of the rate, a backed-off timer that may
 * have just been set, and the retries of those whose peer is gone. */
static void vopr_play(struct plan *v, struct world *w)
{
    plan_begin(v, w);
    if (world_run(w, v->faults_end))
        world_finish(w, v->faults_end + VOPR_FINISH_S * MRC_SEC);
}

/* The hash of the same seed in other memory. */
static uint64_t vopr_again(uint64_t seed)
{
    struct plan v;
    void *const taken = malloc(VOPR_ELSEWHERE);
    plan_draw(&v, seed);
    v.cfg.litter = VOPR_LITTER;
    struct world *const w = world_new(&v.cfg);
    vopr_play(&v, w);
    world_end(w);
    const uint64_t hash = w->hash;
    world_free(w);
    free(taken);
    return hash;
}

static bool vopr_run(uint64_t seed, struct vopr_totals *totals)
{
    struct plan v;
    vopr_seed = seed;
    plan_draw(&v, seed);
    struct world *const w = world_new(&v.cfg);
    w->trace = totals->trace;
    if (totals->log != NULL)
        world_log_to(w, totals->log);
    vopr_play(&v, w);

    uint64_t sent = 0;
    uint64_t rtx = 0;
    uint32_t errors = 0;
    for (uint32_t i = 0; i < w->flows; i++) {
        if (w->flow[i].retired)
            continue;
        vopr_check_error(w, &w->flow[i]);
        world_cover_flow(w, &w->flow[i]);
        sent += w->flow[i].data_packets;
        rtx += w->flow[i].rtx_packets;
        errors += w->flow[i].dead;
    }
    world_end(w);
    vopr_add(w, totals);
    const uint64_t again = totals->twice ? vopr_again(seed) : w->hash;
    if (again != w->hash)
        world_fail(w, "elsewhere in memory the hash is %016llx", (unsigned long long)again);
    const bool ok = w->failure[0] == '\0';
    printf("seed %llu %s hosts %u paths %u/%u qps %u cc %u t %.3f s steps %llu data %llu rtx %llu "
           "errors %u hash %016llx%s%s%s\n",
           (unsigned long long)seed, ok ? "ok" : "FAIL", v.cfg.hosts, v.cfg.paths, v.cfg.planes,
           v.qps, v.cfg.cc.kind, (double)(w->now - v.cfg.start_ns) / 1e9,
           (unsigned long long)w->steps, (unsigned long long)sent, (unsigned long long)rtx, errors,
           (unsigned long long)w->hash, v.words, ok ? "" : " : ", w->failure);
    world_free(w);
    return ok;
}

/* Reasons to drop a packet that the campaign must have met. The others have unit tests: a peer that
 * is right never makes them, and a forger only by a chance too rare to count on. */
static const enum mrc_drop vopr_drops[] = {
    MRC_DROP_SHORT,     MRC_DROP_TVER,       MRC_DROP_OPCODE,     MRC_DROP_ICRC,
    MRC_DROP_UDP_LEN,   MRC_DROP_QPN,        MRC_DROP_QP_STATE,   MRC_DROP_PEER,
    MRC_DROP_PSN_STALE, MRC_DROP_PSN_WINDOW, MRC_DROP_ACCESS,     MRC_DROP_SACK_RANGE,
    MRC_DROP_ACK_RANGE, MRC_DROP_NACK_RANGE, MRC_DROP_EP_UNKNOWN, MRC_DROP_EP_STALE,
};

/* The campaign proves only what it has met. */
static unsigned vopr_coverage(const struct vopr_totals *t)
{
    unsigned missing = 0;
    printf("coverage of %llu seeds:", (unsigned long long)t->seeds);
    for (uint32_t i = 0; i < WORLD_COVER_COUNT; i++)
        printf(" %s=%llu", world_cover_name(i), (unsigned long long)t->cover[i]);
    for (uint32_t i = 0; i < MRC_DROP_COUNT; i++)
        printf(" drop-%s=%llu", mrc_drop_name((enum mrc_drop)i), (unsigned long long)t->drops[i]);
    printf("\n");
    if (t->seeds < VOPR_COVERAGE_SEEDS)
        return 0;
    for (uint32_t i = 0; i < WORLD_COVER_COUNT; i++)
        if (t->cover[i] == 0) {
            printf("FAIL coverage: %s never occurred\n", world_cover_name(i));
            missing++;
        }
    for (size_t i = 0; i < sizeof(vopr_drops) / sizeof(vopr_drops[0]); i++)
        if (t->drops[vopr_drops[i]] == 0) {
            printf("FAIL coverage: drop-%s never occurred\n", mrc_drop_name(vopr_drops[i]));
            missing++;
        }
    return missing;
}

static FILE *vopr_open(const char *name, const char *mode)
{
    FILE *const f = fopen(name, mode);
    if (f == NULL) {
        perror(name);
        exit(2);
    }
    return f;
}

static unsigned vopr_file(const char *name, struct vopr_totals *totals)
{
    char line[1024];
    unsigned failed = 0;
    FILE *const f = vopr_open(name, "r");
    while (fgets(line, sizeof(line), f) != NULL)
        if (line[0] >= '0' && line[0] <= '9')
            failed += !vopr_run(strtoull(line, NULL, 0), totals);
    fclose(f);
    return failed;
}

/* A number that is written out whole: a seed that is none would be seed 0, or no run at all. */
static uint64_t vopr_number(const char *text)
{
    char *end = NULL;
    errno = 0;
    const uint64_t value = strtoull(text, &end, 0);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
        fprintf(stderr, "vopr: %s is not a number\n", text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    static struct vopr_totals totals;
    bool coverage = false;
    unsigned failed = 0;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-v") == 0) {
            totals.trace = stderr;
        } else if (strcmp(argv[i], "-c") == 0) {
            coverage = true;
        } else if (strcmp(argv[i], "-2") == 0) {
            totals.twice = true;
        } else if (strcmp(argv[i], "-t") == 0 && i + 1 < argc) {
            totals.log = vopr_open(argv[++i], "w");
        } else if (strcmp(argv[i], "-f") == 0 && i + 1 < argc) {
            failed += vopr_file(argv[++i], &totals);
        } else {
            fprintf(stderr, "usage: vopr [-v] [-c] [-2] [-t LOG] [-f FILE] [SEED [COUNT]]\n");
            return 2;
        }
    }
    if (i < argc) {
        const uint64_t seed = vopr_number(argv[i]);
        const uint64_t count = i + 1 < argc ? vopr_number(argv[i + 1]) : 1;
        for (uint64_t k = 0; k < count; k++)
            failed += !vopr_run(seed + k, &totals);
    }
    if (coverage)
        failed += vopr_coverage(&totals);
    if (totals.log != NULL)
        fclose(totals.log);
    return failed != 0;
}
