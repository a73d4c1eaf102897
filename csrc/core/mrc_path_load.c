/* SPDX-License-Identifier: BSD-2-Clause */
/* How long a mark keeps its path out of use (MRC D.5, D.6; ADR 96). A turn is enough where a table
 * has as many entries as packets in flight, and where all paths are busy alike. With few entries it
 * is over before what was sent into the congestion has even been reported, and however many marks
 * come, a third of the packets goes on that way. So marks are compared, as losses are: an entry
 * that is marked while the others of its plane are not stays out for round trips, twice as many
 * each time. */
#include "mrc_path_priv.h"

enum {
    PATH_LOAD_RECENT = 64, /* packets after which the counts of an entry are halved */
    PATH_LOAD_FACTOR = 2,  /* what chance may do: twice the others' rate, and a few more */
    PATH_LOAD_CHANCE = 4,
    PATH_SKIPS_MAX = 5, /* sixteen round trips */
};
static const mrc_ns PATH_SKIP_MAX_NS = MRC_SEC;

static void path_load_halve(struct mrc_path_table *t, uint16_t i)
{
    struct path_load *l = &t->entry[i].load;
    struct path_load *sum = &t->load[t->entry[i].cfg.plane];
    sum->seen -= l->seen - l->seen / 2;
    sum->marked -= l->marked - l->marked / 2;
    l->seen /= 2;
    l->marked /= 2;
}

void path_load_seen(struct mrc_path_table *t, uint16_t i, uint32_t n)
{
    t->load[t->entry[i].cfg.plane].seen += n;
    t->entry[i].load.seen += n;
    while (t->entry[i].load.seen >= PATH_LOAD_RECENT)
        path_load_halve(t, i);
}

void path_load_marked(struct mrc_path_table *t, uint16_t i)
{
    t->load[t->entry[i].cfg.plane].marked++;
    if (++t->entry[i].load.marked == PATH_LOAD_RECENT)
        path_load_halve(t, i);
}

void path_load_forget(struct mrc_path_table *t, uint16_t i)
{
    struct path_entry *e = &t->entry[i];
    t->load[e->cfg.plane].seen -= e->load.seen;
    t->load[e->cfg.plane].marked -= e->load.marked;
    e->load = (struct path_load){0};
    e->skips = 0;
    e->skip_until_ns = 0;
}

/* marked > factor x (what the others' rate makes of as many packets) + chance, without division.
 * Never where there is nobody to compare with. */
static bool path_load_stands_out(const struct mrc_path_table *t, const struct path_entry *e)
{
    const struct path_load *sum = &t->load[e->cfg.plane];
    const uint64_t others_seen = sum->seen - e->load.seen;
    const uint64_t others_marked = sum->marked - e->load.marked;
    return e->load.marked * others_seen >
           PATH_LOAD_FACTOR * e->load.seen * others_marked + PATH_LOAD_CHANCE * others_seen;
}

mrc_ns path_load_until(struct mrc_path_table *t, uint16_t i, mrc_ns now)
{
    struct path_entry *e = &t->entry[i];
    if (t->skip_rule == MRC_SKIP_TURN || !path_load_stands_out(t, e)) {
        e->skips = 0;
        return 0;
    }
    if (e->skips < PATH_SKIPS_MAX)
        e->skips++;
    return now + mrc_min64(e->srtt_ns << (e->skips - 1), PATH_SKIP_MAX_NS);
}
