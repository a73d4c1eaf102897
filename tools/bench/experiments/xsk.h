/* SPDX-License-Identifier: BSD-2-Clause */
/* The sending half of AF_XDP in copy mode, without libxdp. A frame larger than a page has two
 * descriptors; the kernel completes the checksum. Needs Linux 6.11; its headers may be older. */
#ifndef MRC_BENCH_XSK_H
#define MRC_BENCH_XSK_H

#include <linux/if_xdp.h>
#include <stdbool.h>

#include "../loop.h"

enum {
    XSK_CHUNK_BYTES = 4096,
    XSK_CHUNKS = 2048,
    XSK_META_BYTES = 24, /* before each piece: what the kernel is told of the frame */
    XSK_HEAD_BYTES = XSK_CHUNK_BYTES - XSK_META_BYTES,
    XSK_RING = 2048,
    /* What headers of Linux 6.1 do not know. */
    XSK_USE_SG = 1 << 4,
    XSK_PACKET_GOES_ON = 1 << 0,
    XSK_HAS_META = 1 << 1,
    XSK_UMEM_META_LEN = 1 << 2,
    XSK_META_CHECKSUM = 1 << 1,
};

struct xsk_umem {
    uint64_t addr;
    uint64_t len;
    uint32_t chunk_size;
    uint32_t headroom;
    uint32_t flags;
    uint32_t tx_metadata_len;
};

struct xsk_meta {
    uint64_t flags;
    uint16_t csum_start;
    uint16_t csum_offset;
};

struct xsk {
    int fd;
    uint8_t *chunks;
    uint32_t free; /* chunks, of which the next one is `next` */
    uint32_t next;
    uint32_t *tx_tail;
    uint32_t *tx_head;
    struct xdp_desc *tx;
    uint32_t *done_tail;
    uint32_t *done_head;
};

/* False with errno: no such socket here. */
static inline bool xsk_open(struct xsk *x)
{
    const size_t bytes = (size_t)XSK_CHUNKS * XSK_CHUNK_BYTES;
    const int entries = XSK_RING;
    struct xdp_mmap_offsets off;
    socklen_t len = sizeof off;
    memset(x, 0, sizeof *x);
    x->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    x->chunks = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    const struct xsk_umem umem = {.addr = (uint64_t)(uintptr_t)x->chunks,
                                  .len = bytes,
                                  .chunk_size = XSK_CHUNK_BYTES,
                                  .flags = XSK_UMEM_META_LEN,
                                  .tx_metadata_len = XSK_META_BYTES};
    if (x->fd < 0 || x->chunks == MAP_FAILED ||
        setsockopt(x->fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof umem) != 0 ||
        setsockopt(x->fd, SOL_XDP, XDP_UMEM_FILL_RING, &entries, sizeof entries) != 0 ||
        setsockopt(x->fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &entries, sizeof entries) != 0 ||
        setsockopt(x->fd, SOL_XDP, XDP_TX_RING, &entries, sizeof entries) != 0 ||
        getsockopt(x->fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len) != 0)
        return false;
    uint8_t *tx = loop_map(x->fd, off.tx.desc + XSK_RING * sizeof *x->tx, XDP_PGOFF_TX_RING);
    uint8_t *done = loop_map(x->fd, off.cr.desc + XSK_RING * 8, XDP_UMEM_PGOFF_COMPLETION_RING);
    if (tx == NULL || done == NULL)
        return false;
    x->tx_tail = (void *)(tx + off.tx.producer);
    x->tx_head = (void *)(tx + off.tx.consumer);
    x->tx = (void *)(tx + off.tx.desc);
    x->done_tail = (void *)(done + off.cr.producer);
    x->done_head = (void *)(done + off.cr.consumer);
    x->free = XSK_CHUNKS;
    return true;
}

static inline bool xsk_bind(struct xsk *x, unsigned ifindex)
{
    const struct sockaddr_xdp at = {
        .sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY | XSK_USE_SG, .sxdp_ifindex = ifindex};
    loop_buffer(x->fd, SO_SNDBUFFORCE, SO_SNDBUF, LOOP_SNDBUF_BYTES);
    return bind(x->fd, (const struct sockaddr *)&at, sizeof at) == 0;
}

/* Chunks the kernel is done with. All are alike, and it gives back as many as it was given: which
 * one comes next does not matter to a loop whose frames hold no news. */
static inline void xsk_reap(struct xsk *x)
{
    const uint32_t tail = __atomic_load_n(x->done_tail, __ATOMIC_ACQUIRE);
    x->free += tail - *x->done_head;
    __atomic_store_n(x->done_head, tail, __ATOMIC_RELEASE);
}

static inline void xsk_describe(struct xsk *x, uint32_t at, uint64_t addr, size_t len,
                                uint32_t options)
{
    x->tx[at & (XSK_RING - 1)] =
        (struct xdp_desc){.addr = addr, .len = (uint32_t)len, .options = options};
}

/* Room for a frame: XSK_HEAD_BYTES at head, the rest at tail. False: none now. */
static inline bool xsk_next(struct xsk *x, size_t bytes, uint16_t csum_start, uint8_t **head,
                            uint8_t **tail)
{
    const uint32_t at = *x->tx_tail;
    const uint32_t pieces = bytes > XSK_HEAD_BYTES ? 2 : 1;
    if (x->free < 2 || XSK_RING - (at - __atomic_load_n(x->tx_head, __ATOMIC_ACQUIRE)) < 2)
        return false;
    const uint64_t base = (uint64_t)x->next * XSK_CHUNK_BYTES;
    const struct xsk_meta meta = {XSK_META_CHECKSUM, csum_start, 6};
    memcpy(x->chunks + base, &meta, sizeof meta);
    *head = x->chunks + base + XSK_META_BYTES;
    *tail = x->chunks + base + XSK_CHUNK_BYTES + XSK_META_BYTES;
    xsk_describe(x, at, base + XSK_META_BYTES, pieces == 2 ? XSK_HEAD_BYTES : bytes,
                 XSK_HAS_META | (pieces == 2 ? XSK_PACKET_GOES_ON : 0));
    if (pieces == 2)
        xsk_describe(x, at + 1, base + XSK_CHUNK_BYTES + XSK_META_BYTES, bytes - XSK_HEAD_BYTES, 0);
    x->next = (x->next + 2) % XSK_CHUNKS; /* in pairs: the tail follows the head */
    x->free -= pieces;
    __atomic_store_n(x->tx_tail, at + pieces, __ATOMIC_RELEASE);
    return true;
}

static inline ssize_t xsk_kick(struct xsk *x)
{
    return sendto(x->fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
}

#endif
