/* SPDX-License-Identifier: BSD-2-Clause */
/* Time: the earliest thing there is, again and again. */
#include "fab_int.h"

#include <stdarg.h>
#include <stdio.h>

void fab_fail(struct fab *f, const char *format, ...)
{
    if (f->failure[0] != '\0')
        return;
    const int n =
        snprintf(f->failure, sizeof f->failure, "t=%.6f s: ", (double)(f->now - f->start) / 1e9);
    va_list args;
    va_start(args, format);
    vsnprintf(f->failure + n, sizeof f->failure - (size_t)n, format, args);
    va_end(args);
}

const char *fab_failure(const struct fab *f) { return f->failure; }
mrc_ns fab_now(const struct fab *f) { return f->now - f->start; }
uint64_t fab_hash(const struct fab *f) { return f->hash; }
uint64_t fab_messages_left(const struct fab *f) { return f->left; }

static void run_step(struct fab *f)
{
    const struct fab_heap_item top = f->heap.item[0];
    f->now = top.at;
    f->totals.events++;
    fab_mix(f, top.at ^ (uint64_t)top.source << 32);
    if (top.source < 2 * f->links) {
        fab_link_event(f, top.source);
    } else if (top.source < fab_source_timer(f)) {
        fab_heap_set(&f->heap, top.source, MRC_NEVER);
        fab_host_turn(f, top.source - 2 * f->links);
    } else {
        fab_work_timers(f);
    }
}

/* ---- the log ---- */

void fab_log(struct fab *f, const struct fab_event *e)
{
    struct fab_event *const to = &f->log[f->log_tail & f->log_mask];
    if (f->log_tail - f->log_head > f->log_mask) {
        f->totals.log_lost++;
        return;
    }
    *to = *e;
    to->time = e->time > f->start ? e->time - f->start : 0;
    f->log_tail++;
}

/* Two runs in order become one, those of the first in front where times are the same. */
static void run_merge(const struct fab *f, const struct fab_event *from, struct fab_event *to,
                      uint32_t at, uint32_t middle, uint32_t end)
{
    uint32_t a = at;
    uint32_t b = middle;
    for (; at != end; at++) {
        const bool first =
            b == end || (a != middle && from[a & f->log_mask].time <= from[b & f->log_mask].time);
        to[at & f->log_mask] = from[(first ? a++ : b++) & f->log_mask];
    }
}

/* What has been logged since the last time, by time. Indices run on and wrap with the ring. */
static void run_sort(struct fab *f)
{
    const uint32_t begin = f->log_sorted;
    const uint32_t n = f->log_tail - begin;
    for (uint32_t width = 1; width < n; width *= 2) {
        for (uint32_t at = 0; at < n; at += 2 * width)
            run_merge(f, f->log, f->log_spare, begin + at, begin + mrc_min32(at + width, n),
                      begin + mrc_min32(at + 2 * width, n));
        for (uint32_t i = 0; i < n; i++)
            f->log[(begin + i) & f->log_mask] = f->log_spare[(begin + i) & f->log_mask];
    }
    f->log_sorted = f->log_tail;
}

static void run_collect(struct fab *f)
{
    for (uint32_t h = 0; h < f->cfg.hosts; h++)
        fab_host_events(f, h);
    run_sort(f);
}

uint32_t fab_take_events(struct fab *f, struct fab_event *out, uint32_t max)
{
    uint32_t n = 0;
    for (; n < max && f->log_head != f->log_tail; n++)
        out[n] = f->log[f->log_head++ & f->log_mask];
    return n;
}

/* ---- running ---- */

int fab_run(struct fab *f, mrc_ns until, bool done)
{
    const mrc_ns end = until > MRC_NEVER - 1 - f->start ? MRC_NEVER - 1 : f->start + until;
    while (f->failure[0] == '\0' && f->heap.count != 0 && f->heap.item[0].at <= end &&
           !(done && f->left == 0))
        run_step(f);
    if (f->failure[0] == '\0' && !(done && f->left == 0) && end > f->now && end != MRC_NEVER - 1)
        f->now = end;
    run_collect(f);
    return f->failure[0] == '\0' ? MRC_OK : MRC_ERR_STATE;
}
