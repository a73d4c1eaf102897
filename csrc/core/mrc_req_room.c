/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester: the room that a responder short of something seems to have (MRC B.7). It refuses with
 * a NACK what it has no room for, and to send that again at once gets the same answer. So how far
 * above unack we send is halved, at most once per round trip, and grows again by what arrives: half
 * of what leaves is refused at worst, and one packet is always tried. If even the next one in order
 * is refused, nothing leaves for a while, twice as long each time. */
#include "mrc_req.h"

enum { MRC_ROOM_SHIFT_MAX = 16 };
#define MRC_ROOM_PAUSE_NS (100 * MRC_USEC) /* shortest wait; software */

/* In turns to come there is as much to send, as far as the backlog says; and the last packet that
 * there is room for asks for an answer. */
void mrc_req_widen(struct mrc_req *r, const struct mrc_req_ctx *c, size_t max)
{
    const uint32_t out = (uint32_t)mrc_psn_diff(r->tx.max_sent, r->tx.unack);
    const uint64_t want = out + mrc_min64(r->backlog, 2 * max);
    if (want > mrc_txtrack_room(&r->tx))
        mrc_txtrack_widen(&r->tx, &c->env->pool, (uint32_t)mrc_min64(want, r->window));
}

void mrc_req_room_start(struct mrc_req *r)
{
    r->room = MRC_ROOM_ALL;
    r->room_cut_ns = 0;
    r->room_shift = 0;
    r->hold_at = MRC_NEVER;
}

void mrc_req_room_short(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_psn psn)
{
    const mrc_ns round_trip = mrc_max64(mrc_cc_base_rtt(c->cc), MRC_ROOM_PAUSE_NS);
    const int32_t above = mrc_psn_diff(psn, r->tx.unack);
    if (r->room_cut_ns == 0 || c->now - r->room_cut_ns >= round_trip) {
        const uint32_t reach = (uint32_t)mrc_psn_diff(r->tx.max_sent, r->tx.unack);
        const uint32_t half = mrc_min32(r->room, reach) / 2;
        r->room = half > 0 ? half : 1;
        r->room_cut_ns = c->now;
    }
    if (above != 1 || r->hold_at != MRC_NEVER)
        return;
    const mrc_ns wait = mrc_min64(round_trip << r->room_shift, mrc_req_timeout_ns(r));
    r->hold_at = c->now + wait;
    if (r->probe_at != MRC_NEVER) /* there is nothing to ask about meanwhile */
        r->probe_at = mrc_max64(r->probe_at, r->hold_at + MRC_ROOM_PAUSE_NS);
    if (r->room_shift < MRC_ROOM_SHIFT_MAX)
        r->room_shift++;
}

void mrc_req_room_news(struct mrc_req *r, uint32_t packets)
{
    r->room_shift = 0;
    if (r->room < MRC_ROOM_ALL)
        r->room += packets;
}
