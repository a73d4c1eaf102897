/* SPDX-License-Identifier: BSD-2-Clause */
/* PathTable: selection, states, control. Probing over virtual time is in test_path_probe.c. */
#include "t.h"

#include "path_rig.h"

/* ---- creation ---- */

TEST(path_size__refuses_what_is_out_of_range)
{
    const struct mrc_path_cfg bad[] = {
        {.count = 0},
        {.count = MRC_EV_MAX + 1},
        {.count = 4, .min_active = 5},
        {.count = 4, .event_ring = 3},
        {.count = 4, .probe_interval_ns = 2, .probe_interval_max_ns = 1},
        {.count = 4, .probe_interval_max_ns = MRC_NEVER},
        {.count = 4, .probe_timeout_ns = MRC_NEVER},
    };
    const struct mrc_path_cfg good = {.count = MRC_EV_MAX, .min_active = MRC_EV_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(mrc_path_size(&bad[i]), 0);
    CHECK(mrc_path_size(&good) != 0);
    CHECK(sizeof(struct mrc_path_cursor) <= 208);
}

TEST(path_init__refuses_bad_entries)
{
    struct mrc_path_entry_cfg e[2] = {{.ev = 1, .plane = 1}, {.ev = 2, .plane = 1}};
    const struct mrc_path_cfg cfg = {.count = 2};
    void *mem = malloc(mrc_path_size(&cfg));
    CHECK(mrc_path_init(mem, &cfg, e, 0) != NULL);
    e[1].ev = 1;
    CHECK(mrc_path_init(mem, &cfg, e, 0) == NULL);
    e[1].ev = 2;
    e[1].plane = 0;
    CHECK(mrc_path_init(mem, &cfg, e, 0) == NULL);
    e[1].plane = MRC_PLANE_MAX + 1;
    CHECK(mrc_path_init(mem, &cfg, e, 0) == NULL);
    e[1].plane = MRC_PLANE_MAX;
    CHECK(mrc_path_init(mem, &cfg, e, 0) != NULL);
    e[0].backup = e[1].backup = true;
    CHECK(mrc_path_init(mem, &cfg, e, 0) == NULL);
    free(mem);
}

TEST(path_find__knows_every_value_and_no_other)
{
    struct rig r = rig_new(4096, 4, 0, 0);
    for (uint32_t i = 0; i < 4096; i++) {
        CHECK_EQ(mrc_path_find(r.t, rig_ev(i)), i);
        CHECK_EQ(mrc_path_entry(r.t, (uint16_t)i)->ev, rig_ev(i));
        CHECK_EQ(mrc_path_find(r.t, rig_ev(i) + 1), MRC_EV_NONE);
    }
    CHECK_EQ(mrc_path_count(r.t), 4096);
    rig_free(&r);
}

/* ---- rotation ---- */

TEST(path_select__a_rotation_uses_every_entry_once)
{
    static const uint16_t counts[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 63, 128, 200, 4096};
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        for (uint8_t planes = 1; planes <= 4; planes++) {
            const uint16_t n = counts[k];
            if (n % planes != 0)
                continue;
            struct rig r = rig_new(n, planes, 0, k);
            for (int turn = 1; turn <= 5; turn++) {
                for (int i = 0; i < n; i++)
                    rig_select(&r, MRC_EV_NONE);
                for (int i = 0; i < n; i++)
                    CHECK_EQ(r.used[i], turn);
            }
            rig_free(&r);
        }
    }
}

TEST(path_select__planes_in_turn_with_equal_share) /* D.7 */
{
    struct mrc_path_entry_cfg e[9];
    for (uint32_t i = 0; i < 9; i++) /* plane 3 has one entry, plane 9 has eight */
        e[i] = (struct mrc_path_entry_cfg){.ev = rig_ev(i), .plane = i == 0 ? 3 : 9};
    struct rig r = rig_of((struct mrc_path_cfg){.count = 9}, e);
    uint8_t last = 0;
    for (int i = 0; i < 800; i++) {
        const uint8_t plane = mrc_path_entry(r.t, rig_select(&r, MRC_EV_NONE))->plane;
        CHECK(plane != last);
        last = plane;
    }
    CHECK_EQ(r.used[0], 400);
    for (int i = 1; i < 9; i++)
        CHECK_EQ(r.used[i], 50);
    rig_free(&r);
}

TEST(path_select__rotations_and_cursors_differ) /* D.6: no marching in step */
{
    struct rig r = rig_new(64, 1, 0, 1);
    struct mrc_path_cursor other;
    mrc_path_cursor_init(&other, 2);
    uint16_t first[64];
    int same_turn = 0;
    int same_cursor = 0;
    for (int i = 0; i < 64; i++)
        first[i] = rig_select(&r, MRC_EV_NONE);
    for (int i = 0; i < 64; i++) {
        same_turn += rig_select(&r, MRC_EV_NONE) == first[i];
        same_cursor += mrc_path_select(r.t, &other, ~0u, MRC_EV_NONE, 0) == first[i];
    }
    CHECK(same_turn < 8); /* one is expected by chance */
    CHECK(same_cursor < 8);
    rig_free(&r);
}

/* Over many rotations each entry is as likely as another at each place, and after each other. */
TEST(path_select__order_is_fair)
{
    enum { N = 16, TURNS = 20000 };
    static int at[N][N];
    static int after[N][N];
    memset(at, 0, sizeof at);
    memset(after, 0, sizeof after);
    struct rig r = rig_new(N, 1, 0, 7);
    for (int turn = 0; turn < TURNS; turn++) {
        uint16_t last = MRC_EV_NONE;
        for (int place = 0; place < N; place++) {
            const uint16_t i = rig_select(&r, MRC_EV_NONE);
            at[place][i]++;
            if (last != MRC_EV_NONE)
                after[last][i]++;
            last = i;
        }
    }
    for (int a = 0; a < N; a++) {
        for (int b = 0; b < N; b++) {
            CHECK(at[a][b] > TURNS / N * 8 / 10 && at[a][b] < TURNS / N * 12 / 10);
            CHECK(a == b || after[a][b] > TURNS / N / 4); /* expected TURNS / N */
        }
    }
    rig_free(&r);
}

TEST(path_select__same_seed_same_choice)
{
    struct rig a = rig_new(100, 4, 10, 42);
    struct rig b = rig_new(100, 4, 10, 42);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(rig_select(&a, MRC_EV_NONE), rig_select(&b, MRC_EV_NONE));
    rig_free(&a);
    rig_free(&b);
}

TEST(path_select__obeys_the_plane_mask)
{
    struct rig r = rig_new(16, 4, 0, 3);
    for (int i = 0; i < 100; i++) {
        const uint16_t e = mrc_path_select(r.t, &r.c, 1u << 2 | 1u << 4, MRC_EV_NONE, 0);
        CHECK(mrc_path_entry(r.t, e)->plane == 2 || mrc_path_entry(r.t, e)->plane == 4);
    }
    CHECK_EQ(mrc_path_select(r.t, &r.c, 0, MRC_EV_NONE, 0), MRC_EV_NONE);
    CHECK_EQ(mrc_path_select(r.t, &r.c, 1u | 1u << 9, MRC_EV_NONE, 0), MRC_EV_NONE);
    rig_free(&r);
}

/* ---- SKIP ---- */

TEST(path_skip__misses_one_turn) /* D.6 */
{
    struct rig r = rig_new(8, 1, 0, 5);
    for (int turn = 0; turn < 50; turn++) {
        mrc_path_on_mark(r.t, 3, 1, 0);
        mrc_path_on_mark(r.t, 3, 1, 0); /* already SKIP: not extended */
        CHECK_EQ(mrc_path_state(r.t, 3), MRC_EV_SKIP);
        CHECK_EQ(mrc_path_active(r.t), 8);
        rig_clear(&r);
        for (int i = 0; i < 7; i++) /* a rotation of the seven others, whatever follows */
            rig_select(&r, MRC_EV_NONE);
        if (mrc_path_state(r.t, 3) ==
            MRC_EV_SKIP) /* last of its rotation: the next call meets it */
            rig_select(&r, MRC_EV_NONE);
        CHECK_EQ(r.used[3], 0);
        CHECK_EQ(mrc_path_state(r.t, 3), MRC_EV_GOOD);
        rig_align(&r, 8);
        for (int i = 0; i < 8; i++)
            rig_select(&r, MRC_EV_NONE);
        CHECK_EQ(r.used[3], 1);
        rig_align(&r, 8);
    }
    struct mrc_path_stats s;
    mrc_path_stats(r.t, 3, &s);
    CHECK_EQ(s.ecn_marks, 100);
    rig_free(&r);
}

TEST(path_skip__one_restored_per_packet)
{
    struct rig r = rig_new(8, 1, 0, 6);
    for (uint16_t i = 0; i < 7; i++)
        mrc_path_on_trim(r.t, i, 0);
    for (uint32_t left = 7; left > 0; left--) {
        CHECK_EQ(rig_count(&r, MRC_EV_SKIP), left);
        rig_select(&r, MRC_EV_NONE);
        CHECK(rig_count(&r, MRC_EV_SKIP) >= left - 1);
        if (rig_count(&r, MRC_EV_SKIP) == left) /* the scan began behind them */
            left++;
    }
    rig_free(&r);
}

TEST(path_skip__restored_one_is_used_when_nothing_else_qualifies)
{
    struct rig r = rig_new(4, 1, 0, 6);
    for (uint16_t i = 0; i < 4; i++)
        mrc_path_on_mark(r.t, i, 1, 0);
    const uint16_t used = rig_select(&r, MRC_EV_NONE);
    CHECK_EQ(mrc_path_state(r.t, used), MRC_EV_GOOD);
    CHECK_EQ(rig_count(&r, MRC_EV_SKIP), 3);
    rig_free(&r);
}

TEST(path_skip__a_plane_full_of_it_keeps_its_share) /* D.7 */
{
    struct rig r = rig_new(8, 2, 0, 6);
    for (int round = 0; round < 100; round++) {
        for (uint16_t i = 0; i < 8; i += 2)
            mrc_path_on_mark(r.t, i, 1, 0); /* all of plane 1 */
        const uint8_t a = mrc_path_entry(r.t, rig_select(&r, MRC_EV_NONE))->plane;
        const uint8_t b = mrc_path_entry(r.t, rig_select(&r, MRC_EV_NONE))->plane;
        CHECK(a != b);
    }
    rig_free(&r);
}

TEST(path_select_control__restores_nothing_and_prefers_the_plane)
{
    struct rig r = rig_new(16, 4, 0, 8);
    for (int i = 0; i < 64; i++) {
        const uint16_t e = mrc_path_select_control(r.t, &r.c, 2);
        CHECK_EQ(mrc_path_entry(r.t, e)->plane, 2);
    }
    for (uint16_t i = 0; i < 16; i++)
        mrc_path_on_mark(r.t, i, 1, 0);
    CHECK(mrc_path_select_control(r.t, &r.c, 3) != MRC_EV_NONE); /* SKIP carries control */
    CHECK_EQ(rig_count(&r, MRC_EV_SKIP), 16);
    mrc_path_set_planes(r.t, ~(1u << 2), ~0u);
    for (int i = 0; i < 64; i++)
        CHECK(mrc_path_entry(r.t, mrc_path_select_control(r.t, &r.c, 2))->plane != 2);
    CHECK(mrc_path_select_control(r.t, &r.c, 0) != MRC_EV_NONE);
    CHECK(mrc_path_select_control(r.t, &r.c, 200) != MRC_EV_NONE);
    mrc_path_set_planes(r.t, 0, ~0u);
    CHECK_EQ(mrc_path_select_control(r.t, &r.c, 2), MRC_EV_NONE);
    rig_free(&r);
}

/* ---- avoid ---- */

/* ---- verdicts ---- */

TEST(path_loss__dead_entry_is_never_selected) /* field report 34 */
{
    struct rig r = rig_new(16, 4, 4, 0);
    mrc_path_on_rtt(r.t, 5, 1000); /* a stale low RTT must not attract */
    mrc_path_on_loss(r.t, 5, MRC_EV_R_TIMEOUT, 10, 20);
    CHECK_EQ(mrc_path_state(r.t, 5), MRC_EV_ASSUMED_BAD);
    CHECK_EQ(mrc_path_active(r.t), 15);
    rig_event(&r, 5, MRC_EV_GOOD, MRC_EV_ASSUMED_BAD, MRC_EV_R_TIMEOUT);
    rig_clear(&r);
    for (int i = 0; i < 1600; i++)
        rig_select(&r, MRC_EV_NONE);
    CHECK_EQ(r.used[5], 0);
    for (int i = 0; i < 16; i++) /* its plane keeps its share: 400 over the three others */
        CHECK(i == 5 || (i % 4 == 1 ? r.used[i] >= 133 && r.used[i] <= 134 : r.used[i] == 100));
    mrc_path_on_loss(r.t, 5, MRC_EV_R_TIMEOUT, 11, 21); /* again: no second event */
    rig_no_event(&r);
    struct mrc_path_stats s;
    mrc_path_stats(r.t, 5, &s);
    CHECK_EQ(s.packets_lost, 2);
    CHECK_EQ(s.bad_since_ns, 20);
    CHECK_EQ(s.state, MRC_EV_ASSUMED_BAD);
    rig_free(&r);
}

TEST(path_loss__socket_error_condemns_at_once) /* field report 35 */
{
    struct rig r = rig_new(4, 1, 1, 0);
    mrc_path_on_loss(r.t, 2, MRC_EV_R_SEND_ERROR, 7, 7);
    rig_event(&r, 2, MRC_EV_GOOD, MRC_EV_ASSUMED_BAD, MRC_EV_R_SEND_ERROR);
    for (int i = 0; i < 100; i++)
        CHECK(rig_select(&r, MRC_EV_NONE) != 2);
    rig_free(&r);
}

TEST(path_mark__always_skip_is_assumed_bad) /* D.5 */
{
    struct rig r = rig_new(4, 1, 1, 0);
    mrc_path_on_mark(r.t, 1, 0, 0);
    CHECK_EQ(mrc_path_state(r.t, 1), MRC_EV_GOOD);
    mrc_path_on_mark(r.t, 1, 1, 0);
    mrc_path_on_mark(r.t, 1, 2, 5); /* from SKIP as well */
    rig_event(&r, 1, MRC_EV_SKIP, MRC_EV_ASSUMED_BAD, MRC_EV_R_ALWAYS_SKIP);
    rig_no_event(&r);
    rig_free(&r);
}

TEST(path__late_feedback_changes_nothing) /* D.5 */
{
    struct rig r = rig_new(4, 1, 0, 0);
    mrc_path_on_loss(r.t, 0, MRC_EV_R_LOSS, 1, 2);
    mrc_path_set_state(r.t, 1, MRC_EV_DENIED, 2);
    for (uint16_t i = 0; i < 2; i++) {
        const enum mrc_ev_state before = mrc_path_state(r.t, i);
        mrc_path_on_mark(r.t, i, 1, 3);
        mrc_path_on_mark(r.t, i, 2, 3);
        mrc_path_on_trim(r.t, i, 3);
        mrc_path_on_rtt(r.t, i, 1000);
        mrc_path_on_loss(r.t, i, MRC_EV_R_TIMEOUT, 2, 3);
        CHECK_EQ(mrc_path_state(r.t, i), before);
    }
    rig_free(&r);
}

TEST(path__none_is_ignored_everywhere)
{
    struct rig r = rig_new(4, 1, 0, 0);
    mrc_path_on_sent(r.t, MRC_EV_NONE, 1, false);
    mrc_path_on_rtt(r.t, MRC_EV_NONE, 1);
    mrc_path_on_mark(r.t, MRC_EV_NONE, 2, 1);
    mrc_path_on_trim(r.t, MRC_EV_NONE, 1);
    mrc_path_on_loss(r.t, MRC_EV_NONE, MRC_EV_R_LOSS, 1, 1);
    CHECK(mrc_path_set_state(r.t, MRC_EV_NONE, MRC_EV_GOOD, 1) == MRC_ERR_INVAL);
    CHECK_EQ(mrc_path_active(r.t), 4);
    rig_free(&r);
}

/* ---- the floor ---- */

TEST(path_floor__holds_and_says_so_once) /* D.3; field report 39: never all ASSUMED_BAD */
{
    struct rig r = rig_new(16, 4, 4, 0);
    for (uint16_t i = 0; i < 16; i++)
        mrc_path_on_loss(r.t, i, MRC_EV_R_TIMEOUT, 100, 100u + i);
    CHECK_EQ(mrc_path_active(r.t), 4);
    for (uint16_t i = 0; i < 12; i++)
        rig_event(&r, i, MRC_EV_GOOD, MRC_EV_ASSUMED_BAD, MRC_EV_R_TIMEOUT);
    for (uint16_t i = 12; i < 16;
         i++) /* all paths bad: the event says which stay for want of better */
        rig_event(&r, i, MRC_EV_GOOD, MRC_EV_GOOD, MRC_EV_R_TIMEOUT);
    for (uint16_t i = 12; i < 16; i++)
        mrc_path_on_loss(r.t, i, MRC_EV_R_TIMEOUT, 100, 200);
    rig_no_event(&r);
    CHECK(rig_select(&r, MRC_EV_NONE) >= 12);
    rig_free(&r);
}

TEST(path_floor__room_again_carries_out_the_newest_verdict)
{
    struct rig r = rig_new(4, 1, 2, 0);
    for (uint16_t i = 0; i < 4; i++)
        mrc_path_on_loss(r.t, i, MRC_EV_R_LOSS, 1, 1u + i); /* 2 and 3 stay */
    rig_drain(&r);
    mrc_path_set_state(r.t, 0, MRC_EV_GOOD, 50);
    rig_event(&r, 0, MRC_EV_ASSUMED_BAD, MRC_EV_GOOD, MRC_EV_R_CONTROL);
    rig_event(&r, 3, MRC_EV_GOOD, MRC_EV_ASSUMED_BAD, MRC_EV_R_LOSS);
    rig_no_event(&r);
    CHECK_EQ(mrc_path_active(r.t), 2);
    mrc_path_on_rtt(r.t, 2, 1000); /* it delivers: the verdict is dropped */
    mrc_path_set_state(r.t, 1, MRC_EV_GOOD, 60);
    CHECK_EQ(mrc_path_state(r.t, 2), MRC_EV_GOOD);
    CHECK_EQ(mrc_path_active(r.t), 3);
    rig_free(&r);
}

TEST(path_floor__zero_means_none)
{
    struct rig r = rig_new(2, 1, 0, 0);
    mrc_path_on_loss(r.t, 0, MRC_EV_R_LOSS, 1, 1);
    mrc_path_on_loss(r.t, 1, MRC_EV_R_LOSS, 1, 1);
    CHECK_EQ(mrc_path_active(r.t), 0);
    CHECK_EQ(rig_select(&r, MRC_EV_NONE), MRC_EV_NONE);
    CHECK_EQ(rig_select(&r, 1), MRC_EV_NONE);
    rig_free(&r);
}

/* ---- backups ---- */

TEST(path_backup__replaces_within_the_plane_only) /* D.7 */
{
    struct mrc_path_entry_cfg e[12];
    for (uint32_t i = 0; i < 12; i++) /* two planes; 8..11 are backups, two for each plane */
        e[i] = (struct mrc_path_entry_cfg){
            .ev = rig_ev(i), .plane = (uint8_t)(1 + i % 2), .backup = i >= 8};
    struct rig r = rig_of((struct mrc_path_cfg){.count = 12, .min_active = 8, .seed = 9}, e);
    for (int i = 0; i < 100; i++)
        CHECK(rig_select(&r, MRC_EV_NONE) < 8);
    CHECK_EQ(mrc_path_active(r.t), 8);
    mrc_path_on_loss(r.t, 0, MRC_EV_R_LOSS, 1, 1); /* at the floor, but there is a reserve */
    mrc_path_on_loss(r.t, 2, MRC_EV_R_LOSS, 1, 1);
    CHECK_EQ(mrc_path_active(r.t), 8);
    mrc_path_on_loss(r.t, 4, MRC_EV_R_LOSS, 1, 1); /* plane 1 has none left: the floor holds */
    CHECK_EQ(mrc_path_state(r.t, 4), MRC_EV_GOOD);
    rig_clear(&r);
    for (int i = 0; i < 80; i++)
        rig_select(&r, MRC_EV_NONE);
    CHECK(r.used[8] >= 9 && r.used[8] <= 11); /* ten; a rotation was under way */
    CHECK(r.used[10] >= 9 && r.used[10] <= 11);
    CHECK(r.used[0] == 0 && r.used[2] == 0 && r.used[9] == 0 && r.used[11] == 0);
    mrc_path_set_state(r.t, 0, MRC_EV_GOOD, 2); /* back, as a backup */
    CHECK_EQ(mrc_path_active(r.t), 8);
    struct mrc_path_stats s;
    mrc_path_stats(r.t, 0, &s);
    CHECK(s.backup);
    mrc_path_stats(r.t, 8, &s);
    CHECK(!s.backup);
    mrc_path_on_loss(r.t, 6, MRC_EV_R_LOSS, 3, 3);
    CHECK_EQ(mrc_path_state(r.t, 6), MRC_EV_ASSUMED_BAD);
    rig_clear(&r);
    for (int i = 0; i < 80; i++)
        rig_select(&r, MRC_EV_NONE);
    CHECK(r.used[0] >= 9 && r.used[0] <= 11);
    rig_free(&r);
}

/* ---- planes and control ---- */

TEST(path_planes__mask_without_touching_states) /* D.7, H39 */
{
    struct rig r = rig_new(16, 4, 4, 0);
    mrc_path_on_loss(r.t, 0, MRC_EV_R_LOSS, 1, 1);
    mrc_path_on_mark(r.t, 4, 1, 1);
    mrc_path_set_planes(r.t, ~(1u << 1), ~0u);
    CHECK_EQ(mrc_path_active(r.t), 12);
    rig_clear(&r);
    for (int i = 0; i < 120; i++)
        CHECK(mrc_path_entry(r.t, rig_select(&r, MRC_EV_NONE))->plane != 1);
    for (int i = 0; i < 16; i++)
        CHECK_EQ(r.used[i], i % 4 == 0 ? 0 : 10);
    CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_ASSUMED_BAD);
    CHECK_EQ(mrc_path_state(r.t, 4), MRC_EV_SKIP);
    mrc_path_set_planes(r.t, ~0u, ~(1u << 2)); /* 1 is back; the peer lost 2 */
    CHECK_EQ(mrc_path_active(r.t), 3 + 8);
    mrc_path_set_planes(r.t, 0, 0);
    CHECK_EQ(mrc_path_active(r.t), 0);
    CHECK_EQ(rig_select(&r, MRC_EV_NONE), MRC_EV_NONE);
    mrc_path_set_planes(r.t, ~0u, ~0u);
    CHECK_EQ(mrc_path_active(r.t), 15);
    rig_free(&r);
}

TEST(path_set_state__denied_carries_nothing_until_allowed) /* field report 37 */
{
    struct rig r = rig_new(8, 2, 4, 0);
    CHECK_EQ(mrc_path_set_state(r.t, 3, MRC_EV_DENIED, 10), MRC_OK);
    rig_event(&r, 3, MRC_EV_GOOD, MRC_EV_DENIED, MRC_EV_R_CONTROL);
    CHECK_EQ(mrc_path_set_state(r.t, 3, MRC_EV_DENIED, 11), MRC_OK);
    rig_no_event(&r);
    uint16_t id;
    for (int i = 0; i < 1000; i++) {
        CHECK(rig_select(&r, MRC_EV_NONE) != 3);
        CHECK(mrc_path_select_control(r.t, &r.c, 2) != 3);
        CHECK_EQ(mrc_path_probe_due(r.t, &id, (mrc_ns)i * MRC_MSEC), MRC_EV_NONE);
    }
    CHECK_EQ(mrc_path_set_state(r.t, 3, MRC_EV_GOOD, 20), MRC_OK);
    rig_event(&r, 3, MRC_EV_DENIED, MRC_EV_GOOD, MRC_EV_R_CONTROL);
    mrc_path_on_loss(r.t, 3, MRC_EV_R_TIMEOUT, 19, 21); /* of a packet from before */
    CHECK_EQ(mrc_path_state(r.t, 3), MRC_EV_GOOD);
    CHECK_EQ(mrc_path_active(r.t), 8);
    CHECK(mrc_path_set_state(r.t, 3, MRC_EV_SKIP, 30) == MRC_ERR_INVAL);
    CHECK(mrc_path_set_state(r.t, 3, MRC_EV_ASSUMED_BAD, 30) == MRC_ERR_INVAL);
    CHECK(mrc_path_set_state(r.t, 8, MRC_EV_GOOD, 30) == MRC_ERR_INVAL);
    rig_free(&r);
}

TEST(path__tables_do_not_share_state) /* field report 40 */
{
    struct rig a = rig_new(8, 2, 2, 1);
    struct rig b = rig_new(8, 2, 2, 1);
    for (uint16_t i = 0; i < 8; i++)
        mrc_path_on_loss(a.t, i, MRC_EV_R_TIMEOUT, 1, 1);
    CHECK_EQ(mrc_path_active(a.t), 2);
    CHECK_EQ(mrc_path_active(b.t), 8);
    rig_no_event(&b);
    struct mrc_path_stats s;
    for (uint16_t i = 0; i < 8; i++) {
        mrc_path_stats(b.t, i, &s);
        CHECK_EQ(s.packets_lost, 0);
    }
    rig_free(&a);
    rig_free(&b);
}

/* ---- events, statistics ---- */

TEST(path_event__ring_counts_exactly_what_it_lost) /* C.6, D.10 */
{
    struct mrc_path_entry_cfg e[1] = {{.ev = 1, .plane = 1}};
    struct rig r = rig_of((struct mrc_path_cfg){.count = 1, .event_ring = 4}, e);
    struct mrc_ev_event v;
    for (uint32_t i = 0; i < 9; i++) /* DENIED, GOOD, DENIED, ...: nine changes, room for four */
        mrc_path_set_state(r.t, 0, i % 2 == 0 ? MRC_EV_DENIED : MRC_EV_GOOD, i);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(mrc_path_event_poll(r.t, &v), 1);
        CHECK_EQ(v.time, i);
        CHECK_EQ(v.drop_count, 0);
    }
    CHECK_EQ(mrc_path_event_poll(r.t, &v), 0);
    mrc_path_set_state(r.t, 0, MRC_EV_GOOD, 100);
    mrc_path_set_state(r.t, 0, MRC_EV_DENIED, 101);
    CHECK_EQ(mrc_path_event_poll(r.t, &v), 1);
    CHECK_EQ(v.time, 100);
    CHECK_EQ(v.drop_count, 5);
    CHECK_EQ(mrc_path_event_poll(r.t, &v), 1);
    CHECK_EQ(v.drop_count, 0);
    rig_free(&r);
}

TEST(path_stats__add_up)
{
    struct rig r = rig_new(4, 1, 0, 0);
    mrc_path_on_sent(r.t, 1, 4000, false);
    mrc_path_on_sent(r.t, 1, 1000, true);
    mrc_path_on_trim(r.t, 1, 1);
    CHECK_EQ(mrc_path_srtt(r.t, 1), 0);
    mrc_path_on_rtt(r.t, 1, 8000);
    CHECK_EQ(mrc_path_srtt(r.t, 1), 8000);
    CHECK_EQ(mrc_path_rttvar(r.t, 1), 4000);
    mrc_path_on_rtt(r.t, 1, 16000);
    CHECK_EQ(mrc_path_srtt(r.t, 1), 9000);
    CHECK_EQ(mrc_path_rttvar(r.t, 1), 3000 + 2000);
    struct mrc_path_stats s;
    mrc_path_stats(r.t, 1, &s);
    CHECK_EQ(s.packets_sent, 2);
    CHECK_EQ(s.bytes_sent, 5000);
    CHECK_EQ(s.retransmits, 1);
    CHECK_EQ(s.trims, 1);
    CHECK_EQ(s.rtt_count, 2);
    CHECK_EQ(s.rtt_sum_ns, 24000);
    CHECK_EQ(s.rtt_min_ns, 8000);
    CHECK_EQ(s.rtt_max_ns, 16000);
    CHECK_EQ(s.ev, rig_ev(1));
    CHECK_EQ(s.plane, 1);
    rig_free(&r);
}

/* ---- everything at once ---- */

TEST(path__invariants_hold_under_random_calls)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct mrc_rand q;
        mrc_rand_seed(&q, seed);
        const uint16_t n = (uint16_t)(1 + mrc_rand_below(&q, 70));
        struct mrc_path_entry_cfg e[70];
        for (uint32_t i = 0; i < n; i++)
            e[i] = (struct mrc_path_entry_cfg){.ev = rig_ev(i),
                                               .plane = (uint8_t)(1 + mrc_rand_below(&q, 5)),
                                               .backup = i != 0 && mrc_rand_below(&q, 4) == 0};
        const uint16_t floor = (uint16_t)mrc_rand_below(&q, n);
        struct rig r = rig_of((struct mrc_path_cfg){.count = n, .min_active = floor}, e);
        uint32_t up = ~1u;
        mrc_ns now = 1;
        for (int step = 0; step < 3000; step++) {
            rig_any_call(&r, &q, &now, &up);
            rig_check(&r, up);
        }
        rig_free(&r);
    }
}
