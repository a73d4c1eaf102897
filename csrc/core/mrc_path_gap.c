/* SPDX-License-Identifier: BSD-2-Clause */
/* What a loss says of its path (MRC D.5; ADR 77). S8 stops using a path at its first loss, which
 * finds broken links early, and turns against itself where every path loses alike: one packet in a
 * hundred, and a quarter of the paths is always out. So losses are compared: those of this entry
 * with those of the others, over the last few thousand packets. */
#include "mrc_path_priv.h"

/* What chance may do: up to twice the others' rate, and a few more. Three lost packets on a path
 * among paths that lose nothing are no broken path yet; the fourth is. */
enum { PATH_GAP_FACTOR = 2, PATH_GAP_CHANCE = 3 };

/* Doublings of the probes that heal, and the most there may be. */
enum { PATH_RELAPSES_MAX = 7, PATH_PROBATION_MAX = 255 };

void path_recent_halve(struct mrc_path_table *t, uint16_t i)
{
    struct path_entry *e = &t->entry[i];
    const uint32_t sent = e->recent_sent / 2;
    const uint32_t gaps = e->recent_gaps / 2;
    e->recent_sent -= sent;
    e->recent_gaps -= gaps;
    t->recent_sent -= sent;
    t->recent_gaps -= gaps;
    if (e->relapses > 0)
        e->relapses--;
}

void path_recent_forget(struct mrc_path_table *t, uint16_t i)
{
    struct path_entry *e = &t->entry[i];
    t->recent_sent -= e->recent_sent;
    t->recent_gaps -= e->recent_gaps;
    e->recent_sent = e->recent_gaps = 0;
    path_load_forget(t, i);
}

/* Of a path that loses one packet in twenty, three probes come back six times out of seven. It is
 * their number that tells it from a path that was mended: twice as many after each verdict, until
 * the path has done well for a while (ADR 116). A path that was silent is asked three times. */
uint32_t path_gap_probation(const struct mrc_path_table *t, const struct path_entry *e)
{
    const uint32_t doublings = e->relapses > 0 ? e->relapses - 1u : 0;
    return mrc_min32((uint32_t)t->successes_needed << doublings, PATH_PROBATION_MAX);
}

/* gaps <= factor x (what the others' rate makes of as many packets) + chance, without division. */
static bool path_gap_is_chance(const struct mrc_path_table *t, const struct path_entry *e)
{
    const uint64_t others_sent = t->recent_sent - e->recent_sent;
    const uint64_t others_gaps = t->recent_gaps - e->recent_gaps;
    return e->recent_gaps * others_sent <=
           PATH_GAP_FACTOR * e->recent_sent * others_gaps + PATH_GAP_CHANCE * others_sent;
}

static void path_gap_verdict(struct mrc_path_table *t, uint16_t i, mrc_ns sent_ns, mrc_ns now)
{
    struct path_entry *e = &t->entry[i];
    const bool was_bad = t->state[i] == MRC_EV_ASSUMED_BAD;
    mrc_path_on_loss(t, i, MRC_EV_R_LOSS, sent_ns, now);
    if (t->loss_rule != MRC_LOSS_FIRST && !was_bad && t->state[i] == MRC_EV_ASSUMED_BAD &&
        e->relapses < PATH_RELAPSES_MAX)
        e->relapses++; /* S8 compares nothing: there a chance loss is a verdict, too */
}

void mrc_path_on_gap(struct mrc_path_table *t, uint16_t i, mrc_ns sent_ns, mrc_ns now)
{
    if (i == MRC_EV_NONE)
        return;
    struct path_entry *e = &t->entry[i];
    if (sent_ns >= e->healed_ns) {
        e->recent_gaps++;
        t->recent_gaps++;
    }
    if (t->loss_rule == MRC_LOSS_COMPARED && path_gap_is_chance(t, e))
        e->stats.packets_lost++;
    else
        path_gap_verdict(t, i, sent_ns, now);
}
