/* SPDX-License-Identifier: BSD-2-Clause */
#include "t.h"

#include "../sim/sim_queue.h"

enum { LEN = 1000 };
static const uint64_t BYTE_A_NS = 8000000000;

static struct sim_item data(void)
{
    return (struct sim_item){.len_bytes = LEN, .cls = SIM_DATA, .ect = true, .trimmable = true};
}

/* Push n data packets at once; returns how many were accepted whole. */
static int fill(struct sim_queue *q, struct sim_item *item, int n, mrc_ns now)
{
    int whole = 0;
    for (int i = 0; i < n; i++) {
        item[i] = data();
        whole += sim_queue_push(q, &item[i], now) == SIM_QUEUED;
    }
    return whole;
}

TEST(queue__sends_in_order_at_its_rate)
{
    const struct sim_queue_cfg cfg = {.rate_bps = BYTE_A_NS};
    struct sim_queue q;
    struct sim_item item[3];
    sim_queue_init(&q, &cfg, 1);
    CHECK_EQ(sim_queue_deadline(&q), MRC_NEVER);
    CHECK(sim_queue_pop(&q, 100) == NULL);
    CHECK_EQ(fill(&q, item, 3, 100), 3);
    CHECK_EQ(q.waiting_bytes[SIM_DATA], 2 * LEN); /* one is being sent */
    CHECK_EQ(sim_queue_deadline(&q), 100 + LEN);
    CHECK(sim_queue_pop(&q, 100 + LEN - 1) == NULL);
    CHECK(sim_queue_pop(&q, 100 + LEN) == &item[0]);
    CHECK_EQ(sim_queue_deadline(&q), 100 + 2 * LEN);
    CHECK(sim_queue_pop(&q, 9000) == &item[1]); /* taken late: the next one left on time */
    CHECK(sim_queue_pop(&q, 9000) == &item[2]);
    CHECK_EQ(sim_queue_deadline(&q), MRC_NEVER);
    CHECK_EQ(q.stats.packets[SIM_DATA], 3);
    CHECK_EQ(q.stats.bytes[SIM_DATA], 3 * LEN);
    CHECK_EQ(q.stats.wait_ns[SIM_DATA], LEN + 2 * LEN);
}

TEST(queue__rate_changes_with_the_next_packet)
{
    const struct sim_queue_cfg cfg = {.rate_bps = BYTE_A_NS};
    struct sim_queue q;
    struct sim_item item[3];
    sim_queue_init(&q, &cfg, 1);
    fill(&q, item, 3, 0);
    sim_queue_set_rate(&q, BYTE_A_NS / 2);
    CHECK_EQ(sim_queue_deadline(&q), LEN); /* the one on the wire keeps its pace */
    CHECK(sim_queue_pop(&q, LEN) == &item[0]);
    CHECK_EQ(sim_queue_deadline(&q), 3 * LEN);
}

TEST(queue__what_does_not_fit_is_dropped)
{
    const struct sim_queue_cfg cfg = {.rate_bps = BYTE_A_NS, .limit_bytes = {2 * LEN}};
    struct sim_queue q;
    struct sim_item item[5];
    sim_queue_init(&q, &cfg, 1);
    CHECK_EQ(fill(&q, item, 5, 0), 3); /* one on the wire, two wait */
    CHECK_EQ(q.stats.dropped[SIM_DATA], 2);
    CHECK_EQ(q.stats.trimmed, 0);
    CHECK(sim_queue_pop(&q, LEN) == &item[0]);
    CHECK_EQ(fill(&q, item, 1, LEN), 1); /* room again */
}

TEST(queue__what_does_not_fit_is_cut_and_overtakes) /* A.13.6 */
{
    const struct sim_queue_cfg cfg = {.rate_bps = BYTE_A_NS,
                                      .limit_bytes = {10 * LEN, 0, 150},
                                      .weight = {1, 1, 1},
                                      .trim_bytes = 100};
    struct sim_queue q;
    struct sim_item item[13];
    sim_queue_init(&q, &cfg, 1);
    CHECK_EQ(fill(&q, item, 13, 0), 11);
    CHECK_EQ(q.stats.trimmed, 1);
    CHECK_EQ(q.stats.dropped[SIM_DATA], 1); /* not even the cut one fits */
    CHECK(item[11].trimmed);
    CHECK_EQ(item[11].cls, SIM_TRIMMED);
    CHECK_EQ(item[11].len_bytes, 100);
    CHECK(!item[10].trimmed);
    CHECK(sim_queue_pop(&q, LEN) == &item[0]);
    CHECK(sim_queue_pop(&q, LEN) == NULL);
    CHECK(sim_queue_pop(&q, LEN + 100) == &item[11]); /* ahead of the ten before it */
    struct sim_item tiny = data();
    tiny.len_bytes = 100; /* nothing to cut from: as it is or not at all */
    struct sim_item more[2];
    fill(&q, more, 2, LEN + 100);
    CHECK_EQ(sim_queue_push(&q, &tiny, LEN + 100), SIM_DROPPED);
    struct sim_item refused = data();
    refused.trimmable = false;
    CHECK_EQ(sim_queue_push(&q, &refused, LEN + 100), SIM_DROPPED);
}

TEST(queue__classes_share_by_weight)
{
    const struct sim_queue_cfg cfg = {.rate_bps = BYTE_A_NS, .weight = {3, 1, 0}};
    struct sim_queue q;
    static struct sim_item item[400];
    sim_queue_init(&q, &cfg, 1);
    for (int i = 0; i < 400; i++) {
        item[i] = data();
        item[i].cls = i % 2 == 0 ? SIM_DATA : SIM_CONTROL;
        sim_queue_push(&q, &item[i], 0);
    }
    while (q.stats.packets[SIM_DATA] + q.stats.packets[SIM_CONTROL] < 200)
        CHECK(sim_queue_pop(&q, sim_queue_deadline(&q)) != NULL);
    CHECK(q.stats.packets[SIM_DATA] >= 149 && q.stats.packets[SIM_DATA] <= 151);
    while (sim_queue_pop(&q, sim_queue_deadline(&q)) != NULL) /* and what is left, all of it */
        ;
    CHECK_EQ(q.stats.packets[SIM_DATA], 200);
    CHECK_EQ(q.stats.packets[SIM_CONTROL], 200);
}

/* All three, cut packets too, whoever of them is small. */
TEST(queue__cut_packets_have_their_share)
{
    static const uint32_t want[SIM_CLASSES] = {100, 200, 300};
    const struct sim_queue_cfg cfg = {.rate_bps = BYTE_A_NS, .weight = {1, 2, 3}};
    struct sim_queue q;
    static struct sim_item item[1800];
    sim_queue_init(&q, &cfg, 1);
    for (int i = 0; i < 1800; i++) {
        item[i] = data();
        item[i].cls = (uint8_t)(i % SIM_CLASSES);
        sim_queue_push(&q, &item[i], 0);
    }
    for (int i = 0; i < 600; i++)
        CHECK(sim_queue_pop(&q, sim_queue_deadline(&q)) != NULL);
    for (int c = 0; c < SIM_CLASSES; c++)
        CHECK(q.stats.packets[c] >= want[c] - 2 && q.stats.packets[c] <= want[c] + 2);
}

TEST(queue__a_class_that_was_empty_does_not_claim_the_past)
{
    const struct sim_queue_cfg cfg = {.rate_bps = BYTE_A_NS};
    struct sim_queue q;
    static struct sim_item item[300];
    sim_queue_init(&q, &cfg, 1);
    fill(&q, item, 200, 0);
    for (int i = 0; i < 100; i++)
        sim_queue_pop(&q, sim_queue_deadline(&q));
    for (int i = 200; i < 300; i++) {
        item[i] = data();
        item[i].cls = SIM_CONTROL;
        sim_queue_push(&q, &item[i], 100 * LEN);
    }
    for (int i = 0; i < 20; i++)
        sim_queue_pop(&q, sim_queue_deadline(&q));
    CHECK(q.stats.packets[SIM_CONTROL] >= 9 && q.stats.packets[SIM_CONTROL] <= 11);
}

TEST(queue__marks_between_the_thresholds) /* E.8 */
{
    const struct sim_queue_cfg cfg = {
        .rate_bps = BYTE_A_NS, .mark_lo_bytes = 200 * LEN, .mark_hi_bytes = 800 * LEN};
    struct sim_queue q;
    static struct sim_item item[1000];
    sim_queue_init(&q, &cfg, 7);
    fill(&q, item, 1000, 0);
    item[5].ect = false;
    uint64_t marked[3] = {0};
    for (int i = 0; i < 1000; i++) { /* behind packet i wait 999 - i */
        sim_queue_pop(&q, sim_queue_deadline(&q));
        if (i > 0) /* the first one left before the others came */
            marked[i <= 199 ? 0 : i < 799 ? 1 : 2] += item[i].ce;
    }
    CHECK_EQ(marked[0], 198); /* all of 1..199 but the one that is not ECN-capable */
    CHECK(marked[1] > 270 && marked[1] < 330);
    CHECK_EQ(marked[2], 0);
    CHECK_EQ(q.stats.marked, marked[0] + marked[1]);
}

TEST(queue__marks_all_above_a_single_threshold)
{
    const struct sim_queue_cfg cfg = {
        .rate_bps = BYTE_A_NS, .mark_lo_bytes = 5 * LEN, .mark_hi_bytes = 5 * LEN};
    struct sim_queue q;
    struct sim_item item[10];
    sim_queue_init(&q, &cfg, 1);
    fill(&q, item, 10, 0);
    while (sim_queue_pop(&q, sim_queue_deadline(&q)) != NULL)
        ;
    CHECK_EQ(q.stats.marked, 3); /* behind 1, 2, 3 wait 8, 7, 6 */
}

TEST(queue__same_seed_same_marks)
{
    const struct sim_queue_cfg cfg = {.rate_bps = BYTE_A_NS, .mark_hi_bytes = 200 * LEN};
    static struct sim_item a[100];
    static struct sim_item b[100];
    struct sim_queue qa;
    struct sim_queue qb;
    sim_queue_init(&qa, &cfg, 42);
    sim_queue_init(&qb, &cfg, 42);
    fill(&qa, a, 100, 0);
    fill(&qb, b, 100, 0);
    for (int i = 0; i < 100; i++) {
        sim_queue_pop(&qa, sim_queue_deadline(&qa));
        sim_queue_pop(&qb, sim_queue_deadline(&qb));
        CHECK(a[i].ce == b[i].ce);
    }
    CHECK(qa.stats.marked > 0 && qa.stats.marked < 100);
}
