/* SPDX-License-Identifier: BSD-2-Clause */
/* What a switch of the lab does that the kernel's own queues do not: marks, trims, damage.
 *
 *   queue   at the egress of a port that has a rate, before its TBF. A virtual queue, drained at
 * the port's rate, says how many bytes wait: CE between two thresholds (MRC E.8), and what would
 * not fit is cut to its headers (A.13.6) wire    where a link ends: a share of the packets has a
 * bit flipped, or is cut
 *
 * Loaded by mrc/lab/bpf.py, once for each port; SLOT is the port's place in the maps. A train (GSO)
 * is marked as one packet, and neither cut nor damaged: where that is wanted, trains are cut up. */
#include "mrc_bpf.h"

enum {
    KEEP = -1, /* TC_ACT_UNSPEC: on to the next filter */
    ETHERNET = 14,
    IPV6 = 40,
    UDP = 8,
    NH_UDP = 17,
    NH_IPV6 = 41,
    NH_ROUTING = 43,
    RETAINED = 64, /* bytes behind the UDP header of a cut packet: BTH, METH, TSETH, RETH */
    CE = 3,
    RECOMPUTE = 1, /* BPF_F_RECOMPUTE_CSUM */
    TRIMMED = 12,  /* DSCP of what has been cut (A.13.5, our defaults) */
    LASTHOP = 16,
    FIRST = 0x100001, /* the class in which that leaves before data: 10:1 of mrc/lab/config.py */
};

/* Written by the program that loads this: the order is bpf.py's. */
struct config {
    __u64 rate_bytes; /* a second; 0: no virtual queue */
    __u32 mark_lo;    /* bytes; hi = 0: no marks */
    __u32 mark_hi;
    __u32 limit;        /* bytes that may wait; more is cut. 0: nothing is */
    __u32 corrupt_upto; /* of 2^32 */
    __u32 trim_upto;
    __u8 trimmed_dscp; /* TRIMMED, or TRIMMED_LASTHOP towards a host */
    __u8 trimmable_dscp[2];
    __u8 pad;
};

struct state {
    __u64 last_ns;
    __u64 waiting; /* bytes */
};

struct counts {
    __u64 marked;
    __u64 trimmed;
    __u64 corrupted;
};

struct map {
    __u32 type, key_size, value_size, max_entries;
};
struct map configs SECTION("maps") = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct config), 0};
struct map states SECTION("maps") = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct state), 0};
struct map counters SECTION("maps") = {BPF_MAP_TYPE_ARRAY, 4, sizeof(struct counts), 0};

/* Where the headers of a packet begin; udp = 0: not one of ours. */
struct layout {
    __u32 inner; /* 0: not encapsulated */
    __u32 udp;
    __u8 dscp;
    __u8 ecn;
};

INLINE __u8 traffic_class(const __u8 *ip) { return (__u8)(ip[0] << 4 | ip[1] >> 4); }

INLINE struct layout parse(struct __sk_buff *skb)
{
    struct layout l = {0};
    __u8 ip[8], srh[2], next;
    __u32 at = ETHERNET;
    if (skb->protocol != __builtin_bswap16(0x86DD) || bpf_load(skb, at, ip, sizeof ip) != 0)
        return l;
    l.dscp = traffic_class(ip) >> 2;
    l.ecn = traffic_class(ip) & CE;
    next = ip[6];
    at += IPV6;
    if (next == NH_ROUTING) {
        if (bpf_load(skb, at, srh, sizeof srh) != 0)
            return l;
        next = srh[0];
        at += 8 + srh[1] * 8u;
    }
    if (next == NH_IPV6) {
        if (bpf_load(skb, at, ip, sizeof ip) != 0)
            return l;
        l.inner = at;
        next = ip[6];
        at += IPV6;
    }
    if (next == NH_UDP)
        l.udp = at;
    return l;
}

/* DSCP and ECN of one header; what is not to change is as `keep` says. */
INLINE void set_class(struct __sk_buff *skb, __u32 at, __u8 bits, __u8 keep)
{
    __u8 ip[2];
    if (bpf_load(skb, at, ip, sizeof ip) != 0)
        return;
    const __u8 tc = (traffic_class(ip) & keep) | bits;
    ip[0] = (ip[0] & 0xF0) | tc >> 4;
    ip[1] = (__u8)(tc << 4) | (ip[1] & 0x0F);
    (void)bpf_store(skb, at, ip, sizeof ip, RECOMPUTE);
}

/* In both headers: the kernel's End.DT6 forgets the outer one. */
INLINE void set_classes(struct __sk_buff *skb, const struct layout *l, __u8 bits, __u8 keep)
{
    set_class(skb, ETHERNET, bits, keep);
    if (l->inner != 0)
        set_class(skb, l->inner, bits, keep);
}

INLINE void set_length(struct __sk_buff *skb, __u32 at, __u32 len)
{
    const __u16 wire = __builtin_bswap16((__u16)len);
    (void)bpf_store(skb, at, &wire, sizeof wire, RECOMPUTE);
}

/* Over pseudo header, UDP header and what is left; a receiver must accept it (A.13.4). */
INLINE void set_checksum(struct __sk_buff *skb, __u32 ip, __u32 udp)
{
    __u32 words[(32 + 8 + UDP + RETAINED) / 4] = {0};
    __u8 *bytes = (__u8 *)words;
    if (bpf_load(skb, ip + 8, bytes, 32) != 0 ||
        bpf_load(skb, udp, bytes + 40, UDP + RETAINED) != 0)
        return;
    bytes[34] = (UDP + RETAINED) >> 8;
    bytes[35] = (UDP + RETAINED) & 0xFF;
    bytes[39] = NH_UDP;
    bytes[46] = bytes[47] = 0; /* the checksum itself */
    const long diff = bpf_csum_diff(0, 0, words, sizeof words, 0);
    if (diff < 0)
        return;
    __u32 sum = (__u32)diff;
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    __u16 check = (__u16)~sum;
    if (check == 0)
        check = 0xFFFF;
    (void)bpf_store(skb, udp + 6, &check, sizeof check, 0);
}

/* The kernel does not shorten what it has encapsulated itself. But it takes bytes out behind the
 * outer header; there the headers are written again, over what was the end of the data. */
INLINE int shorten(struct __sk_buff *skb, const struct layout *l, __u32 len)
{
    __u8 kept[IPV6 + UDP + RETAINED];
    if (bpf_change_tail(skb, len, 0) == 0)
        return 1;
    if (l->inner != ETHERNET + IPV6 || bpf_load(skb, l->inner, kept, sizeof kept) != 0 ||
        bpf_adjust_room(skb, (__s32)len - (__s32)skb->len, BPF_ADJ_ROOM_NET, 0) != 0)
        return 0;
    return bpf_store(skb, l->inner, kept, sizeof kept, 0) == 0;
}

/* A.13.6: headers survive, lengths are made right, or the next kernel would drop it. */
INLINE int trim(struct __sk_buff *skb, const struct layout *l, const struct config *c)
{
    const __u32 len = l->udp + UDP + RETAINED;
    const __u32 ip = l->inner != 0 ? l->inner : ETHERNET;
    const __u8 bits = (__u8)(c->trimmed_dscp << 2);
    if (l->dscp != c->trimmable_dscp[0] && l->dscp != c->trimmable_dscp[1])
        return 0;
    if (skb->gso_segs > 1 || skb->len <= len || !shorten(skb, l, len))
        return 0;
    set_classes(skb, l, bits, CE);
    set_length(skb, ETHERNET + 4, len - ETHERNET - IPV6);
    if (l->inner != 0)
        set_length(skb, l->inner + 4, len - l->inner - IPV6);
    set_length(skb, l->udp + 4, UDP + RETAINED);
    set_checksum(skb, ip, l->udp);
    return 1;
}

INLINE int is_marked(const struct config *c, __u64 waiting)
{
    if (c->mark_hi == 0 || waiting <= c->mark_lo)
        return 0;
    if (waiting >= c->mark_hi)
        return 1;
    const __u64 over = waiting - c->mark_lo, span = c->mark_hi - c->mark_lo;
    return (bpf_random() & 0xFFFF) * span < over << 16;
}

SECTION("queue") int mrc_queue(struct __sk_buff *skb)
{
    const __u32 key = slot();
    const struct config *c = bpf_lookup(&configs, &key);
    struct state *s = bpf_lookup(&states, &key);
    struct counts *n = bpf_lookup(&counters, &key);
    if (c == 0 || s == 0 || n == 0 || c->rate_bytes == 0)
        return KEEP;
    const __u64 now = bpf_now_ns();
    __u64 past = now - s->last_ns;
    if (past > 1000000000u)
        past = 1000000000u; /* by then any queue is empty, and nothing overflows */
    const __u64 sent = past * (c->rate_bytes >> 10) / (1000000000u >> 10);
    __u64 waiting = s->waiting > sent ? s->waiting - sent : 0;
    const __u32 len = skb->wire_len;
    s->last_ns = now;
    s->waiting = waiting;
    const struct layout l = parse(skb);
    if (l.udp != 0 && c->limit != 0 && waiting + len > c->limit && trim(skb, &l, c)) {
        __sync_fetch_and_add(&n->trimmed, 1);
        /* What TBF takes it for was noted before: it goes to this port anew, as short as it is. */
        return (int)bpf_redirect(skb->ifindex, 0);
    }
    if (l.ecn != 0 && l.ecn != CE && is_marked(c, waiting)) {
        set_classes(skb, &l, CE, 0xFF);
        __sync_fetch_and_add(&n->marked, 1);
    }
    if (l.udp != 0 && (l.dscp == TRIMMED || l.dscp == LASTHOP))
        skb->priority = FIRST;
    s->waiting = waiting + len;
    return KEEP;
}

/* One bit behind the UDP header; the UDP checksum follows, so that only the iCRC can find it. */
INLINE int corrupt(struct __sk_buff *skb, const struct layout *l)
{
    const __u32 first = l->udp + UDP;
    __u16 before, after;
    if (skb->gso_segs > 1 || skb->len < first + 2)
        return 0;
    const __u32 words = (skb->len - first) / 2;
    const __u32 at = first + (words == 0 ? 0 : bpf_random() % words) * 2;
    if (bpf_load(skb, at, &before, sizeof before) != 0)
        return 0;
    after = before ^ (__u16)(1u << (bpf_random() & 15));
    if (bpf_store(skb, at, &after, sizeof after, 0) != 0)
        return 0;
    (void)bpf_l4_csum(skb, l->udp + 6, before, after, sizeof after);
    return 1;
}

SECTION("wire") int mrc_wire(struct __sk_buff *skb)
{
    const __u32 key = slot();
    const struct config *c = bpf_lookup(&configs, &key);
    struct counts *n = bpf_lookup(&counters, &key);
    if (c == 0 || n == 0 || (c->corrupt_upto == 0 && c->trim_upto == 0))
        return KEEP;
    const struct layout l = parse(skb);
    if (l.udp == 0)
        return KEEP;
    if (c->trim_upto != 0 && bpf_random() <= c->trim_upto && trim(skb, &l, c)) {
        __sync_fetch_and_add(&n->trimmed, 1);
        return KEEP;
    }
    if (c->corrupt_upto != 0 && bpf_random() <= c->corrupt_upto && corrupt(skb, &l))
        __sync_fetch_and_add(&n->corrupted, 1);
    return KEEP;
}

char mrc_license[] SECTION("license") = "BSD";
