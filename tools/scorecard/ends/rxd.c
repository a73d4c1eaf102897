// SPDX-License-Identifier: BSD-2-Clause
/*
 * Bytes by libfabric's reliable datagrams: provider udp;ofi_rxd, endpoint type FI_EP_RDM.
 *
 *     rxd recv ADDRESS PORT        rxd send ADDRESS PORT
 *
 * As the other ends of the scorecard: "ready" on a line, work until SIGTERM, one JSON object at
 * last. Messages of 64 KiB, 64 at a time; the receiver samples the bytes of complete messages, each
 * 5 ms.
 */

#include <arpa/inet.h>
#include <inttypes.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MESSAGE_BYTES = 1 << 16,
    DEPTH = 64,
    STEP_NS = 5000000,
    SAMPLES_MAX = 1 << 18,
};

struct end {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_ep *ep;
    struct fid_cq *cq;
    struct fid_av *av;
};

struct sample {
    int64_t t_ns;
    uint64_t bytes;
};

static volatile sig_atomic_t stop;
static struct sample samples[SAMPLES_MAX];
static size_t sample_count;
static char blocks[DEPTH][MESSAGE_BYTES];
static struct fi_context contexts[DEPTH];

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void check(long result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-result));
        exit(1);
    }
}

/* An endpoint at an address of ours (receiver), or one that will reach it (sender). */
static struct end end_open(const char *address, const char *port, bool receiver)
{
    struct end e = {0};
    struct fi_info *hints = fi_allocinfo();
    if (!hints) {
        check(-FI_ENOMEM, "fi_allocinfo");
    }
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG;
    hints->mode = FI_CONTEXT;
    hints->addr_format = FI_SOCKADDR_IN6;
    hints->fabric_attr->prov_name = strdup("udp;ofi_rxd");
    check(fi_getinfo(FI_VERSION(1, 14), address, port, receiver ? FI_SOURCE : 0, hints, &e.info),
          "fi_getinfo");
    fi_freeinfo(hints);
    check(fi_fabric(e.info->fabric_attr, &e.fabric, NULL), "fi_fabric");
    check(fi_domain(e.fabric, e.info, &e.domain, NULL), "fi_domain");
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 4};
    check(fi_av_open(e.domain, &av, &e.av, NULL), "fi_av_open");
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG, .size = 4 * DEPTH};
    check(fi_cq_open(e.domain, &cq, &e.cq, NULL), "fi_cq_open");
    check(fi_endpoint(e.domain, e.info, &e.ep, NULL), "fi_endpoint");
    check(fi_ep_bind(e.ep, &e.av->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(e.ep, &e.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_enable(e.ep), "fi_enable");
    return e;
}

/* Up to 16 completions; the index of each slot and its bytes. Returns how many, 0 if none yet. */
static int end_poll(struct end *e, struct fi_cq_msg_entry *entries)
{
    long n = fi_cq_read(e->cq, entries, 16);
    if (n == -FI_EAVAIL) {
        struct fi_cq_err_entry error = {0};
        fi_cq_readerr(e->cq, &error, 0);
        fprintf(stderr, "completion: %s\n", fi_strerror(error.err));
        exit(1);
    }
    if (n != -FI_EAGAIN) {
        check(n, "fi_cq_read");
    }
    return n > 0 ? (int)n : 0;
}

static size_t slot_of(const struct fi_cq_msg_entry *entry)
{
    return (size_t)((struct fi_context *)entry->op_context - contexts);
}

static void take_sample(uint64_t bytes)
{
    if (sample_count < SAMPLES_MAX) {
        samples[sample_count++] = (struct sample){now_ns(), bytes};
    }
}

static void receive(struct end *e)
{
    struct fi_cq_msg_entry entries[16];
    uint64_t total_bytes = 0;
    int64_t next_ns = 0;
    for (size_t i = 0; i < DEPTH; i++) {
        check(fi_recv(e->ep, blocks[i], MESSAGE_BYTES, NULL, FI_ADDR_UNSPEC, &contexts[i]),
              "fi_recv");
    }
    puts("ready");
    fflush(stdout);
    while (!stop) {
        if (now_ns() >= next_ns) {
            take_sample(total_bytes);
            next_ns = now_ns() + STEP_NS;
        }
        int n = end_poll(e, entries);
        for (int i = 0; i < n; i++) {
            size_t slot = slot_of(&entries[i]);
            total_bytes += entries[i].len;
            check(
                fi_recv(e->ep, blocks[slot], MESSAGE_BYTES, NULL, FI_ADDR_UNSPEC, &contexts[slot]),
                "fi_recv");
        }
    }
    take_sample(total_bytes);
    printf("{\"columns\": [\"t_ns\", \"delivered\"], \"samples\": [");
    for (size_t i = 0; i < sample_count; i++) {
        printf("%s[%" PRId64 ", %" PRIu64 "]", i ? ", " : "", samples[i].t_ns, samples[i].bytes);
    }
    puts("], \"error\": \"\"}");
}

static void transmit(struct end *e)
{
    struct fi_cq_msg_entry entries[16];
    fi_addr_t peer;
    if (fi_av_insert(e->av, e->info->dest_addr, 1, &peer, 0, NULL) != 1) {
        check(-FI_EINVAL, "fi_av_insert");
    }
    size_t idle[DEPTH];
    size_t idle_count = DEPTH;
    for (size_t i = 0; i < DEPTH; i++) {
        idle[i] = i;
    }
    puts("ready");
    fflush(stdout);
    while (!stop) {
        while (idle_count) {
            size_t slot = idle[idle_count - 1];
            long rc = fi_send(e->ep, blocks[slot], MESSAGE_BYTES, NULL, peer, &contexts[slot]);
            if (rc == -FI_EAGAIN) {
                break;
            }
            check(rc, "fi_send");
            idle_count--;
        }
        int n = end_poll(e, entries);
        for (int i = 0; i < n; i++) {
            idle[idle_count++] = slot_of(&entries[i]);
        }
    }
    puts("{\"error\": \"\"}");
}

int main(int argc, char **argv)
{
    if (argc != 4 || (strcmp(argv[1], "recv") && strcmp(argv[1], "send"))) {
        fprintf(stderr, "rxd recv|send ADDRESS PORT\n");
        return 1;
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    bool receiver = strcmp(argv[1], "recv") == 0;
    struct end e = end_open(argv[2], argv[3], receiver);
    if (receiver) {
        receive(&e);
    } else {
        transmit(&e);
    }
    /* Nothing is closed: closing waits for a peer that may be gone, and all ends with us. */
    fflush(stdout);
    _exit(0);
}
