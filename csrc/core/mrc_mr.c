/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_mr.h"

size_t mrc_mr_bytes(uint32_t max) { return (size_t)mrc_pow2(max) * sizeof(struct mrc_mr); }

void mrc_mr_init(struct mrc_mr_table *t, void *mem, uint32_t max)
{
    t->mr = mem;
    t->mask = mrc_pow2(max) - 1;
    t->next = 0;
}

int mrc_mr_add(struct mrc_mr_table *t, uint32_t pd, void *addr, uint64_t va, uint64_t len,
               uint8_t access, uint32_t key, uint32_t *key_out)
{
    if (addr == NULL || len > UINT64_MAX - (uint64_t)(uintptr_t)addr || len > UINT64_MAX - va ||
        key_out == NULL)
        return MRC_ERR_INVAL;
    if ((access & ~(MRC_ACCESS_LOCAL_WRITE | MRC_ACCESS_REMOTE_WRITE)) != 0)
        return MRC_ERR_INVAL;
    for (uint32_t n = 0; n <= t->mask; n++) {
        const uint32_t i = (t->next + n) & t->mask;
        if (t->mr[i].key != 0)
            continue;
        uint32_t k = (key & ~t->mask) | i;
        if (k == 0)
            k = (t->mask + 1) | i; /* 0 means "free"; with a table of 2^32 this could not happen */
        const struct mrc_mr m = {addr, len, k, pd, 0, access, va};
        t->mr[i] = m;
        t->next = (i + 1) & t->mask;
        *key_out = k;
        return MRC_OK;
    }
    return MRC_ERR_FULL;
}

int mrc_mr_drop(struct mrc_mr_table *t, uint32_t key)
{
    struct mrc_mr *m = &t->mr[key & t->mask];
    if (key == 0 || m->key != key)
        return MRC_ERR_NOENT;
    if (m->refs != 0)
        return MRC_ERR_BUSY;
    memset(m, 0, sizeof *m);
    return MRC_OK;
}

struct mrc_mr *mrc_mr_find(struct mrc_mr_table *t, uint32_t key, uint32_t pd)
{
    struct mrc_mr *m = &t->mr[key & t->mask];
    return key != 0 && m->key == key && m->pd == pd ? m : NULL;
}

bool mrc_mr_allows(const struct mrc_mr *mr, uint64_t va, uint64_t len, uint8_t access)
{
    if ((mr->access & access) != access || va < mr->va)
        return false;
    const uint64_t off = va - mr->va;
    if (len == 0)
        return off < mr->len || off == 0;
    return off < mr->len && len <= mr->len - off;
}
