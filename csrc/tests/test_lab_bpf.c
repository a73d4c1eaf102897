/* SPDX-License-Identifier: BSD-2-Clause */
/* The tc program of mrc-lab as a program of this process, its kernel a buffer with bounds: what it
 * makes of packets, and that no packet makes it touch what is not there (asan watches). */
#define MRC_BPF_H
#include "t.h"

#include <linux/bpf.h>

#define SECTION(name) __attribute__((used))
#define INLINE static inline

enum { PORT = 3, AGAIN = 7 /* TC_ACT_REDIRECT */ };

static struct {
    uint8_t *bytes; /* exactly as many as the packet has */
    bool encapsulated;
    uint64_t now_ns;
    uint64_t random;
} k;

static uint32_t bpf_random(void)
{
    k.random = k.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(k.random >> 32);
}

static uint64_t bpf_now_ns(void) { return k.now_ns; }

static uint32_t slot(void) { return PORT; }

static void *bpf_lookup(void *map, const void *key);

static bool inside(const struct __sk_buff *skb, uint32_t at, uint32_t len)
{
    return len > 0 && at <= skb->len && len <= skb->len - at;
}

static long bpf_load(const void *p, uint32_t at, void *to, uint32_t len)
{
    if (!inside(p, at, len))
        return -14;
    memcpy(to, k.bytes + at, len);
    return 0;
}

static long bpf_store(void *p, uint32_t at, const void *from, uint32_t len, uint64_t flags)
{
    (void)flags;
    if (!inside(p, at, len))
        return -14;
    memcpy(k.bytes + at, from, len);
    return 0;
}

static void resize(struct __sk_buff *skb, uint32_t len)
{
    k.bytes = realloc(k.bytes, len);
    skb->len = len;
}

static long bpf_change_tail(void *p, uint32_t len, uint64_t flags)
{
    (void)flags;
    if (k.encapsulated || len < 14)
        return -22;
    resize(p, len);
    return 0;
}

/* Takes bytes out behind the outer header; so many at most, and never more than there are. */
static long bpf_adjust_room(void *p, int32_t by, uint32_t mode, uint64_t flags)
{
    struct __sk_buff *skb = p;
    const uint32_t at = 54;
    const uint32_t out = (uint32_t)-by;
    CHECK_EQ(mode, BPF_ADJ_ROOM_NET);
    (void)flags;
    if (by >= 0 || out > 0xFFF || skb->len <= at + out)
        return -22;
    memmove(k.bytes + at, k.bytes + at + out, skb->len - at - out);
    resize(skb, skb->len - out);
    return 0;
}

static long bpf_csum_diff(const void *from, uint32_t from_size, const void *to, uint32_t to_size,
                          uint32_t seed)
{
    uint64_t sum = seed;
    CHECK(from == NULL && from_size == 0 && to_size % 4 == 0);
    for (uint32_t i = 0; i < to_size; i += 4) {
        uint32_t word;
        memcpy(&word, (const uint8_t *)to + i, 4);
        sum += word;
    }
    while (sum >> 32)
        sum = (sum & 0xFFFFFFFF) + (sum >> 32);
    return (long)sum;
}

static long bpf_l4_csum(void *p, uint32_t at, uint64_t from, uint64_t to, uint64_t flags)
{
    (void)from, (void)to, (void)flags;
    return inside(p, at, 2) ? 0 : -14;
}

static long bpf_redirect(uint32_t ifindex, uint64_t flags)
{
    CHECK_EQ(ifindex, PORT + 100);
    CHECK_EQ(flags, 0);
    return AGAIN;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "../bpf/mrc_fabric.bpf.c"
#pragma GCC diagnostic pop

static struct config config;
static struct state state;
static struct counts counts;

static void *bpf_lookup(void *map, const void *key)
{
    uint32_t port;
    memcpy(&port, key, sizeof port);
    CHECK_EQ(port, PORT);
    return map == &configs ? (void *)&config : map == &states ? (void *)&state : (void *)&counts;
}

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static uint32_t get16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }

static void put_ipv6(uint8_t *p, uint32_t tclass, uint32_t len, uint8_t next)
{
    memset(p, 0, 8);
    p[0] = (uint8_t)(0x60 | tclass >> 4);
    p[1] = (uint8_t)(tclass << 4);
    put16(p + 4, len);
    p[6] = next;
    for (uint32_t i = 8; i < IPV6; i++)
        p[i] = (uint8_t)i;
}

/* A data packet: outer header, inner header, UDP, so many bytes. Returns where UDP begins. */
static uint32_t make(struct __sk_buff *skb, uint32_t tclass, uint32_t data, uint32_t srh)
{
    const uint32_t inner = ETHERNET + IPV6 + srh, udp = inner + IPV6;
    const uint32_t len = udp + UDP + data;
    *skb = (struct __sk_buff){.wire_len = len, .protocol = 0xDD86, .ifindex = PORT + 100};
    resize(skb, len);
    for (uint32_t i = 0; i < len; i++)
        k.bytes[i] = (uint8_t)(i * 7);
    put_ipv6(k.bytes + ETHERNET, tclass, len - ETHERNET - IPV6, srh ? NH_ROUTING : NH_IPV6);
    if (srh > 0) {
        k.bytes[ETHERNET + IPV6] = NH_IPV6;
        k.bytes[ETHERNET + IPV6 + 1] = (uint8_t)(srh / 8 - 1);
    }
    put_ipv6(k.bytes + inner, tclass, UDP + data, NH_UDP);
    put16(k.bytes + udp + 4, UDP + data);
    return udp;
}

static void configure(struct config c)
{
    config = c;
    state = (struct state){0};
    counts = (struct counts){0};
    k.now_ns = 1000000000;
}

static const struct config CUT_ALL = {
    .trim_upto = UINT32_MAX, .trimmed_dscp = LASTHOP, .trimmable_dscp = {4, 8}};

/* To the port, as often as the program asks for it. */
static void enqueue(struct __sk_buff *skb)
{
    int verdict = mrc_queue(skb);
    if (verdict == AGAIN) {
        skb->wire_len = skb->len;
        verdict = mrc_queue(skb);
    }
    CHECK_EQ(verdict, KEEP);
}

/* What RFC 8200 sums up over the packet at `ip`; right when it is 0xFFFF. */
static uint32_t udp_sum(uint32_t ip, uint32_t udp)
{
    const uint32_t len = get16(k.bytes + udp + 4);
    uint32_t sum = len + NH_UDP;
    for (uint32_t i = 8; i < IPV6; i += 2)
        sum += get16(k.bytes + ip + i);
    for (uint32_t i = 0; i < len; i += 2)
        sum += get16(k.bytes + udp + i);
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return sum;
}

TEST(wire__a_cut_packet_has_lengths_class_and_checksum_of_what_is_left)
{
    for (int encapsulated = 0; encapsulated < 2; encapsulated++) {
        struct __sk_buff skb;
        uint8_t begin[UDP + RETAINED];
        configure(CUT_ALL);
        k.encapsulated = encapsulated;
        const uint32_t udp = make(&skb, 4 << 2 | 2, 4000, 0);
        memcpy(begin, k.bytes + udp, sizeof begin);
        CHECK_EQ(mrc_wire(&skb), KEEP);
        CHECK_EQ(counts.trimmed, 1);
        CHECK_EQ(skb.len, udp + UDP + RETAINED);
        CHECK_EQ(get16(k.bytes + ETHERNET + 4), IPV6 + UDP + RETAINED);
        CHECK_EQ(get16(k.bytes + udp - IPV6 + 4), UDP + RETAINED);
        CHECK_EQ(get16(k.bytes + udp + 4), UDP + RETAINED);
        CHECK_EQ(traffic_class(k.bytes + ETHERNET), LASTHOP << 2 | 2);
        CHECK_EQ(traffic_class(k.bytes + udp - IPV6), LASTHOP << 2 | 2);
        CHECK_MEM(k.bytes + udp + UDP, begin + UDP, RETAINED);
        CHECK_EQ(udp_sum(udp - IPV6, udp), 0xFFFF);
    }
    k.encapsulated = false;
}

TEST(wire__the_kernel_takes_so_many_bytes_out_and_no_more)
{
    struct __sk_buff skb;
    configure(CUT_ALL);
    k.encapsulated = true;
    for (uint32_t data = 4095 + RETAINED; data <= 4096 + RETAINED; data++) {
        counts.trimmed = 0;
        const uint32_t udp = make(&skb, 4 << 2, data, 0);
        CHECK_EQ(mrc_wire(&skb), KEEP);
        CHECK_EQ(counts.trimmed, data == 4095 + RETAINED);
        CHECK_EQ(skb.len, udp + UDP + (counts.trimmed ? RETAINED : data));
    }
    k.encapsulated = false;
}

TEST(wire__what_may_not_be_cut_is_not)
{
    const struct {
        uint32_t dscp, data, segments;
    } kept[] = {{0, 2000, 0}, {46, 2000, 0}, {12, 2000, 0}, {4, RETAINED, 0}, {4, 2000, 2}};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        struct __sk_buff skb;
        configure(CUT_ALL);
        const uint32_t udp = make(&skb, kept[i].dscp << 2, kept[i].data, 0);
        skb.gso_segs = kept[i].segments;
        CHECK_EQ(mrc_wire(&skb), KEEP);
        CHECK_EQ(counts.trimmed, 0);
        CHECK_EQ(skb.len, udp + UDP + kept[i].data);
    }
}

TEST(wire__one_bit_is_flipped_behind_the_udp_header)
{
    struct __sk_buff skb;
    for (uint32_t n = 0; n < 500; n++) {
        configure((struct config){.corrupt_upto = UINT32_MAX});
        const uint32_t udp = make(&skb, 0, 100 + n % 3, 0);
        CHECK_EQ(mrc_wire(&skb), KEEP);
        uint32_t bits = 0;
        for (uint32_t i = udp + UDP; i < skb.len; i++)
            bits += (uint32_t)__builtin_popcount(k.bytes[i] ^ (uint8_t)(i * 7));
        CHECK_EQ(bits, 1);
        CHECK_EQ(counts.corrupted, 1);
    }
}

TEST(queue__cuts_what_does_not_fit_and_lets_it_leave_first)
{
    struct __sk_buff skb;
    configure((struct config){
        .rate_bytes = 1 << 20, .limit = 10000, .trimmed_dscp = TRIMMED, .trimmable_dscp = {4, 8}});
    state.last_ns = k.now_ns;
    for (uint32_t n = 0; n < 10; n++) {
        const uint32_t udp = make(&skb, 4 << 2, 2000, 0);
        const uint64_t before = state.waiting;
        enqueue(&skb);
        const bool cut = before + udp + UDP + 2000 > 10000;
        CHECK_EQ(skb.len, udp + UDP + (cut ? RETAINED : 2000));
        CHECK_EQ(skb.priority, cut ? FIRST : 0);
        CHECK_EQ(state.waiting - before, skb.len);
    }
    CHECK(counts.trimmed > 3);
    make(&skb, TRIMMED << 2, RETAINED, 0); /* cut by a switch before */
    enqueue(&skb);
    CHECK_EQ(skb.priority, FIRST);
    k.now_ns += 2000000000u;
    make(&skb, 4 << 2, 2000, 0);
    enqueue(&skb);
    CHECK_EQ(state.waiting, skb.len); /* it had emptied meanwhile */
}

TEST(queue__marks_between_its_thresholds_in_both_headers)
{
    struct __sk_buff skb;
    for (uint32_t ecn = 0; ecn < 4; ecn++) {
        configure((struct config){.rate_bytes = 1 << 20, .mark_lo = 1000, .mark_hi = 3000});
        state = (struct state){.last_ns = k.now_ns, .waiting = 3000};
        const uint32_t udp = make(&skb, ecn, 500, 24);
        CHECK_EQ(mrc_queue(&skb), KEEP);
        const uint32_t now = ecn == 0 ? 0 : CE;
        CHECK_EQ(traffic_class(k.bytes + ETHERNET), now);
        CHECK_EQ(traffic_class(k.bytes + udp - IPV6), now);
        CHECK_EQ(counts.marked, ecn == 1 || ecn == 2);
    }
}

/* Headers that promise what is not there, of every length: nothing outside is touched, no packet
 * grows, and what is told apart from others stays KEEP. */
TEST(any_packet__is_kept_and_never_touched_outside)
{
    struct __sk_buff skb;
    for (uint32_t n = 0; n < 200000; n++) {
        configure((struct config){
            .rate_bytes = bpf_random() % 3 == 0 ? 0 : bpf_random(),
            .mark_hi = bpf_random() % 5000,
            .limit = bpf_random() % 3000,
            .corrupt_upto = bpf_random() % 2 ? UINT32_MAX : 0,
            .trim_upto = bpf_random() % 2 ? UINT32_MAX : 0,
            .trimmed_dscp = TRIMMED,
            .trimmable_dscp = {4, 8},
        });
        state.waiting = bpf_random() % 4000;
        k.encapsulated = bpf_random() % 2;
        (void)make(&skb, bpf_random() & 0xFF, bpf_random() % 300, bpf_random() % 2 ? 24 : 0);
        for (uint32_t i = bpf_random() % 6; i > 0; i--)
            k.bytes[bpf_random() % (skb.len < 140 ? skb.len : 140)] = (uint8_t)bpf_random();
        resize(&skb, bpf_random() % 4 ? skb.len : 1 + bpf_random() % skb.len);
        skb.gso_segs = bpf_random() % 3;
        skb.wire_len = skb.len;
        const uint32_t before = skb.len;
        if (bpf_random() % 2)
            enqueue(&skb);
        else
            CHECK_EQ(mrc_wire(&skb), KEEP);
        CHECK(skb.len <= before);
    }
    free(k.bytes);
    k.bytes = NULL;
}
