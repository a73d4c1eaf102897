/* SPDX-License-Identifier: BSD-2-Clause */
/* What the raw sockets of a port make of packets that were built by hand. */
#include "../io/mrc_rawrx.h"
#include "raw_rig.h"

struct craft {
    uint8_t srh[MRC_SRH_LEN]; /* begins the routing header, */
    uint16_t srh_len;         /* which has so many bytes; 0: there is none */
    uint8_t outer_class;
    uint8_t inner_class;
    uint16_t udp_len; /* as stated */
    uint16_t ip_len;  /* as stated by the inner header */
    uint16_t present; /* bytes after the UDP header */
    uint16_t cut;     /* != 0: bytes after the outer header that are there at all */
    uint16_t dport;
    uint8_t version;
    uint8_t next;
};

/* The packet without its outer header. Returns its length. */
static size_t craft_inside(const struct craft *c, uint8_t *p)
{
    uint8_t *in = p + c->srh_len;
    memset(p, 0, c->srh_len);
    memcpy(p, c->srh, c->srh_len > 0 ? MRC_SRH_LEN : 0);
    put_ip(in, c->inner_class, c->ip_len, c->next, port_loopback);
    in[0] = (uint8_t)(c->version << 4 | (in[0] & 15));
    mrc_put16(in + IP_LEN, 0xC123);
    mrc_put16(in + IP_LEN + 2, c->dport);
    mrc_put16(in + IP_LEN + 4, c->udp_len);
    mrc_put16(in + IP_LEN + 6, 0);
    for (uint32_t i = 0; i < c->present; i++)
        in[IP_LEN + UDP_LEN + i] = port_byte(1, i);
    return c->cut != 0 ? c->cut : (size_t)c->srh_len + IP_LEN + UDP_LEN + c->present;
}

static void craft_send(const struct craft *c)
{
    static uint8_t p[8192];
    const size_t len = craft_inside(c, p + IP_LEN);
    put_ip(p, c->outer_class, (uint16_t)len, c->srh_len > 0 ? NH_ROUTING : NH_IPV6, carrier);
    struct sockaddr_in6 to = {.sin6_family = AF_INET6};
    memcpy(&to.sin6_addr, carrier, 16);
    const int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    CHECK_EQ(sendto(fd, p, IP_LEN + len, 0, (struct sockaddr *)&to, sizeof to), IP_LEN + len);
    close(fd);
}

static struct craft craft_good(const struct port *to)
{
    return (struct craft){.udp_len = UDP_LEN + 100,
                          .ip_len = UDP_LEN + 100,
                          .present = 100,
                          .dport = to->io->stats.udp_port,
                          .version = 6,
                          .next = NH_UDP};
}

/* Behind the SRH that arrives in both uses: one entry, no segments left. */
static struct craft craft_srh(const struct port *to)
{
    struct craft c = craft_good(to);
    c.srh[0] = NH_IPV6;
    c.srh[1] = 2;
    c.srh[2] = 4;
    c.srh_len = SRH_LEN;
    return c;
}

/* field report 68, A.13.1: CE counts wherever it was set; the class inside stays. */
static int child_ecn(void)
{
    child_fabric();
    struct port b = port_open(MRC_IO_RAW);
    for (uint8_t outer = 0; outer < 4; outer++) {
        for (uint8_t inner = 0; inner < 8; inner++) {
            struct craft c = inner < 4 ? craft_good(&b) : craft_srh(&b);
            c.outer_class = (uint8_t)(9 << 2 | outer);
            c.inner_class = (uint8_t)(7 << 2 | (inner & 3));
            craft_send(&c);
            size_t n = 0;
            const struct arrival *in = port_rx(&b, 1, &n);
            CHECK_EQ(n, 1);
            CHECK_EQ(in->pkt.outer_ce, outer == 3);
            CHECK_EQ(in->pkt.tclass, 7 << 2 | (inner & 3));
        }
    }
    port_close(&b);
    return 0;
}

TEST(raw_rx__outer_ce) { child_run("raw_rx__outer_ce", child_ecn); }

/* A.13.6: cut packets, their lengths corrected or not, their class rewritten outside or inside. */
static int child_trimmed(void)
{
    child_fabric();
    struct port b = port_open(MRC_IO_RAW);
    b.io->dscp_trimmed[0] = 12;
    b.io->dscp_trimmed[1] = 16;
    for (int k = 0; k < 8; k++) {
        struct craft c = k & 4 ? craft_srh(&b) : craft_good(&b);
        const uint8_t dscp = k & 2 ? 16 : 12;
        c.present = 36;
        c.outer_class = (uint8_t)(dscp << 2 | 3);
        c.inner_class = k & 1 ? c.outer_class : 4 << 2 | 2;
        if (k & 1) { /* a software switch mends the lengths */
            c.udp_len = UDP_LEN + 36;
            c.ip_len = UDP_LEN + 36;
        }
        craft_send(&c);
        size_t n = 0;
        const struct arrival *in = port_rx(&b, 1, &n);
        CHECK_EQ(n, 1);
        CHECK_EQ(in->pkt.len, 36);
        CHECK_EQ(in->pkt.udp_len, c.udp_len);
        CHECK_EQ(in->pkt.tclass >> 2, dscp);
        CHECK(in->pkt.outer_ce);
    }
    port_close(&b);
    return 0;
}

TEST(raw_rx__trimmed) { child_run("raw_rx__trimmed", child_trimmed); }

static int child_malformed(void)
{
    child_fabric();
    struct port b = port_open(MRC_IO_RAW);
    const struct craft good = craft_good(&b);
    struct craft c = good;
    uint64_t bad = 0;
    for (uint16_t cut = 44; cut < 48; cut++, bad++) { /* shorter ones stop at the filter */
        c.cut = cut;
        craft_send(&c);
    }
    c = good;
    c.version = 4;
    craft_send(&c);
    bad++;
    for (uint16_t len = 0; len < UDP_LEN; len++, bad++) {
        c = good;
        c.udp_len = len;
        craft_send(&c);
    }
    for (uint16_t cut = 1; cut < 44; cut++) {
        c = good;
        c.cut = cut;
        craft_send(&c);
    }
    c = good;
    c.next = NH_ROUTING;
    craft_send(&c);
    c = good;
    c.dport++;
    craft_send(&c);
    c = good;
    c.udp_len = UDP_LEN; /* an empty datagram is none of ours, but harmless: the core drops it */
    craft_send(&c);
    c = good;
    c.present = 200; /* bytes past the UDP length are not the packet's */
    craft_send(&c);
    craft_send(&good);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 3, &n);
    CHECK_EQ(n, 3);
    CHECK_EQ(in[0].pkt.len, 0);
    CHECK_EQ(in[1].pkt.len, 100);
    CHECK_EQ(in[2].pkt.len, 100);
    CHECK_EQ(b.io->stats.rx_malformed, bad);
    port_close(&b);
    return 0;
}

TEST(raw_rx__malformed) { child_run("raw_rx__malformed", child_malformed); }

/* A.13.2, RFC 8754: what the filter lets through and is wrong anyway is counted. */
static int child_malformed_srh(void)
{
    child_fabric();
    struct port b = port_open(MRC_IO_RAW);
    const struct craft good = craft_srh(&b);
    uint64_t bad = 0;
    const struct {
        uint8_t at;
        uint8_t value;
    } wrong[] = {
        {0, NH_UDP}, {0, NH_ROUTING}, {0, 59},  /* not IPv6 */
        {3, 1},      {3, 2},          {3, 255}, /* on its way somewhere else */
        {4, 1},      {4, 255},                  /* more entries than there is room for */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++, bad++) {
        struct craft c = good;
        c.srh[wrong[i].at] = wrong[i].value;
        craft_send(&c);
    }
    for (uint16_t cut = SRH_LEN + 44; cut < SRH_LEN + 48; cut++, bad++) {
        struct craft c = good;
        c.cut = cut;
        craft_send(&c);
    }
    for (uint16_t cut = 1; cut < SRH_LEN + 44; cut++) { /* the filter finds no port of ours */
        struct craft c = good;
        c.cut = cut;
        craft_send(&c);
    }
    struct craft c = good;
    c.srh[1] = 0; /* no entry at all */
    c.srh_len = MRC_SRH_LEN;
    craft_send(&c);
    bad++;
    for (uint32_t ext = 0; ext < 256; ext++) { /* a length that leads elsewhere, or past the end */
        c = good;
        c.srh[1] = (uint8_t)ext;
        if (ext != 2)
            craft_send(&c);
    }
    c = good;
    c.srh[1] = 6; /* two entries, and TLVs in the place of a third */
    c.srh[4] = 1;
    c.srh_len = 56;
    craft_send(&c);
    craft_send(&good);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 2, &n);
    CHECK_EQ(n, 2);
    CHECK_EQ(in[0].pkt.len, 100);
    CHECK_EQ(in[1].pkt.len, 100);
    CHECK_EQ(b.io->stats.rx_malformed, bad);
    port_close(&b);
    return 0;
}

TEST(raw_rx__malformed_srh) { child_run("raw_rx__malformed_srh", child_malformed_srh); }

/* RFC 8200: a node passes over a used-up routing header it does not know. The kernel does it for
 * us, so the packet arrives, once, and not as a malformed one. */
static int child_other_routing(void)
{
    child_fabric();
    struct port b = port_open(MRC_IO_RAW);
    struct craft c = craft_srh(&b);
    c.srh[2] = 253; /* for experiments, RFC 4727 */
    c.outer_class = 3;
    craft_send(&c);
    size_t n = 0;
    size_t more = 0;
    const struct arrival *in = port_rx(&b, 1, &n);
    CHECK_EQ(n, 1);
    CHECK_EQ(in->pkt.len, 100);
    CHECK(in->pkt.outer_ce);
    c.srh[3] = 1; /* not used up: an error of the sender's */
    craft_send(&c);
    port_rx(&b, 0, &more);
    CHECK_EQ(more, 0);
    CHECK_EQ(b.io->stats.rx_malformed, 0);
    port_close(&b);
    return 0;
}

TEST(raw_rx__other_routing_headers)
{
    child_run("raw_rx__other_routing_headers", child_other_routing);
}

/* seg6_enabled, for all and for the interface: then the kernel takes outer header and SRH off, and
 * its packet must be the only one. Else it drops what it cannot use, and ours is. */
static int child_seg6(void)
{
    child_fabric();
    const char *lo[] = {"1", "0"};
    child_write("/proc/sys/net/ipv6/conf/all/seg6_enabled", "1");
    for (int k = 0; k < 2; k++) {
        child_write("/proc/sys/net/ipv6/conf/lo/seg6_enabled", lo[k]);
        struct port b = port_open(MRC_IO_RAW);
        struct craft c = craft_srh(&b);
        c.outer_class = 3;
        for (int i = 0; i < 20; i++)
            craft_send(&c);
        size_t n = 0;
        size_t more = 0;
        const struct arrival *in = port_rx(&b, 20, &n);
        CHECK_EQ(n, 20);
        for (size_t i = 0; i < n; i++) {
            CHECK_EQ(in[i].pkt.len, 100);
            CHECK_EQ(in[i].pkt.outer_ce, k == 1);
        }
        port_rx(&b, 0, &more);
        CHECK_EQ(more, 0);
        CHECK_EQ(b.io->stats.rx_packets, 20);
        CHECK_EQ(b.io->stats.rx_malformed, 0);
        port_close(&b);
    }
    return 0;
}

TEST(raw_rx__never_twice) { child_run("raw_rx__never_twice", child_seg6); }

/* The parser alone, over memory that ends where the packet ends: any cut, any two bytes wrong. */
static bool parse_copy(const struct mrc_io *io, const uint8_t *p, size_t len,
                       struct mrc_rx_pkt *out)
{
    uint8_t *exact = malloc(len + (len == 0)); /* a sanitizer sees one byte too far */
    memcpy(exact, p, len);
    const bool ok = mrc_rawrx_parse(io, NH_ROUTING, exact, (uint32_t)len, out);
    if (ok) {
        CHECK(out->bytes >= exact && out->bytes + out->len <= exact + len);
        uint32_t sum = 0;
        for (uint32_t i = 0; i < out->len; i++)
            sum += out->bytes[i];
        CHECK(sum <= 255 * out->len);
    }
    free(exact);
    return ok;
}

TEST(rawrx_parse__srh_bounds)
{
    struct mrc_io io = {.stats = {.udp_port = 4791}};
    struct port to = {.io = &io};
    uint8_t p[512];
    struct mrc_rx_pkt pkt;
    for (uint16_t ext = 0; ext <= 24; ext++) {
        struct craft c = craft_srh(&to);
        c.srh[1] = (uint8_t)ext;
        c.srh_len = (uint16_t)(MRC_SRH_LEN + 8 * ext);
        c.present = 20;
        const size_t len = craft_inside(&c, p);
        for (uint32_t last = 0; last < 256; last++) {
            p[4] = (uint8_t)last;
            CHECK_EQ(parse_copy(&io, p, len, &pkt), 2 * (last + 1) <= ext);
        }
        p[4] = 0;
        for (size_t cut = 0; cut <= len; cut++) {
            const size_t inner = (size_t)c.srh_len + IP_LEN + UDP_LEN;
            const bool ok = parse_copy(&io, p, cut, &pkt);
            CHECK_EQ(ok, ext >= 2 && cut >= inner);
            if (ok)
                CHECK_EQ(pkt.len, cut - inner);
        }
    }
}

TEST(rawrx_parse__every_byte_of_the_srh)
{
    struct mrc_io io = {.stats = {.udp_port = 4791}};
    struct port to = {.io = &io};
    const struct craft c = craft_srh(&to);
    uint8_t p[512];
    struct mrc_rx_pkt pkt;
    const size_t len = craft_inside(&c, p);
    CHECK(parse_copy(&io, p, len, &pkt));
    for (uint32_t at = 0; at < SRH_LEN; at++) {
        const uint8_t right = p[at];
        for (uint32_t value = 0; value < 256; value++) {
            p[at] = (uint8_t)value;
            /* flags, tag and segments do not matter to the last node */
            CHECK_EQ(parse_copy(&io, p, len, &pkt), value == right || at >= 5);
        }
        p[at] = right;
    }
}

/* More packets on all three sockets than one call takes: all get their turn. */
static int child_turns(void)
{
    enum { EACH = 100 };
    child_fabric();
    struct port a = port_open(MRC_IO_RAW);
    struct port b = port_open(MRC_IO_RAW);
    for (int kind = 0; kind < 3; kind++) {
        const uint32_t lane = raw_lane(&a, &b, 0xC000 + (uint32_t)kind, kind);
        struct mrc_tx_pkt pkts[EACH];
        for (uint32_t i = 0; i < EACH; i++)
            pkts[i] = port_pkt(&a, lane, i, i);
        port_tx(&a, pkts, EACH);
    }
    port_poll(&b, PORT_WAIT_MS);
    CHECK_EQ(b.io->rx_ready, 7);
    uint32_t seen[3] = {0};
    uint32_t calls = 0;
    while (b.io->rx_ready != 0 && calls < 1000) {
        struct mrc_rx_pkt burst[8];
        const size_t n = b.io->ops->rx(b.io, burst, 8);
        calls++;
        for (size_t i = 0; i < n; i++) {
            const uint32_t kind = burst[i].sport - 0xC000u;
            CHECK(kind < 3);
            CHECK_EQ(burst[i].len, 36 + seen[kind]);
            CHECK_EQ(burst[i].bytes[35 + seen[kind]], port_byte(seen[kind], 35 + seen[kind]));
            seen[kind]++;
        }
        if (calls == 8) /* half of them for UDP, a quarter for each of the others */
            CHECK(seen[0] >= 24 && seen[1] >= 8 && seen[2] >= 8);
    }
    for (int kind = 0; kind < 3; kind++)
        CHECK_EQ(seen[kind], EACH);
    port_close(&a);
    port_close(&b);
    return 0;
}

TEST(raw_rx__sockets_take_turns) { child_run("raw_rx__sockets_take_turns", child_turns); }
