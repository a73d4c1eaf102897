/* SPDX-License-Identifier: BSD-2-Clause */
/* NSCC (MRC E.2 to E.4, E.6). Delays in ns, sizes in bytes, all as double: the parameters are real
 * numbers, and no operation here is inexact in a way two compilers could disagree about. */
#include "mrc_nscc.h"

/* E.4: parameters scale with a = BDP / (100 Gb/s x 12 us) and b = T / 12 us. */
static const double NSCC_REF_BDP_BYTES = 150000.0;
static const double NSCC_REF_RTT_NS = 12000.0;
/* Weight of one sample in avg_delay, and of an unmarked late one (E.3, S17). */
static const double NSCC_AVG_WEIGHT = 0.0125;
static const double NSCC_AVG_UNMARKED = 0.25;
static const double NSCC_BDP_FACTOR = 1.5;
static const double NSCC_QA_GATE_MAX = 32.0;
/* No round trip is believed that is shorter than this share of the configured one, or than this. */
enum { NSCC_BASE_SHARE = 16, NSCC_BASE_FLOOR_NS = 2000 };
/* The ceiling where nobody knows the fabric (ADR 121). */
static const double NSCC_ROOM_MAX = 4.0;         /* times the default */
static const double NSCC_ROOM_STEP = 1.0 / 16.0; /* in one period */
static const double NSCC_ROOM_USED = 0.75;       /* of the ceiling, or it is not in the way */
static const double NSCC_ROOM_QUEUE = 4.0;       /* times the target: a delay that is a queue */
static const double NSCC_ROOM_DRAIN = 0.75;      /* of the default, after it was too much */
static const mrc_ns NSCC_ROOM_PERIOD = 2 * MRC_MSEC;
static const mrc_ns NSCC_HOLD_MIN_NS = MRC_SEC; /* after a loss */
static const mrc_ns NSCC_HOLD_MAX_NS = 64 * MRC_SEC;

static double nscc_max(double a, double b) { return a > b ? a : b; }
static double nscc_min(double a, double b) { return a < b ? a : b; }

static double nscc_bdp_bytes(const struct mrc_cc_cfg *c, double rtt_ns)
{
    return (double)c->link_bps * rtt_ns / 8e9;
}

/* 1.5 BDP, and a packet at least. */
static double nscc_default_wnd(const struct mrc_cc_cfg *c, double rtt_ns)
{
    return nscc_max(NSCC_BDP_FACTOR * nscc_bdp_bytes(c, rtt_ns), (double)c->mtu_bytes);
}

/* 2^x for x in 0..32: exact for whole x, the series of e^(f ln 2) for the rest. */
static double nscc_exp2(double x)
{
    double power = 1.0;
    for (; x >= 1.0; x -= 1.0)
        power *= 2.0;
    double term = 1.0;
    double sum = 1.0;
    for (int n = 1; n <= 20; n++) {
        term *= x * 0.69314718055994530942 / n;
        sum += term;
    }
    return power * sum;
}

/* A parameter given by the caller must be in [0, max]; NaN is not. Zero takes the default. */
static bool nscc_default(double *p, double derived, double max)
{
    if (!(*p >= 0.0 && *p <= max))
        return false;
    if (!(*p > 0.0))
        *p = derived;
    return true;
}

bool mrc_nscc_defaults(struct mrc_cc_cfg *c)
{
    const double mtu = (double)c->mtu_bytes;
    const double target_ns = (double)c->target_delay_ns;
    const double bdp = nscc_bdp_bytes(c, (double)c->base_rtt_ns);
    const double a = bdp / NSCC_REF_BDP_BYTES;
    /* One round trip without delay adds 4 x a x b x MTU. Where b is 40, as in software, that is
     * several BDP at once, and the window swings from one end to the other (ADR 76). */
    const double b =
        c->steady ? nscc_min(target_ns / NSCC_REF_RTT_NS, 1.0) : target_ns / NSCC_REF_RTT_NS;
    const double alpha = 4.0 * a * b * mtu / (target_ns / 1e9);
    if (!nscc_default(&c->alpha, alpha, 1e18) || !nscc_default(&c->fi, 5.0 * mtu * a, 1e12) ||
        !nscc_default(&c->fi_scale, 0.25 * a, 1e6) ||
        !nscc_default(&c->eta, 0.15 * mtu * a, 1e12) || !nscc_default(&c->gamma, 0.8, 1.0) ||
        !nscc_default(&c->max_md_jump, 0.5, 1.0) ||
        !nscc_default(&c->qa_gate, 3.0, NSCC_QA_GATE_MAX))
        return false;
    /* A fabric that trims tells of its drops: delay alone never starts a quick adapt there. */
    if (c->qa_threshold_ns == 0)
        c->qa_threshold_ns = c->trimming ? MRC_NEVER : 4 * c->target_delay_ns;
    if (c->max_cwnd_bytes == 0)
        c->max_cwnd_bytes = (uint64_t)nscc_default_wnd(c, (double)c->base_rtt_ns);
    if (c->kind == MRC_CC_NSCC && c->max_cwnd_bytes < c->mtu_bytes)
        return false;
    if (c->adjust_bytes == 0)
        c->adjust_bytes = 8 * c->mtu_bytes;
    if (c->adjust_period_ns == 0)
        c->adjust_period_ns = c->base_rtt_ns;
    return true;
}

/* ---- the ceiling where nobody knows the fabric (ADR 121) ---- */

static void nscc_room_begin(struct mrc_nscc *n, mrc_ns now)
{
    n->room_since = now;
    n->room_delay_ns = 1e18;
    n->room_used = 0.0;
}

/* Something was lost, marked or refused: what is out may be more than a queue holds. Each time that
 * growing ended so before it had lasted as long as the pause before, the next pause is twice as
 * long. */
static void nscc_room_ends(struct mrc_cc *cc, mrc_ns now)
{
    struct mrc_nscc *n = &cc->nscc;
    if (!(n->least_wnd > 0.0))
        return;
    if (now >= n->room_at)
        n->room_hold = now - n->room_at < n->room_hold
                           ? mrc_min64(2 * n->room_hold, NSCC_HOLD_MAX_NS)
                           : NSCC_HOLD_MIN_NS;
    n->room_at = now + n->room_hold;
    if (n->max_wnd > n->least_wnd) /* below, so that what is too much can drain */
        n->cwnd = nscc_min(n->cwnd, NSCC_ROOM_DRAIN * n->least_wnd);
    n->max_wnd = n->least_wnd;
}

/* Between two hosts that are fast a round trip is the time they take for their turns, and with a
 * window of one turn they wait for each other. In a queue of the network all packets wait: of those
 * of a period the one that waited least says whether it is a queue. While it is not, and the window
 * is used, the ceiling grows. */
static void nscc_room(struct mrc_cc *cc, const struct mrc_cc_sack *s, double delay_ns)
{
    struct mrc_nscc *n = &cc->nscc;
    if (!(n->least_wnd > 0.0))
        return;
    n->room_delay_ns = nscc_min(n->room_delay_ns, delay_ns);
    n->room_used = nscc_max(n->room_used, (double)(cc->inflight + s->new_bytes));
    if (s->now - n->room_since < NSCC_ROOM_PERIOD)
        return;
    const bool queue = n->room_delay_ns >= NSCC_ROOM_QUEUE * (double)cc->cfg.target_delay_ns;
    const bool grow = !queue && n->room_used >= NSCC_ROOM_USED * n->max_wnd;
    if (s->now >= n->room_at) {
        const double most = NSCC_ROOM_MAX * n->least_wnd;
        n->max_wnd *= grow ? 1.0 + NSCC_ROOM_STEP : 1.0 - NSCC_ROOM_STEP;
        n->max_wnd = nscc_max(n->least_wnd, nscc_min(n->max_wnd, most));
    }
    nscc_room_begin(n, s->now);
}

/* ---- creation ---- */

void mrc_nscc_init(struct mrc_cc *cc, const struct mrc_cc_cfg *asked, mrc_ns now)
{
    struct mrc_nscc *n = &cc->nscc;
    n->max_wnd = (double)cc->cfg.max_cwnd_bytes;
    n->cwnd =
        nscc_min(n->max_wnd, nscc_default_wnd(&cc->cfg, (double)cc->cfg.base_rtt_ns)); /* H41 */
    n->last_adjust = now;
    n->last_dec = now;
    n->base_rtt_ns = (double)cc->cfg.base_rtt_ns;
    n->scale_rtt_ns = n->base_rtt_ns;
    n->follow_rtt = asked->base_rtt_ns != 0;
    n->follow_wnd = n->follow_rtt && asked->max_cwnd_bytes == 0;
    if (asked->base_rtt_ns == 0 && asked->link_bps == 0 && asked->max_cwnd_bytes == 0)
        n->least_wnd = n->max_wnd;
    n->room_at = now;
    nscc_room_begin(n, now);
}

/* ---- round trips ---- */

/* E.3 step 3: the shortest round trip seen is the base, and the ceiling follows it. But a peer has
 * a say in what is measured, one lie would stand for ever, and all QPs of the controller live by
 * it: so none is shorter than a sixteenth of what was configured. */
static void nscc_base_rtt(struct mrc_cc *cc, mrc_ns rtt)
{
    struct mrc_nscc *n = &cc->nscc;
    const mrc_ns floor = mrc_max64(cc->cfg.base_rtt_ns / NSCC_BASE_SHARE, NSCC_BASE_FLOOR_NS);
    const double rtt_ns = (double)mrc_max64(rtt, floor);
    if (rtt_ns >= n->base_rtt_ns)
        return;
    n->base_rtt_ns = rtt_ns;
    if (n->follow_rtt)
        n->scale_rtt_ns = rtt_ns;
    if (n->follow_wnd)
        n->max_wnd = nscc_default_wnd(&cc->cfg, rtt_ns);
}

void mrc_nscc_on_base_rtt(struct mrc_cc *cc, mrc_ns rtt) { nscc_base_rtt(cc, rtt); }

static void nscc_avg_delay(struct mrc_cc *cc, double delay_ns, bool marked)
{
    struct mrc_nscc *n = &cc->nscc;
    if (!marked && delay_ns > (double)cc->cfg.target_delay_ns)
        delay_ns = NSCC_AVG_UNMARKED * n->scale_rtt_ns; /* that queue is gone already */
    n->avg_delay_ns += NSCC_AVG_WEIGHT * (delay_ns - n->avg_delay_ns);
}

/* The responder's penalty (E.6). true: increases are suppressed. */
static bool nscc_penalty(struct mrc_cc *cc, const struct mrc_cc_sack *s)
{
    struct mrc_nscc *n = &cc->nscc;
    if (s->penalty == 0) {
        if (s->restore && n->saved_cwnd > 0.0)
            n->cwnd = nscc_min(n->saved_cwnd, n->max_wnd);
        n->saved_cwnd = 0.0;
        return false;
    }
    if (!(n->saved_cwnd > 0.0))
        n->saved_cwnd = n->cwnd;
    const double dec = (double)s->penalty * (double)s->new_bytes / 128.0;
    n->cwnd = nscc_min(n->cwnd, (double)cc->inflight);
    n->cwnd = nscc_max((double)cc->cfg.mtu_bytes, n->cwnd - dec);
    return true;
}

/* Is a period of quick adapt over? In software SACKs arrive by the turn: after a turn that came
 * late the first of them looks like all that was delivered, with the wait for the turn as its
 * delay, and the rest is still in the socket. So the turn in which a period ends belongs to it, and
 * the first SACK of the next one judges (ADR 115). */
static bool nscc_period_over(struct mrc_nscc *n, mrc_ns now)
{
    if (now < n->qa_endtime)
        return false;
    if (n->follow_rtt || n->qa_endtime == 0)
        return true;
    if (n->qa_turn == 0)
        n->qa_turn = now;
    if (n->qa_turn == now)
        return false;
    n->qa_turn = 0;
    return true;
}

/* What the gate of quick adapt is a share of: that the ceiling has been raised is no reason to find
 * that little was delivered. */
static double nscc_qa_wnd(const struct mrc_nscc *n)
{
    return n->least_wnd > 0.0 ? n->least_wnd : n->max_wnd;
}

/* Quick adapt (E.3): once per base_rtt + T, fall to what was really delivered. */
static bool nscc_quick_adapt(struct mrc_cc *cc, bool loss, bool marked, double delay_ns, mrc_ns now)
{
    struct mrc_nscc *n = &cc->nscc;
    const struct mrc_cc_cfg *c = &cc->cfg;
    bool done = false;
    if (c->disable_qa)
        return false;
    if (n->bytes_ignored < n->bytes_to_ignore && marked) {
        done = true; /* marks of the old window, still draining */
    } else if (nscc_period_over(n, now)) {
        const bool reason = n->trigger_qa || loss || delay_ns > (double)c->qa_threshold_ns;
        if (n->qa_endtime != 0 && reason &&
            n->achieved_bytes < nscc_qa_wnd(n) / nscc_exp2(c->qa_gate)) {
            n->cwnd = nscc_max(n->achieved_bytes, (double)c->mtu_bytes);
            n->bytes_to_ignore = (double)cc->inflight;
            n->bytes_ignored = 0.0;
            n->trigger_qa = false;
            done = true;
        }
        n->achieved_bytes = 0.0;
        n->qa_endtime = now + (mrc_ns)n->scale_rtt_ns + c->target_delay_ns;
    }
    if (done) {
        n->inc_bytes = 0.0;
        n->received_bytes = 0.0;
    }
    return done;
}

/* "D about 0" is D < base_rtt / 10 in software (E.4). */
static bool nscc_fast_increase(struct mrc_cc *cc, double bytes, double delay_ns)
{
    struct mrc_nscc *n = &cc->nscc;
    if (delay_ns < n->scale_rtt_ns / 10.0) {
        n->fi_count += bytes;
        if (n->fi_count > n->cwnd || n->increase) {
            n->cwnd = nscc_min(n->cwnd + cc->cfg.fi_scale * bytes, n->max_wnd);
            n->increase = true;
            return true;
        }
    } else {
        n->fi_count = 0.0;
    }
    n->increase = false;
    return false;
}

static void nscc_proportional_increase(struct mrc_cc *cc, double bytes, double delay_ns)
{
    if (nscc_fast_increase(cc, bytes, delay_ns))
        return;
    const double room_s = ((double)cc->cfg.target_delay_ns - delay_ns) / 1e9;
    cc->nscc.inc_bytes += cc->cfg.alpha * bytes * room_s;
}

static void nscc_multiplicative_decrease(struct mrc_cc *cc, mrc_ns now)
{
    struct mrc_nscc *n = &cc->nscc;
    const double target_ns = (double)cc->cfg.target_delay_ns;
    n->increase = false;
    n->fi_count = 0.0;
    if (n->avg_delay_ns <= target_ns || now - n->last_dec <= (mrc_ns)n->scale_rtt_ns)
        return;
    const double excess = (n->avg_delay_ns - target_ns) / n->avg_delay_ns;
    n->cwnd *= nscc_max(1.0 - cc->cfg.gamma * excess, cc->cfg.max_md_jump);
    n->cwnd = nscc_max(n->cwnd, (double)cc->cfg.mtu_bytes);
    n->last_dec = now;
}

/* Turn what the increases collected into window. */
static void nscc_fulfil(struct mrc_cc *cc, mrc_ns now)
{
    struct mrc_nscc *n = &cc->nscc;
    n->cwnd += n->inc_bytes / n->cwnd;
    if (now - n->last_adjust >= cc->cfg.adjust_period_ns) {
        n->last_adjust = now;
        n->cwnd += cc->cfg.eta;
    }
    n->cwnd = nscc_min(n->cwnd, n->max_wnd);
    n->inc_bytes = 0.0;
    n->received_bytes = 0.0;
}

/* After a go-back: a packet more for each window that arrives, as far as the ceiling. */
static void nscc_gbn_ceiling(struct mrc_cc *cc, double bytes)
{
    struct mrc_nscc *n = &cc->nscc;
    if (!(n->gbn_wnd > 0.0))
        return;
    n->gbn_wnd += (double)cc->cfg.mtu_bytes * bytes / n->cwnd;
    n->cwnd = nscc_min(n->cwnd, n->gbn_wnd);
    if (n->gbn_wnd >= n->max_wnd)
        n->gbn_wnd = 0.0;
}

static void nscc_sack(struct mrc_cc *cc, const struct mrc_cc_sack *s)
{
    struct mrc_nscc *n = &cc->nscc;
    const double bytes = (double)s->new_bytes;
    const double target_ns = (double)cc->cfg.target_delay_ns;
    n->bytes_ignored += bytes;
    n->received_bytes += bytes;
    n->achieved_bytes += bytes;
    n->marks |= s->marked;
    if (s->marked || s->penalty != 0)
        nscc_room_ends(cc, s->now);
    const bool limited = nscc_penalty(cc, s);
    if (!s->rtt_valid)
        return;
    nscc_base_rtt(cc, s->rtt_ns);
    const double delay_ns = nscc_max((double)s->rtt_ns - n->base_rtt_ns, 0.0);
    nscc_room(cc, s, delay_ns);
    nscc_avg_delay(cc, delay_ns, s->marked);
    if (nscc_quick_adapt(cc, false, s->marked, delay_ns, s->now))
        return;
    if (s->marked) { /* below the target a mark asks for another path, not for less (E.3) */
        if (delay_ns >= target_ns)
            nscc_multiplicative_decrease(cc, s->now);
    } else if (!limited) {
        if (delay_ns < target_ns)
            nscc_proportional_increase(cc, bytes, delay_ns);
        else
            n->inc_bytes += cc->cfg.fi * bytes; /* fair increase */
    }
    if (s->now - n->last_adjust >= cc->cfg.adjust_period_ns ||
        n->received_bytes > (double)cc->cfg.adjust_bytes)
        nscc_fulfil(cc, s->now);
}

void mrc_nscc_on_sack(struct mrc_cc *cc, const struct mrc_cc_sack *s)
{
    nscc_sack(cc, s);
    nscc_gbn_ceiling(cc, (double)s->new_bytes);
}

static void nscc_shrink(struct mrc_cc *cc, uint32_t bytes)
{
    cc->nscc.cwnd = nscc_max(cc->nscc.cwnd - (double)bytes, (double)cc->cfg.mtu_bytes);
}

void mrc_nscc_on_nack(struct mrc_cc *cc, uint32_t bytes, bool trimmed, bool rtt_valid, mrc_ns rtt,
                      mrc_ns now)
{
    struct mrc_nscc *n = &cc->nscc;
    nscc_room_ends(cc, now);
    if (rtt_valid)
        nscc_base_rtt(cc, rtt);
    if (!trimmed)
        return;
    nscc_avg_delay(cc, (double)cc->cfg.base_rtt_ns, true);
    n->bytes_ignored += (double)bytes;
    n->trigger_qa = true;
    if (!nscc_quick_adapt(cc, true, true, 0.0, now))
        nscc_shrink(cc, bytes);
}

/* What was behind the loss is still on its way, to be refused there, when it leaves again, and a
 * queue that could not hold a window shall hold two. So where there is a queue, a packet less is no
 * answer: half of it is, once in a round trip, and from there a packet more in each (ADR 97). */
void mrc_nscc_on_go_back(struct mrc_cc *cc, uint32_t bytes, mrc_ns rtt, mrc_ns now)
{
    struct mrc_nscc *n = &cc->nscc;
    if ((double)rtt <= n->base_rtt_ns + (double)cc->cfg.target_delay_ns) {
        mrc_nscc_on_loss(cc, bytes, now);
        return;
    }
    nscc_room_ends(cc, now);
    n->bytes_ignored += (double)bytes; /* as of any loss */
    if (now - n->last_dec <= rtt)
        return;
    n->cwnd = nscc_max(n->cwnd / 2.0, (double)cc->cfg.mtu_bytes);
    n->gbn_wnd = n->cwnd;
    n->increase = false;
    n->fi_count = 0.0;
    n->last_dec = now;
}

void mrc_nscc_on_loss(struct mrc_cc *cc, uint32_t bytes, mrc_ns now)
{
    nscc_room_ends(cc, now);
    cc->nscc.bytes_ignored += (double)bytes;
    nscc_shrink(cc, bytes);
}
