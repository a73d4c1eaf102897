/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to an entry of the PathTable: verdicts, marks, returns, control, and the events that
 * tell of it (MRC D.5, D.7, D.10, C.5). */
#include "mrc_path_priv.h"

enum { PATH_PEAK_SHIFT = 12 }; /* the RTT peak forgets over 4096 samples */

/* ---- lists ---- */

void path_list_push(struct mrc_path_table *t, struct path_list *l, uint16_t i)
{
    struct path_entry *e = &t->entry[i];
    e->prev = l->tail;
    e->next = MRC_EV_NONE;
    if (l->tail != MRC_EV_NONE)
        t->entry[l->tail].next = i;
    else
        l->head = i;
    l->tail = i;
}

void path_list_drop(struct mrc_path_table *t, struct path_list *l, uint16_t i)
{
    const struct path_entry *e = &t->entry[i];
    if (e->prev != MRC_EV_NONE)
        t->entry[e->prev].next = e->next;
    else
        l->head = e->next;
    if (e->next != MRC_EV_NONE)
        t->entry[e->next].prev = e->prev;
    else
        l->tail = e->prev;
}

/* ---- events ---- */

void mrc_path_set_events(struct mrc_path_table *t, uint8_t mask)
{
    const uint8_t all = MRC_EV_EVENTS_GOOD | MRC_EV_EVENTS_BAD | MRC_EV_EVENTS_DENIED;
    t->event_want = mask == 0 ? all : mask;
}

/* SKIP is a way of being in service; a verdict held back is one of ASSUMED_BAD. */
static uint8_t path_event_kind(enum mrc_ev_state from, enum mrc_ev_state to)
{
    if (to == MRC_EV_DENIED)
        return MRC_EV_EVENTS_DENIED;
    return to == MRC_EV_ASSUMED_BAD || from == to ? MRC_EV_EVENTS_BAD : MRC_EV_EVENTS_GOOD;
}

static void path_event(struct mrc_path_table *t, uint16_t i, enum mrc_ev_state from,
                       enum mrc_ev_reason why, mrc_ns now)
{
    if ((t->event_want & path_event_kind(from, (enum mrc_ev_state)t->state[i])) == 0)
        return;
    if (t->event_in - t->event_out > t->event_mask) {
        t->event_drops++;
        return;
    }
    struct mrc_ev_event *v = &t->event[t->event_in++ & t->event_mask];
    *v = (struct mrc_ev_event){.time = now,
                               .ev = t->entry[i].cfg.ev,
                               .plane = t->entry[i].cfg.plane,
                               .from = (uint8_t)from,
                               .to = t->state[i],
                               .reason = (uint8_t)why,
                               .drop_count = t->event_drops};
    t->event_drops = 0;
}

int mrc_path_event_poll(struct mrc_path_table *t, struct mrc_ev_event *out)
{
    if (t->event_out == t->event_in)
        return 0;
    *out = t->event[t->event_out++ & t->event_mask];
    return 1;
}

int mrc_path_event_rest(struct mrc_path_table *t, struct mrc_ev_event *out)
{
    if (t->event_drops == 0)
        return 0;
    *out = (struct mrc_ev_event){.drop_count = t->event_drops};
    t->event_drops = 0;
    return 1;
}

/* ---- feedback ---- */

static void path_absolve(struct mrc_path_table *t, uint16_t i)
{
    if (t->entry[i].suspect) {
        path_list_drop(t, &t->suspects, i);
        t->suspects_up = (uint16_t)(t->suspects_up - path_up(t, i));
    }
    t->entry[i].suspect = false;
}

void mrc_path_on_sent(struct mrc_path_table *t, uint16_t i, uint32_t bytes, bool rtx)
{
    if (i == MRC_EV_NONE)
        return;
    struct mrc_path_stats *s = &t->entry[i].stats;
    s->packets_sent++;
    s->bytes_sent += bytes;
    s->retransmits += rtx;
    t->reverse.data_sent = true;
    t->recent_sent++;
    if (++t->entry[i].recent_sent == PATH_RECENT)
        path_recent_halve(t, i);
}

void mrc_path_on_sent_more(struct mrc_path_table *t, uint16_t i, uint32_t packets, uint32_t bytes)
{
    struct path_entry *e = &t->entry[i];
    MRC_ASSERT(i < t->count);
    e->stats.packets_sent += packets;
    e->stats.bytes_sent += (uint64_t)packets * bytes;
    const uint32_t left = PATH_RECENT - e->recent_sent;
    e->recent_sent += packets;
    t->recent_sent += packets;
    if (packets < left)
        return;
    e->recent_sent -= packets - left; /* as they were when that one left */
    t->recent_sent -= packets - left;
    path_recent_halve(t, i);
    e->recent_sent += packets - left;
    t->recent_sent += packets - left;
}

void path_sample(struct mrc_path_table *t, uint16_t i, mrc_ns rtt)
{
    struct path_entry *e = &t->entry[i];
    struct mrc_path_stats *s = &e->stats;
    s->rtt_count++;
    s->rtt_sum_ns += rtt;
    if (s->rtt_min_ns == 0 || rtt < s->rtt_min_ns)
        s->rtt_min_ns = mrc_max64(rtt, 1);
    s->rtt_max_ns = mrc_max64(s->rtt_max_ns, rtt);
    if (e->srtt_ns == 0) {
        e->srtt_ns = mrc_max64(rtt, 1);
        e->rttvar_ns = rtt / 2;
    } else {
        const mrc_ns off = rtt > e->srtt_ns ? rtt - e->srtt_ns : e->srtt_ns - rtt;
        e->rttvar_ns = e->rttvar_ns - e->rttvar_ns / 4 + off / 4;
        e->srtt_ns = mrc_max64(e->srtt_ns - e->srtt_ns / 8 + rtt / 8, 1);
    }
    if (rtt >= t->rtt_peak_ns)
        t->rtt_peak_ns = rtt;
    else
        t->rtt_peak_ns -= (t->rtt_peak_ns - rtt) >> PATH_PEAK_SHIFT;
}

void mrc_path_on_rtt(struct mrc_path_table *t, uint16_t i, mrc_ns rtt)
{
    if (i == MRC_EV_NONE)
        return;
    path_sample(t, i, rtt);
    path_absolve(t, i);
    if (path_usable(t, i))
        t->reverse.of[t->entry[i].cfg.plane] = i; /* D.8: it reaches the peer */
}

/* Already SKIP: not extended (D.5). */
void path_skip(struct mrc_path_table *t, uint16_t i, mrc_ns now)
{
    if (t->state[i] != MRC_EV_GOOD)
        return;
    path_put(t, i, MRC_EV_SKIP, t->entry[i].reserve);
    t->entry[i].skip_until_ns = path_load_until(t, i, now);
}

void mrc_path_on_mark(struct mrc_path_table *t, uint16_t i, uint8_t mark, mrc_ns now)
{
    if (i == MRC_EV_NONE || mark == 0 || mark > 2) /* 3 is reserved (A.7) */
        return;
    t->entry[i].stats.ecn_marks++;
    t->entry[i].hole = (struct path_hole){0}; /* congestion explains what is lost */
    if (mark == 2) {
        path_condemn(t, i, MRC_EV_R_ALWAYS_SKIP, now);
        return;
    }
    path_load_marked(t, i);
    path_skip(t, i, now);
}

void mrc_path_on_trim(struct mrc_path_table *t, uint16_t i, mrc_ns now)
{
    if (i == MRC_EV_NONE)
        return;
    t->entry[i].hole = (struct path_hole){0};
    t->entry[i].stats.trims++;
    path_load_seen(t, i, 1);
    path_load_marked(t, i);
    path_skip(t, i, now);
}

/* Asked after each packet, so it is counted. A suspect is in service: whatever ends that also
 * absolves or condemns it. */
bool mrc_path_all_bad(const struct mrc_path_table *t) { return t->suspects_up >= t->active; }

/* A verdict held back, for want of better entries. */
static void path_suspect(struct mrc_path_table *t, uint16_t i, enum mrc_ev_reason why, mrc_ns now)
{
    struct path_entry *e = &t->entry[i];
    if (e->suspect && (why != MRC_EV_R_MTU || e->suspect_why == MRC_EV_R_MTU))
        return;
    if (!e->suspect) {
        e->suspect = true;
        path_list_push(t, &t->suspects, i);
        t->suspects_up++;
    }
    e->suspect_why = (uint8_t)why;
    path_event(t, i, (enum mrc_ev_state)t->state[i], why, now);
}

void path_condemn(struct mrc_path_table *t, uint16_t i, enum mrc_ev_reason why, mrc_ns now)
{
    struct path_entry *e = &t->entry[i];
    const struct path_plane *pl = &t->plane[e->cfg.plane];
    const enum mrc_ev_state from = (enum mrc_ev_state)t->state[i];
    if ((why == MRC_EV_R_TIMEOUT || why == MRC_EV_R_LOSS) && path_hole(t, i))
        why = MRC_EV_R_MTU;
    const enum mrc_ev_state to = why == MRC_EV_R_MTU ? MRC_EV_DENIED : MRC_EV_ASSUMED_BAD;
    if (from >= to)
        return;
    const bool promote = path_usable(t, i) && pl->spare != 0;
    if (path_usable(t, i) && path_up(t, i) && !promote && t->active <= t->min_active) {
        path_suspect(t, i, why, now);
        return;
    }
    path_absolve(t, i);
    if (promote) { /* a random one of the same plane (D.7) */
        const uint32_t pick = mrc_rand_below(&t->rand, pl->spare);
        const uint16_t j = t->order[pl->first + pl->usable + pick];
        path_put(t, j, (enum mrc_ev_state)t->state[j], false);
    }
    path_probe_stop(t, i);
    path_put(t, i, to, promote || e->reserve);
    path_event(t, i, from, why, now);
    if (to == MRC_EV_DENIED) {
        path_probe_narrow(t, i, now);
        return;
    }
    e->stats.bad_since_ns = now;
    path_probe_start(t, i);
}

/* Verdicts the floor held back, newest first, as far as there is room now. */
static void path_condemn_suspects(struct mrc_path_table *t, mrc_ns now)
{
    while (t->suspects.tail != MRC_EV_NONE && t->active > t->min_active) {
        const uint16_t i = t->suspects.tail;
        path_condemn(t, i, (enum mrc_ev_reason)t->entry[i].suspect_why, now);
    }
}

/* Back to work from ASSUMED_BAD or DENIED. */
static void path_return(struct mrc_path_table *t, uint16_t i, enum mrc_ev_state to,
                        enum mrc_ev_reason why, mrc_ns now)
{
    const enum mrc_ev_state from = (enum mrc_ev_state)t->state[i];
    path_probe_stop(t, i);
    path_put(t, i, to, t->entry[i].reserve);
    t->entry[i].healed_ns = now;
    path_recent_forget(t, i); /* the next verdict is about what it does from now on */
    if (from == MRC_EV_ASSUMED_BAD)
        t->entry[i].stats.good_since_ns = now;
    path_event(t, i, from, why, now);
    path_condemn_suspects(t, now);
}

void path_heal(struct mrc_path_table *t, uint16_t i, enum mrc_ev_state to, mrc_ns now)
{
    if (to == MRC_EV_GOOD) /* a marked answer says that there is congestion */
        path_hole_healed(t, i);
    path_return(t, i, to, MRC_EV_R_PROBE, now);
}

void path_narrow_over(struct mrc_path_table *t, uint16_t i, mrc_ns now)
{
    t->entry[i].hole = (struct path_hole){0};
    path_return(t, i, MRC_EV_GOOD, MRC_EV_R_MTU, now);
}

void mrc_path_on_loss(struct mrc_path_table *t, uint16_t i, enum mrc_ev_reason why, mrc_ns sent_ns,
                      mrc_ns now)
{
    if (i == MRC_EV_NONE)
        return;
    t->entry[i].stats.packets_lost++;
    if (sent_ns >= t->entry[i].healed_ns)
        path_condemn(t, i, why, now);
}

/* ---- control ---- */

int mrc_path_set_state(struct mrc_path_table *t, uint16_t i, enum mrc_ev_state s, mrc_ns now)
{
    if (i >= t->count || (s != MRC_EV_GOOD && s != MRC_EV_DENIED))
        return MRC_ERR_INVAL;
    const enum mrc_ev_state from = (enum mrc_ev_state)t->state[i];
    path_absolve(t, i);
    t->entry[i].hole = (struct path_hole){0};
    t->entry[i].narrow = 0;
    if (s == MRC_EV_GOOD) {
        if (from > MRC_EV_SKIP)
            path_return(t, i, s, MRC_EV_R_CONTROL, now);
        else
            path_put(t, i, s, t->entry[i].reserve);
    } else if (from != MRC_EV_DENIED) {
        path_probe_stop(t, i);
        path_put(t, i, s, t->entry[i].reserve);
        path_event(t, i, from, MRC_EV_R_CONTROL, now);
    } else {
        path_probe_stop(t, i); /* for good: it may have been denied for its MTU */
    }
    return MRC_OK;
}

static void path_rehash(struct mrc_path_table *t)
{
    memset(t->hash, 0xFF, sizeof(uint16_t) << t->hash_bits);
    for (uint16_t i = 0; i < t->count; i++)
        (void)path_hash_add(t, i);
}

int mrc_path_replace(struct mrc_path_table *t, uint16_t i, const struct mrc_path_entry_cfg *to,
                     enum mrc_ev_state s, mrc_ns now)
{
    if (i >= t->count || (s != MRC_EV_GOOD && s != MRC_EV_DENIED) ||
        to->plane != t->entry[i].cfg.plane)
        return MRC_ERR_INVAL;
    const uint16_t same = mrc_path_find(t, to->ev);
    if (same != MRC_EV_NONE && same != i)
        return MRC_ERR_INVAL;
    struct path_entry *e = &t->entry[i];
    path_absolve(t, i);
    path_probe_stop(t, i);
    path_put(t, i, s, e->reserve);
    e->cfg = *to;
    e->cfg.addr = path_addr_of(t, to->plane);
    e->srtt_ns = 0;
    e->rttvar_ns = 0;
    e->healed_ns = now; /* losses of the former EV are not its own */
    e->hole = (struct path_hole){0};
    e->narrow = 0;
    memset(&e->stats, 0, sizeof e->stats);
    path_recent_forget(t, i);
    e->relapses = 0;
    path_rehash(t);
    path_condemn_suspects(t, now);
    return MRC_OK;
}

void mrc_path_set_planes(struct mrc_path_table *t, uint32_t local_up, uint32_t remote_up)
{
    const uint32_t changed = (local_up & remote_up & ~1u) ^ t->up;
    t->up ^= changed;
    t->local_up = local_up;
    t->active = 0;
    for (uint32_t p = 1; p <= MRC_PLANE_MAX; p++)
        if ((t->up >> p & 1) != 0)
            t->active = (uint16_t)(t->active + t->plane[p].usable);
    for (uint16_t i = t->suspects.head; changed != 0 && i != MRC_EV_NONE; i = t->entry[i].next)
        if ((changed >> t->entry[i].cfg.plane & 1) != 0)
            t->suspects_up = (uint16_t)(t->suspects_up + (path_up(t, i) ? 1 : -1));
    for (uint16_t i = 0; changed != 0 && i < t->count; i++) {
        if (t->state[i] != MRC_EV_ASSUMED_BAD || (changed >> t->entry[i].cfg.plane & 1) == 0)
            continue;
        path_probe_plane(t, i);
    }
}

void mrc_path_rtt_anew(struct mrc_path_table *t)
{
    for (uint16_t i = 0; i < t->count; i++) {
        t->entry[i].stats.rtt_min_ns = 0;
        t->entry[i].stats.rtt_max_ns = 0;
    }
}
