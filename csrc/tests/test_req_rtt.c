/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester: which answers tell a round trip, and of which copy (MRC E.7, A.7). */
#include "req_rig.h"

#define TURN_NS ((mrc_ns)65536 * 128) /* of a timestamp */

/* Smoothed round trip of the EV that carried this PSN after one answer to it; 0: no sample. */
static mrc_ns sample(struct rig *r, uint32_t psn, mrc_ns after, bool rtx, uint16_t stamp)
{
    const uint16_t ev = (uint16_t)(req_ev(r, psn) - RIG_EV0);
    r->now += after;
    struct mrc_pkt f = req_sack(r, psn, psn, 0);
    f.rtx = rtx;
    f.entropy = RIG_EV0 + ev;
    f.tx_timestamp = stamp;
    req_hear(r, &f);
    struct mrc_path_stats s;
    mrc_path_stats(r->s[0].path, ev, &s);
    return s.rtt_count != 0 ? mrc_path_srtt(r->s[0].path, ev) : 0;
}

static void one_packet(struct rig *r, bool timestamps)
{
    req_open(r, MRC_CC_FIXED);
    req_of(r)->timestamps = timestamps;
    req_of(r)->timeout = 20;
    req_post(r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(r), 1);
}

/* Without TSETH: once and rtx=0, or sent again once and rtx=1; nothing else. */
TEST(req_rtt__valid_by_the_send_time_table)
{
    for (uint32_t again = 0; again < 3; again++)
        for (int rtx = 0; rtx < 2; rtx++) {
            struct rig r;
            one_packet(&r, false);
            for (uint32_t i = 0; i < again; i++) {
                r.now += 600 * MRC_USEC;
                req_hear_nack(&r, REQ_START, MRC_NACK_TRIMMED_LASTHOP);
                CHECK_EQ(req_send(&r), 1);
            }
            const bool valid = again == (uint32_t)rtx;
            CHECK_EQ(sample(&r, REQ_START, 123456, rtx != 0, 0), valid ? 123456 : 0);
            req_close(&r);
        }
}

/* A packet that was reported before, and the answer to a probe, give no sample of the table. */
TEST(req_rtt__only_the_first_report_counts)
{
    struct rig r;
    one_packet(&r, false);
    CHECK_EQ(sample(&r, REQ_START, 100000, false, 0), 100000);
    CHECK_EQ(sample(&r, REQ_START, 900000, false, 0), 100000);
    req_close(&r);
}

/* Timestamps, over the turn of the 16-bit counter: exact, and without a bias (field report 80). */
TEST(req_rtt__timestamps_are_exact_across_the_turn)
{
    for (uint32_t phase = 0; phase < 128; phase += 13) {
        struct rig r;
        req_open(&r, MRC_CC_FIXED);
        req_of(&r)->timestamps = true;
        req_of(&r)->timeout = 20;
        r.now = 50 * TURN_NS - 1000 + phase;
        req_post(&r, 1, RIG_MTU, WRITE);
        CHECK_EQ(req_send(&r), 1);
        CHECK_EQ(sample(&r, REQ_START, 54321, false, req_out[0].tx_timestamp), 54321);
        req_close(&r);
    }
}

/* What the peer took itself is in the timestamp that it reflects (H11). */
TEST(req_rtt__service_time_is_taken_off)
{
    struct rig r;
    one_packet(&r, true);
    const uint16_t stamp = (uint16_t)(req_out[0].tx_timestamp + 100); /* 12.8 us */
    CHECK_EQ(sample(&r, REQ_START, 54321, false, stamp), 54321 - 12800);
    req_close(&r);
}

/* With TSETH each copy has its own timestamp: any of them gives a sample of the EV it took. */
TEST(req_rtt__timestamps_tell_which_copy)
{
    for (int which = 0; which < 3; which++) {
        struct rig r;
        uint16_t stamp[3];
        uint32_t ev[3];
        mrc_ns at[3];
        one_packet(&r, true);
        for (int i = 0; i < 3; i++) {
            if (i > 0) {
                r.now += 128 * 5000;
                req_hear_nack(&r, REQ_START, MRC_NACK_TRIMMED_LASTHOP);
                CHECK_EQ(req_send(&r), 1);
            }
            stamp[i] = req_out[0].tx_timestamp;
            ev[i] = req_raw[0].ev;
            at[i] = r.now;
        }
        struct mrc_path_stats s;
        struct mrc_pkt f = req_sack(&r, REQ_START, REQ_START, 0);
        r.now += 128 * 700;
        f.rtx = which > 0;
        f.entropy = ev[which];
        f.tx_timestamp = stamp[which];
        mrc_path_stats(r.s[0].path, (uint16_t)(ev[which] - RIG_EV0), &s);
        const uint64_t before = s.rtt_count;
        req_hear(&r, &f);
        mrc_path_stats(r.s[0].path, (uint16_t)(ev[which] - RIG_EV0), &s);
        CHECK_EQ(s.rtt_count, before + 1);
        CHECK_EQ(s.rtt_max_ns, (r.now / 128 - at[which] / 128) * 128);
        req_close(&r);
    }
}

/* A turn of the counter after the first copy a timestamp may be of any: not used. */
TEST(req_rtt__a_timestamp_that_may_have_turned_is_not_used)
{
    for (int late = 0; late < 2; late++) {
        struct rig r;
        one_packet(&r, true);
        for (int i = 0; i < 2; i++) {
            r.now += late != 0 && i == 0 ? TURN_NS - 300 * MRC_USEC : 600 * MRC_USEC;
            req_hear_nack(&r, REQ_START, MRC_NACK_TRIMMED_LASTHOP);
            CHECK_EQ(req_send(&r), 1);
        }
        const mrc_ns rtt = sample(&r, REQ_START, 128000, true, req_out[0].tx_timestamp);
        CHECK_EQ(rtt, late != 0 ? 0 : 128000);
        req_close(&r);
    }
    /* Of a packet that left once the table knows the time without it. */
    struct rig r;
    one_packet(&r, true);
    const uint16_t stamp = (uint16_t)(req_out[0].tx_timestamp + 100);
    CHECK_EQ(sample(&r, REQ_START, TURN_NS + 1000, false, stamp), TURN_NS + 1000);
    req_close(&r);
}

/* E.7: after the first SACK one probe in the control class, and its answer is the base. */
TEST(req_rtt__base_is_probed_once_in_the_control_class)
{
    struct rig r;
    req_open(&r, MRC_CC_NSCC);
    req_post(&r, 1, 8 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 8);
    r.now += 400 * MRC_USEC;
    req_hear_sack(&r, REQ_START, REQ_START, REQ_NOMINAL);
    CHECK_EQ(req_send(&r), 1);
    CHECK(req_out[0].opcode == MRC_OP_PROBE);
    CHECK_EQ(req_raw[0].tclass, r.s[0].e->env.tclass_control);
    const uint16_t ev = (uint16_t)(req_raw[0].ev - RIG_EV0);
    struct mrc_path_stats before;
    struct mrc_path_stats after;
    mrc_path_stats(r.s[0].path, ev, &before);
    const struct mrc_pkt f =
        req_probe_answer(&r, &req_out[0], req_raw[0].ev, REQ_START, REQ_NOMINAL);
    r.now += 70 * MRC_USEC;
    req_hear(&r, &f);
    CHECK(r.s[0].cc.nscc.base_rtt_ns > 69999.0 && r.s[0].cc.nscc.base_rtt_ns < 70001.0);
    mrc_path_stats(r.s[0].path, ev, &after);
    CHECK_EQ(after.rtt_count, before.rtt_count); /* without queues: nothing to time data by */
    req_hear_sack(&r, REQ_START + 1, REQ_START + 1, 2 * REQ_NOMINAL);
    CHECK_EQ(req_send(&r), 0);
    req_close(&r);
}
