/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_queue.h"

enum { QUEUE_PPM = 1000000, QUEUE_SCALE = 1024 /* of virtual time: keeps small packets apart */ };

void sim_queue_init(struct sim_queue *q, const struct sim_queue_cfg *cfg, uint64_t seed)
{
    memset(q, 0, sizeof *q);
    q->cfg = *cfg;
    q->done_at = MRC_NEVER;
    mrc_rand_seed(&q->rand, seed);
}

static bool queue_full(const struct sim_queue *q, const struct sim_item *item)
{
    const uint32_t limit = q->cfg.limit_bytes[item->cls];
    return limit != 0 && q->waiting_bytes[item->cls] + item->len_bytes > limit;
}

/* The class that has had least for its weight; when equal, what is small and urgent goes first. */
static int queue_next_class(const struct sim_queue *q)
{
    int best = -1;
    for (int c = 0; c < SIM_CLASSES; c++)
        if (q->head[c] != NULL && (best < 0 || q->served[c] <= q->served[best]))
            best = c;
    return best;
}

/* Marked as it leaves, by what waits behind it: the freshest news of the queue there is. */
static bool queue_marks(struct sim_queue *q)
{
    const uint64_t lo = q->cfg.mark_lo_bytes;
    const uint64_t hi = q->cfg.mark_hi_bytes;
    const uint64_t waiting = q->waiting_bytes[SIM_DATA];
    if (hi == 0 || waiting <= lo)
        return false;
    return waiting >= hi ||
           mrc_rand_below(&q->rand, QUEUE_PPM) < (waiting - lo) * QUEUE_PPM / (hi - lo);
}

static void queue_start(struct sim_queue *q, mrc_ns now)
{
    const int c = queue_next_class(q);
    q->sending = NULL;
    q->done_at = MRC_NEVER;
    if (c < 0)
        return;
    struct sim_item *item = q->head[c];
    q->head[c] = item->next;
    if (q->head[c] == NULL)
        q->tail[c] = NULL;
    item->next = NULL;
    q->waiting_bytes[c] -= item->len_bytes;
    const uint32_t weight = q->cfg.weight[c] != 0 ? q->cfg.weight[c] : 1;
    q->served[c] += (uint64_t)item->len_bytes * QUEUE_SCALE / weight;
    if (c == SIM_DATA && item->ect && queue_marks(q)) {
        item->ce = true;
        q->stats.marked++;
    }
    q->stats.wait_ns[c] += now - item->pushed_ns;
    q->sending = item;
    const uint64_t work = (uint64_t)item->len_bytes * 8 * MRC_SEC + q->carry;
    q->done_at = now + work / q->cfg.rate_bps;
    q->carry = work % q->cfg.rate_bps; /* parts of a ns, or the rate would be a little too high */
}

/* Virtual time now: that of the class served next, or the latest when none waits. A class that was
 * empty begins there, or it would claim what it did not want before. */
static uint64_t queue_virtual_now(const struct sim_queue *q)
{
    const int c = queue_next_class(q);
    if (c >= 0)
        return q->served[c];
    uint64_t most = 0;
    for (int i = 0; i < SIM_CLASSES; i++)
        most = q->served[i] > most ? q->served[i] : most;
    return most;
}

static void queue_append(struct sim_queue *q, struct sim_item *item)
{
    const int c = item->cls;
    if (q->head[c] == NULL) {
        const uint64_t v = queue_virtual_now(q);
        q->served[c] = q->served[c] > v ? q->served[c] : v;
        q->head[c] = item;
    } else {
        q->tail[c]->next = item;
    }
    q->tail[c] = item;
    q->waiting_bytes[c] += item->len_bytes;
}

enum sim_verdict sim_queue_push(struct sim_queue *q, struct sim_item *item, mrc_ns now)
{
    const uint8_t came_as = item->cls;
    enum sim_verdict verdict = SIM_QUEUED;
    item->next = NULL;
    item->ce = false;
    item->trimmed = false;
    item->pushed_ns = now;
    if (queue_full(q, item) && item->cls == SIM_DATA && item->trimmable && q->cfg.trim_bytes != 0 &&
        item->len_bytes > q->cfg.trim_bytes) {
        item->cls = SIM_TRIMMED;
        item->len_bytes = q->cfg.trim_bytes;
        item->trimmed = true;
        verdict = SIM_CUT;
    }
    if (queue_full(q, item)) {
        q->stats.dropped[came_as]++;
        return SIM_DROPPED;
    }
    q->stats.trimmed += verdict == SIM_CUT;
    queue_append(q, item);
    if (q->sending == NULL)
        queue_start(q, now);
    return verdict;
}

mrc_ns sim_queue_deadline(const struct sim_queue *q) { return q->done_at; }

struct sim_item *sim_queue_pop(struct sim_queue *q, mrc_ns now)
{
    struct sim_item *item = q->sending;
    if (item == NULL || q->done_at > now)
        return NULL;
    q->stats.packets[item->cls]++;
    q->stats.bytes[item->cls] += item->len_bytes;
    queue_start(q, q->done_at);
    return item;
}

struct sim_item *sim_queue_flush(struct sim_queue *q)
{
    struct sim_item *item = q->sending;
    q->sending = NULL;
    q->done_at = MRC_NEVER;
    for (int c = 0; item == NULL && c < SIM_CLASSES; c++) {
        item = q->head[c];
        if (item == NULL)
            continue;
        q->head[c] = item->next;
        if (q->head[c] == NULL)
            q->tail[c] = NULL;
        q->waiting_bytes[c] -= item->len_bytes;
    }
    return item;
}

void sim_queue_set_rate(struct sim_queue *q, uint64_t rate_bps) { q->cfg.rate_bps = rate_bps; }
