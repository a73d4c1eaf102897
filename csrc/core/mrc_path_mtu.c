/* SPDX-License-Identifier: BSD-2-Clause */
/* A path whose MTU has shrunk without a word (ADR 92): full packets vanish, the small probes are
 * answered, so it comes back again and again (F.2), and each time a few more packets are lost.
 * Chance and congestion look like that for a while. So it takes many losses in a row of packets of
 * a size, none of which passed, over several recoveries in which every probe was answered, no mark
 * and no trim that would explain it, and other paths that deliver. */
#include "mrc_path_priv.h"

enum {
    PATH_HOLE_LOST = 16, /* one in two passes: 2^-16 that it looks like this */
    PATH_HOLE_HEALS = 3,
    /* Every IPv6 link takes 1280 bytes (RFC 8200), of which 128 may be outer headers: what is not
     * larger is not lost for its size. */
    PATH_HOLE_BYTES = 1280 - 128,
    PATH_NARROW_DOUBLINGS = 6, /* to about a minute */
};
static const mrc_ns PATH_NARROW_NS = MRC_SEC;

void mrc_path_sizes_passed(struct mrc_path_table *t, uint16_t i, uint32_t bytes, uint32_t n)
{
    if (i == MRC_EV_NONE)
        return;
    struct path_hole *h = &t->entry[i].hole;
    t->passed += n;
    path_load_seen(t, i, n);
    if (bytes > PATH_HOLE_BYTES)
        t->entry[i].narrow = 0;
    if (h->bytes != 0 && bytes >= h->bytes)
        *h = (struct path_hole){0};
}

void mrc_path_size_lost(struct mrc_path_table *t, uint16_t i, uint32_t bytes)
{
    if (i == MRC_EV_NONE || bytes <= PATH_HOLE_BYTES)
        return;
    struct path_hole *h = &t->entry[i].hole;
    if (h->bytes == 0)
        *h = (struct path_hole){.bytes = bytes, .passed = t->passed, .missed = t->missed};
    h->bytes = mrc_min32(h->bytes, bytes);
    h->lost++;
    t->missed++;
}

void path_hole_healed(struct mrc_path_table *t, uint16_t i)
{
    if (t->entry[i].hole.bytes != 0)
        t->entry[i].hole.heals++;
}

bool path_hole(const struct mrc_path_table *t, uint16_t i)
{
    const struct path_hole *h = &t->entry[i].hole;
    const uint64_t passed = t->passed - h->passed;
    const uint64_t missed = t->missed - h->missed - h->lost; /* elsewhere */
    return h->lost >= PATH_HOLE_LOST && h->heals >= PATH_HOLE_HEALS && passed >= PATH_HOLE_LOST &&
           missed <= passed;
}

/* What starves data alone for a few milliseconds, of a stricter class or by a pause, looks the
 * same; and a mended path need not wait for somebody to say so (ADR 94). */
mrc_ns path_narrow_ns(struct mrc_path_table *t, uint16_t i)
{
    struct path_entry *e = &t->entry[i];
    const mrc_ns wait = PATH_NARROW_NS << e->narrow;
    e->narrow = (uint8_t)mrc_min32(e->narrow + 1u, PATH_NARROW_DOUBLINGS);
    return wait;
}
