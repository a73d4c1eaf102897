/* SPDX-License-Identifier: BSD-2-Clause */
/* Probing of ASSUMED_BAD entries (MRC F.2). A bad entry is either waiting for its next turn, ready,
 * or waiting for an answer; the first and the last have a timer in the table's heap. */
#include "mrc_path_priv.h"

/* Longer than any answer worth waiting for; bounds what one absurd RTT sample can do. */
static const mrc_ns PATH_PROBE_TIMEOUT_MAX_NS = MRC_SEC;

static uint16_t path_probe_index(const struct mrc_path_table *t, const struct mrc_heap_node *n)
{
    return (uint16_t)((const struct path_entry *)(const void *)n - t->entry);
}

/* Leave the step the entry is in, whichever. */
static void path_probe_leave(struct mrc_path_table *t, uint16_t i)
{
    struct path_entry *e = &t->entry[i];
    switch ((enum path_probe_step)e->probe) {
    case PATH_PROBE_OFF: break;
    case PATH_PROBE_NARROW:
    case PATH_PROBE_LATER: mrc_heap_remove(&t->timers, &e->timer); break;
    case PATH_PROBE_READY: path_list_drop(t, &t->ready, i); break;
    case PATH_PROBE_WAITING:
        mrc_heap_remove(&t->timers, &e->timer);
        t->probes_out--;
        break;
    }
    e->probe = PATH_PROBE_OFF;
}

static void path_probe_ready(struct mrc_path_table *t, uint16_t i)
{
    path_probe_leave(t, i);
    if (!path_up(t, i))
        return; /* path_probe_plane goes on */
    t->entry[i].probe = PATH_PROBE_READY;
    path_list_push(t, &t->ready, i);
}

/* Next probe one interval after the last one left. */
static mrc_ns path_probe_next(const struct path_entry *e)
{
    return e->probe_sent_ns[e->probe_seq] + e->probe_interval_ns;
}

static void path_probe_later(struct mrc_path_table *t, uint16_t i)
{
    struct path_entry *e = &t->entry[i];
    path_probe_leave(t, i);
    e->probe = PATH_PROBE_LATER;
    mrc_heap_set(&t->timers, &e->timer, path_probe_next(e));
}

static void path_probe_again(struct mrc_path_table *t, uint16_t i, mrc_ns now)
{
    if (path_probe_next(&t->entry[i]) <= now)
        path_probe_ready(t, i);
    else
        path_probe_later(t, i);
}

static void path_probe_failed(struct mrc_path_table *t, uint16_t i, mrc_ns now)
{
    struct path_entry *e = &t->entry[i];
    e->hole.heals = 0; /* not only large packets are lost */
    e->successes = 0;
    e->probe_interval_ns = mrc_min64(2 * e->probe_interval_ns, t->interval_max_ns);
    path_probe_again(t, i, now);
}

void path_probe_start(struct mrc_path_table *t, uint16_t i)
{
    struct path_entry *e = &t->entry[i];
    e->probe_interval_ns = t->interval_ns;
    e->probe_open = 0;
    e->successes = 0;
    path_probe_ready(t, i);
}

void path_probe_stop(struct mrc_path_table *t, uint16_t i)
{
    path_probe_leave(t, i);
    t->entry[i].probe_open = 0;
}

void path_probe_narrow(struct mrc_path_table *t, uint16_t i, mrc_ns now)
{
    path_probe_stop(t, i);
    t->entry[i].probe = PATH_PROBE_NARROW;
    mrc_heap_set(&t->timers, &t->entry[i].timer, now + path_narrow_ns(t, i));
}

/* A plane that flaps must not make us send more, nor sooner: a probe on its way keeps its place in
 * the budget until it is overdue, and the next one keeps to the interval that was reached. */
void path_probe_plane(struct mrc_path_table *t, uint16_t i)
{
    struct path_entry *e = &t->entry[i];
    e->probe_open = 0;
    e->successes = 0;
    if (e->probe == PATH_PROBE_WAITING)
        return;
    if (path_up(t, i))
        path_probe_later(t, i); /* that may be past: then the next tick */
    else
        path_probe_leave(t, i);
}

/* Field report 39: a timeout below the RTT under load would take every path for a dead one. */
static mrc_ns path_probe_timeout(const struct mrc_path_table *t)
{
    return mrc_min64(mrc_max64(t->timeout_ns, 2 * t->rtt_peak_ns), PATH_PROBE_TIMEOUT_MAX_NS);
}

bool mrc_path_probe_pending(const struct mrc_path_table *t)
{
    return t->ready.head != MRC_EV_NONE && t->probes_out < t->probes_max;
}

uint16_t mrc_path_probe_due(struct mrc_path_table *t, uint16_t *id, mrc_ns now)
{
    mrc_path_tick(t, now);
    if (!mrc_path_probe_pending(t))
        return MRC_EV_NONE;
    const uint16_t i = t->ready.head;
    struct path_entry *e = &t->entry[i];
    path_probe_leave(t, i);
    e->probe_seq = (uint8_t)((e->probe_seq + 1) % PATH_PROBE_SEQS);
    e->probe_open = (uint8_t)(e->probe_open | 1u << e->probe_seq);
    e->probe_sent_ns[e->probe_seq] = now;
    e->probe = PATH_PROBE_WAITING;
    e->stats.probes_sent++;
    t->probes_out++;
    mrc_heap_set(&t->timers, &e->timer, now + path_probe_timeout(t));
    *id = (uint16_t)(i | e->probe_seq << 12);
    return i;
}

/* One more success in a row. True: that was enough. */
static bool path_probe_success(struct mrc_path_table *t, uint16_t i, uint8_t mark, mrc_ns now)
{
    struct path_entry *e = &t->entry[i];
    e->successes++;
    if (e->successes >= path_gap_probation(t, e)) {
        path_heal(t, i, mark == 1 ? MRC_EV_SKIP : MRC_EV_GOOD, now);
        return true;
    }
    return false;
}

void mrc_path_on_answer(struct mrc_path_table *t, uint16_t i, uint8_t mark, mrc_ns now)
{
    if (i != MRC_EV_NONE && t->state[i] == MRC_EV_ASSUMED_BAD && mark <= 1)
        (void)path_probe_success(t, i, mark, now);
}

uint16_t mrc_path_on_probe(struct mrc_path_table *t, uint16_t id, uint8_t mark, mrc_ns now)
{
    const uint16_t i = id & 0xFFF;
    const uint8_t seq = (uint8_t)(id >> 12);
    if (seq >= PATH_PROBE_SEQS || i >= t->count)
        return MRC_EV_NONE;
    struct path_entry *e = &t->entry[i];
    if ((e->probe_open >> seq & 1) == 0)
        return MRC_EV_NONE;
    e->probe_open = (uint8_t)(e->probe_open & ~(1u << seq));
    e->stats.probes_answered++;
    /* A late one as well: it says how long to wait the next time. */
    path_sample(t, i, now - e->probe_sent_ns[seq]);
    if (mark > 1) { /* the peer asks us to stay away (D.5) */
        path_probe_failed(t, i, now);
        return i;
    }
    if (path_probe_success(t, i, mark, now))
        return i;
    e->probe_interval_ns = t->interval_ns;
    if (seq == e->probe_seq || e->probe == PATH_PROBE_LATER)
        path_probe_again(t, i, now);
    return i;
}

mrc_ns mrc_path_deadline(const struct mrc_path_table *t)
{
    return mrc_min64(mrc_heap_key(&t->timers), t->reverse.at);
}

/* Each timer due leaves the heap or comes back later than now: bounded by the number of entries. */
void mrc_path_tick(struct mrc_path_table *t, mrc_ns now)
{
    while (mrc_heap_key(&t->timers) <= now) {
        const uint16_t i = path_probe_index(t, mrc_heap_min(&t->timers));
        if (t->entry[i].probe == PATH_PROBE_WAITING)
            path_probe_failed(t, i, now);
        else if (t->entry[i].probe == PATH_PROBE_NARROW)
            path_narrow_over(t, i, now);
        else
            path_probe_ready(t, i);
    }
    path_reverse_tick(t, now);
}
