/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_cq.h"
#include "mrc_mr.h"
#include "t.h"

static _Alignas(64) uint8_t table_mem[4096];
static uint8_t buf[1000];

#define AT ((uint64_t)(uintptr_t)buf) /* known by where it lies */

static struct mrc_mr_table table(void)
{
    struct mrc_mr_table t;
    memset(table_mem, 0, sizeof table_mem);
    mrc_mr_init(&t, table_mem, 4);
    return t;
}

TEST(mr_add__keys_find_their_region_only)
{
    struct mrc_mr_table t = table();
    uint32_t a = 0;
    uint32_t b = 0;
    CHECK(mrc_mr_add(&t, 1, buf, AT, 1000, 3, 0xDEADBEEF, &a) == MRC_OK);
    CHECK(mrc_mr_add(&t, 2, buf, AT, 10, 3, 0xDEADBEEF, &b) == MRC_OK);
    CHECK(a != b);
    CHECK(mrc_mr_find(&t, a, 1) != NULL && mrc_mr_find(&t, a, 2) == NULL); /* other domain */
    CHECK(mrc_mr_find(&t, a ^ 0x10000, 1) == NULL);
    CHECK(mrc_mr_find(&t, 0, 1) == NULL);
    CHECK(mrc_mr_drop(&t, a) == MRC_OK && mrc_mr_drop(&t, a) == MRC_ERR_NOENT);
    CHECK(mrc_mr_find(&t, a, 1) == NULL);
}

TEST(mr_add__full_bad_and_busy)
{
    struct mrc_mr_table t = table();
    uint32_t k = 0;
    for (int i = 0; i < 4; i++)
        CHECK(mrc_mr_add(&t, 1, buf, AT, 10, 0, 0, &k) == MRC_OK && k != 0);
    CHECK(mrc_mr_add(&t, 1, buf, AT, 10, 0, 0, &k) == MRC_ERR_FULL);
    mrc_mr_find(&t, k, 1)->refs = 1;
    CHECK(mrc_mr_drop(&t, k) == MRC_ERR_BUSY);
    CHECK(mrc_mr_add(&t, 1, NULL, AT, 10, 0, 0, &k) == MRC_ERR_INVAL);
    CHECK(mrc_mr_add(&t, 1, buf, AT, UINT64_MAX, 0, 0, &k) == MRC_ERR_INVAL);
    CHECK(mrc_mr_add(&t, 1, buf, AT, 10, 0x80, 0, &k) == MRC_ERR_INVAL);
}

/* Field reports 43 and 45: wrap at 2^64, edges, rights. */
TEST(mr_allows__bounds_and_rights)
{
    struct mrc_mr_table t = table();
    uint32_t k = 0;
    const uint64_t at = AT;
    CHECK(mrc_mr_add(&t, 1, buf, AT, 1000, MRC_ACCESS_REMOTE_WRITE, 0, &k) == MRC_OK);
    const struct mrc_mr *m = mrc_mr_find(&t, k, 1);
    const uint8_t w = MRC_ACCESS_REMOTE_WRITE;
    CHECK(mrc_mr_allows(m, at, 1000, w));
    CHECK(mrc_mr_allows(m, at + 999, 1, w));
    CHECK(!mrc_mr_allows(m, at + 999, 2, w));
    CHECK(!mrc_mr_allows(m, at + 1000, 1, w));
    CHECK(!mrc_mr_allows(m, at - 1, 1, w));
    CHECK(!mrc_mr_allows(m, at - 1, 2, w));
    CHECK(!mrc_mr_allows(m, UINT64_MAX, 1, w));
    CHECK(!mrc_mr_allows(m, UINT64_MAX - 5, 100, w));
    CHECK(!mrc_mr_allows(m, at + 10, UINT64_MAX - 5, w));
    CHECK(mrc_mr_allows(m, at + 999, 0, w));
    CHECK(!mrc_mr_allows(m, at + 1000, 0, w)); /* zero length at the end points outside */
    CHECK(!mrc_mr_allows(m, at, 1, MRC_ACCESS_LOCAL_WRITE));
}

/* Bounds are those of the addresses it is known by, and lead to where it lies. */
TEST(mr_add__addresses_are_the_callers)
{
    struct mrc_mr_table t = table();
    uint32_t k = 0;
    const uint64_t at = 0x1000000000000001;
    CHECK(mrc_mr_add(&t, 1, buf, at, 1000, MRC_ACCESS_REMOTE_WRITE, 0, &k) == MRC_OK);
    const struct mrc_mr *m = mrc_mr_find(&t, k, 1);
    const uint8_t w = MRC_ACCESS_REMOTE_WRITE;
    CHECK(mrc_mr_allows(m, at, 1000, w) && mrc_mr_at(m, at) == buf);
    CHECK(mrc_mr_allows(m, at + 999, 1, w) && mrc_mr_at(m, at + 999) == buf + 999);
    CHECK(!mrc_mr_allows(m, at - 1, 1, w) && !mrc_mr_allows(m, at + 999, 2, w));
    CHECK(!mrc_mr_allows(m, AT, 1, w));
    CHECK(mrc_mr_add(&t, 1, buf, UINT64_MAX - 999, 1000, 0, 0, &k) == MRC_ERR_INVAL);
    CHECK(mrc_mr_add(&t, 1, buf, UINT64_MAX - 1000, 1000, 0, 0, &k) == MRC_OK);
    CHECK(mrc_mr_add(&t, 1, buf, 0, 1000, MRC_ACCESS_REMOTE_WRITE, 0, &k) == MRC_OK);
    CHECK(mrc_mr_allows(mrc_mr_find(&t, k, 1), 0, 1000, w));
}

TEST(cq_push__overrun_is_a_state)
{
    struct mrc_cq_table t;
    static _Alignas(64) uint8_t ring[4 * sizeof(struct mrc_wc)];
    const struct mrc_wc wc = {.wr_id = 5};
    struct mrc_wc out[8];
    memset(table_mem, 0, sizeof table_mem);
    mrc_cq_table_init(&t, table_mem, 2);
    CHECK(mrc_cq_add(&t, ring, 0) == MRC_ERR_INVAL);
    const int id = mrc_cq_add(&t, ring, 4);
    CHECK_EQ(id, 0);
    for (int i = 0; i < 4; i++)
        CHECK(mrc_cq_push(&t, 0, &wc));
    CHECK(!mrc_cq_push(&t, 0, &wc));
    CHECK(t.cq[0].overrun);
    CHECK_EQ(mrc_cq_take(&t, 0, out, 8), 4);
    CHECK_EQ(t.waiting, 0);
    CHECK(!mrc_cq_push(&t, 0, &wc)); /* stays overrun */
    CHECK(mrc_cq_take(&t, 1, out, 8) == MRC_ERR_NOENT);
}

/* Field report 11: the indices of a ring run freely through their wrap. */
TEST(cq_push__ring_indices_wrap)
{
    struct mrc_cq_table t;
    static _Alignas(64) uint8_t ring[4 * sizeof(struct mrc_wc)];
    struct mrc_wc out[8];
    memset(table_mem, 0, sizeof table_mem);
    mrc_cq_table_init(&t, table_mem, 2);
    CHECK_EQ(mrc_cq_add(&t, ring, 4), 0);
    t.cq[0].head = t.cq[0].tail = UINT32_MAX - 5;
    for (uint64_t i = 0; i < 20; i++) {
        const struct mrc_wc wc = {.wr_id = i};
        CHECK(mrc_cq_push(&t, 0, &wc));
        CHECK_EQ(mrc_cq_take(&t, 0, out, 8), 1);
        CHECK_EQ(out[0].wr_id, i);
    }
}
