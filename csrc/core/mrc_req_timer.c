/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester, time: local ACK timer and retry budget (B.9), when to probe the tail (B.11), when to
 * ask for a transport ACK again (B.6). */
#include "mrc_req.h"

enum {
    MRC_TICK_LOSE_MAX = 256, /* timed-out slots taken by one tick */
    MRC_PROBE_SHIFT_MAX = 8,
    MRC_RETRY_FOREVER = 25, /* exp_cnt */
};
#define MRC_PROBE_FLOOR_NS (100 * MRC_USEC) /* software (B.11) */
#define MRC_QUESTION_MOST_NS (32 * MRC_MSEC)

/* ---- local ACK timer ---- */

/* B.9: T(i) = T0 x 2^max(0, i - linear_cnt), capped at 1.024 us x 2^24. T0 is what was configured,
 * but never less than the reports seen took: a timer that runs out before an answer can come sends
 * everything twice, and the queue that makes it too short only grows by that. */
static mrc_ns req_interval_ns(const struct mrc_req *r, uint32_t attempt)
{
    const mrc_ns most = (mrc_ns)1024 << 24;
    const mrc_ns seen = r->report_max_ns + r->report_max_ns / 2;
    const mrc_ns base = mrc_min64(mrc_max64((mrc_ns)1024 << r->timeout, seen), most);
    const uint32_t shift = attempt > r->linear_cnt ? attempt - r->linear_cnt : 0;
    return mrc_min64(base << mrc_min32(shift, 24), most);
}

mrc_ns mrc_req_timeout_ns(const struct mrc_req *r) { return req_interval_ns(r, r->backoff); }

/* A decaying maximum over all paths (field report 17); it halves in about 45000 packets. */
void mrc_req_report_time(struct mrc_req *r, mrc_ns took_ns, uint32_t packets)
{
    mrc_ns most = r->report_max_ns;
    for (; packets > 0 && most != took_ns; packets--)
        most = mrc_max64(took_ns, most - most / 65536);
    r->backoff = 0;
    r->report_max_ns = most;
    r->report_min_ns = mrc_min64(took_ns, r->report_min_ns);
}

void mrc_req_progress(struct mrc_req *r, mrc_ns now)
{
    r->retry = 0;
    r->news_ns = r->quiet_since = now;
}

static enum mrc_wc_status req_spend(const struct mrc_req *r, uint32_t *count)
{
    if (r->exp_cnt == MRC_RETRY_FOREVER)
        return MRC_WC_SUCCESS;
    if (*count >= (uint32_t)r->linear_cnt + r->exp_cnt)
        return MRC_WC_RETRY_EXC_ERR;
    ++*count;
    return MRC_WC_SUCCESS;
}

static enum mrc_wc_status req_spend_retry(struct mrc_req *r) { return req_spend(r, &r->retry); }

/* A responder that is short of room says so as often as it is asked, and a queue that cuts of each
 * packet: a round trip through full queues holds dozens of the shortest ones. Were each of those to
 * count, the budget would be gone before the report of what did get through can be here. So
 * refusals are borne as long as silence is (ADR 74, 117). */
enum mrc_wc_status mrc_req_nack_retry(struct mrc_req *r, mrc_ns now, mrc_ns round_trip_ns)
{
    const mrc_ns pace = mrc_max64(round_trip_ns, req_interval_ns(r, r->retry));
    r->quiet_since = now; /* the peer has spoken, and pays by this */
    if (r->nack_counted_ns != 0 && now - r->nack_counted_ns < pace)
        return MRC_WC_SUCCESS;
    r->nack_counted_ns = now;
    return req_spend_retry(r);
}

/* A timeout: wait longer for the next answer, and spend a retry. Packets that left one after the
 * other run out one after the other: within half an interval that is one event. A retry lasts a
 * whole interval, that of its own number: those that are out beside each other do not shorten the
 * wait for the peer, which is T(0), T(1), ... one after the other, however many they are; and where
 * the interval in force has run ahead of the retries they do not stretch it either. */
static enum mrc_wc_status req_timed_out(struct mrc_req *r, mrc_ns now, mrc_ns interval_ns)
{
    if (now - r->backoff_ns < interval_ns / 2)
        return MRC_WC_SUCCESS;
    r->backoff_ns = now;
    if (r->backoff < 64)
        r->backoff++;
    if (now - r->retry_spent_ns < mrc_min64(interval_ns, req_interval_ns(r, r->retry)))
        return MRC_WC_SUCCESS;
    r->retry_spent_ns = now;
    return req_spend_retry(r);
}

static mrc_ns req_packet_timer(const struct mrc_req *r)
{
    /* D.6: the timers go on while no path is usable, or a peer that is gone would never be noticed:
     * the probes that should heal a path are answered by its QP. */
    if (r->tx.head == MRC_SLOT_NIL)
        return r->no_path_since == MRC_NEVER ? MRC_NEVER : r->no_path_since + mrc_req_timeout_ns(r);
    return r->tx.slot[r->tx.head].sent_ns + mrc_req_timeout_ns(r);
}

/* The timer of a packet starts at its transmission; T is the QP's, so the oldest expires first. And
 * whatever inference has sent again meanwhile, which starts the packet's timer anew: when nothing
 * has come of all that is out for T, that is a timeout too, or a QP whose data never arrives but
 * whose probes do would never end. While nothing may leave, that time does not run. */
static mrc_ns req_timer(const struct mrc_req *r)
{
    if (mrc_txtrack_outstanding(&r->tx) > 0 && r->stalled_since == MRC_NEVER)
        return mrc_min64(req_packet_timer(r), r->quiet_since + mrc_req_timeout_ns(r));
    return req_packet_timer(r);
}

/* The longer intervals of B.9 are a wait for the peer, not for the network: what has been out for
 * T(0) is not in the network any more. Its room in the window is lent to the other QPs of the
 * controller, or one whose peer is gone would starve them for as long as it waits. */
static mrc_ns req_park_at(const struct mrc_req *r)
{
    const mrc_ns t0 = req_interval_ns(r, 0);
    if (r->parked != 0 || r->inflight <= 0 || r->tx.head == MRC_SLOT_NIL ||
        mrc_req_timeout_ns(r) == t0)
        return MRC_NEVER;
    return r->tx.slot[r->tx.tail].sent_ns + t0;
}

void mrc_req_park(struct mrc_req *r, const struct mrc_req_ctx *c)
{
    r->parked = r->inflight;
    r->inflight = 0;
    mrc_cc_release(c->cc, r->parked);
}

void mrc_req_unpark(struct mrc_req *r, const struct mrc_req_ctx *c)
{
    if (r->parked == 0)
        return;
    mrc_cc_release(c->cc, -r->parked);
    r->inflight += r->parked;
    r->parked = 0;
}

mrc_ns mrc_req_deadline(const struct mrc_req *r)
{
    const mrc_ns t = mrc_min64(req_timer(r), req_park_at(r));
    return mrc_min64(mrc_min64(t, r->probe_at), mrc_min64(r->ack_at, r->hold_at));
}

/* All packets whose timer has run out, as one timeout event. */
static enum mrc_wc_status req_expire(struct mrc_req *r, const struct mrc_req_ctx *c)
{
    const mrc_ns t = mrc_req_timeout_ns(r);
    c->stats->timeouts++;
    r->quiet_since = c->now;
    if (r->tx.head == MRC_SLOT_NIL)
        r->no_path_since = c->now;
    for (uint32_t n = 0; n < MRC_TICK_LOSE_MAX && r->tx.head != MRC_SLOT_NIL; n++) {
        struct mrc_slot *s = &r->tx.slot[r->tx.head];
        if (s->sent_ns + t > c->now)
            break;
        if (c->in_order) {
            mrc_req_go_back(r, c, mrc_psn(s->psn));
            break;
        }
        mrc_req_lose(r, c, s, MRC_EV_R_TIMEOUT);
    }
    return req_timed_out(r, c->now, t);
}

/* ---- tail probe, transport ACK ---- */

/* No question is asked sooner than this. Where answers take longer than any queue explains that
 * control would leave standing, a host has much to do: half as long again as they take. To ask
 * earlier gives it more to do, and answers take longer still. But the answer should be here before
 * the timer runs out, and one long pause of a host must not slow what comes after (ADR 135). */
static mrc_ns req_question_floor(const struct mrc_req *r, const struct mrc_req_ctx *c)
{
    const mrc_ns queued = mrc_cc_base_rtt(c->cc) + 4 * mrc_cc_target_delay(c->cc);
    if (r->srtt_ns <= queued)
        return MRC_PROBE_FLOOR_NS;
    const mrc_ns timer = req_interval_ns(r, 0);
    const mrc_ns left = timer > r->srtt_ns ? timer - r->srtt_ns : 0;
    const mrc_ns most = mrc_min64(left, MRC_QUESTION_MOST_NS);
    return mrc_max64(MRC_PROBE_FLOOR_NS, mrc_min64(r->srtt_ns + r->srtt_ns / 2, most));
}

/* Interval until the next tail probe: short when nothing else will bring a SACK (B.11). */
static mrc_ns req_probe_interval(const struct mrc_req *r, const struct mrc_req_ctx *c)
{
    const mrc_ns rtt = mrc_cc_base_rtt(c->cc);
    const bool tail = r->next == r->tail && r->tx.lost_count == 0;
    mrc_ns t = tail ? rtt + mrc_cc_target_delay(c->cc) : 3 * rtt;
    if (r->probe_shift > 0)
        t = (5 * rtt) << (r->probe_shift - 1);
    return mrc_max64(t, req_question_floor(r, c));
}

/* The transport ACK leaves right behind the SACK that said "all here", so its absence shows early;
 * asked for again ever more slowly, at the latest when the local ACK timer runs out (B.6, H16). */
static mrc_ns req_ack_at(const struct mrc_req *r, const struct mrc_req_ctx *c)
{
    const mrc_ns t = mrc_cc_base_rtt(c->cc) + mrc_cc_target_delay(c->cc);
    return mrc_min64(c->now + (mrc_max64(t, req_question_floor(r, c)) << r->ack_shift),
                     r->ack_since + req_interval_ns(r, r->ack_retry));
}

/* Is a transport ACK owed that would complete something? The oldest request has arrived, and so has
 * a packet that asked for one, in it or after it. */
static bool req_ack_owed(const struct mrc_req *r)
{
    if (r->head == r->next)
        return false;
    const struct mrc_psn last = mrc_wqe_last(&r->sq[r->head & r->sq_mask]);
    return mrc_psn_diff(last, r->tx.unack) <= 0 && mrc_psn_diff(last, r->tx.ar_passed) <= 0;
}

void mrc_req_rearm(struct mrc_req *r, const struct mrc_req_ctx *c)
{
    r->probe_shift = 0;
    const mrc_ns from = r->hold_at != MRC_NEVER ? r->hold_at : c->now;
    const bool probes = mrc_txtrack_outstanding(&r->tx) > 0 && !c->in_order;
    r->probe_at = probes ? from + req_probe_interval(r, c) : MRC_NEVER;
    if (mrc_txtrack_outstanding(&r->tx) == 0 && r->inflight != 0) {
        mrc_cc_release(c->cc, r->inflight);
        r->inflight = 0;
    }
    if (r->backlog == 0 && mrc_psn_eq(r->tx.unack, r->tx.max_sent))
        mrc_txtrack_narrow(&r->tx, &c->env->pool);
    if (!req_ack_owed(r)) {
        r->ack_at = MRC_NEVER;
        r->ack_shift = 0;
    } else if (r->ack_at == MRC_NEVER) {
        r->ack_since = c->now;
        r->ack_at = req_ack_at(r, c);
    }
}

/* The wait for a transport ACK has lasted. */
static enum mrc_wc_status req_ack_late(struct mrc_req *r, const struct mrc_req_ctx *c)
{
    enum mrc_wc_status status = MRC_WC_SUCCESS;
    const mrc_ns t = req_interval_ns(r, r->ack_retry);
    const mrc_ns end = r->ack_since + t;
    if (r->ack_shift > 0 && c->now < end && end - c->now < MRC_PROBE_FLOOR_NS) {
        r->ack_at = end; /* the interval has grown meanwhile, and one question is enough */
        return MRC_WC_SUCCESS;
    }
    r->ack_query_due = true;
    if (r->ack_shift < MRC_PROBE_SHIFT_MAX)
        r->ack_shift++;
    if (c->now - r->ack_since >= t) {
        status = req_spend(r, &r->ack_retry);
        r->ack_since = c->now;
    }
    r->ack_at = req_ack_at(r, c);
    return status;
}

enum mrc_wc_status mrc_req_tick(struct mrc_req *r, const struct mrc_req_ctx *c)
{
    enum mrc_wc_status status = MRC_WC_SUCCESS;
    if (r->hold_at <= c->now)
        r->hold_at = MRC_NEVER;
    if (req_park_at(r) <= c->now)
        mrc_req_park(r, c);
    if (r->probe_at <= c->now) {
        r->probe_due = true;
        if (r->probe_shift < MRC_PROBE_SHIFT_MAX)
            r->probe_shift++;
        r->probe_at = c->now + req_probe_interval(r, c);
    }
    if (r->ack_at <= c->now)
        status = req_ack_late(r, c);
    if (status == MRC_WC_SUCCESS && req_timer(r) <= c->now)
        status = req_expire(r, c);
    return status;
}
