/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport without Python: an application in C on the pump.
 *
 *   load mem             [OPTIONS]     both ends in one thread, joined by a wire in memory
 *   load recv ADDR PORT  [OPTIONS]     takes writes until the sender goes
 *   load send ADDR PORT  [OPTIONS]     the two meet by TCP on ADDR PORT
 *   load size                          bytes that an idle queue pair takes
 *
 *   -q QPS  -e EVS  -s BYTES of a write  -d writes in flight, all queue pairs together
 *   -m PATH MTU  -k TRAIN (0: auto)  -w WINDOW in bytes (0: NSCC)  -t SECONDS
 *   -p SPIN_US  thread mode
 *   -l  one write at a time: how long until it is completed
 *   -j THREADS  mem: so many pairs of ends, each in a thread of its own
 *
 * The same for both ends but -t and -l. Prints one JSON object. */
#include "load.h"

#include <pthread.h>

#include "quantile.h"

/* What one sender did in the measured time. */
struct load_result {
    uint64_t writes;
    uint64_t packets;
    uint64_t trains;
    uint64_t again;
    double seconds;
    double cpu_seconds; /* of the whole process */
};

struct load_run {
    struct load_end *from;
    struct load_end *also; /* the other end, when it is in this process */
    const struct load_options *o;
    uint64_t posted;
    uint64_t done;
    struct quantile taken;
};

/* A single write leaves at once. Of many those leave together that are posted before load_turn. */
static int load_when(const struct load_options *o)
{
    if (o->latency)
        return MRC_POST_NOW;
    return o->threaded ? MRC_POST_LATER : MRC_POST;
}

/* One more write of a queue pair, or several in a row. */
static void load_post(struct load_run *r, uint32_t qp, uint32_t count)
{
    struct mrc_send_wr wr[LOAD_BATCH];
    const uint32_t slots = LOAD_REGION_BYTES / r->o->bytes;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t at = (r->posted + i) % slots * r->o->bytes;
        wr[i] = (struct mrc_send_wr){.wr_id = qp,
                                     .laddr = (uint64_t)(uintptr_t)r->from->region + at,
                                     .raddr = r->from->peer.raddr + at,
                                     .length = r->o->bytes,
                                     .lkey = r->from->rkey,
                                     .rkey = r->from->peer.rkey,
                                     .opcode = MRC_WR_RDMA_WRITE,
                                     .flags = MRC_SEND_SIGNALED};
    }
    load_must(mrc_pump_post(r->from->pump, r->from->qpn[qp], wr, (int)count, load_when(r->o)) ==
                  (int)count,
              r->from, "post");
    r->posted += count;
}

/* What completed is posted again; neighbours of one queue pair with one call. */
static void load_poll(struct load_run *r, bool again)
{
    struct mrc_wc wc[LOAD_BATCH];
    int n;
    while ((n = mrc_pump_cq_poll(r->from->pump, r->from->cq, wc, LOAD_BATCH)) > 0) {
        r->done += (uint64_t)n;
        for (int i = 0, j; i < n; i = j) {
            for (j = i; j < n && wc[j].wr_id == wc[i].wr_id; j++)
                load_must(wc[j].status == 0, r->from, "completion");
            if (again)
                load_post(r, (uint32_t)wc[i].wr_id, (uint32_t)(j - i));
        }
    }
}

static void load_turn(struct load_run *r)
{
    if (r->o->threaded)
        load_must(mrc_pump_push(r->from->pump) >= 0, r->from, "push");
    if (r->also == NULL || r->o->threaded) {
        load_must(mrc_pump_wait(r->from->pump, LOAD_WAIT_MS) >= 0, r->from, "turn");
        return;
    }
    load_must(mrc_pump_turn(r->from->pump, 0) >= 0, r->from, "turn");
    load_must(mrc_pump_turn(r->also->pump, 0) >= 0, r->also, "turn");
}

static void load_drain(struct load_run *r)
{
    const double limit = load_wall() + LOAD_PATIENCE_S;
    while (r->done < r->posted && load_wall() < limit) {
        load_turn(r);
        load_poll(r, false);
    }
    load_must(r->done == r->posted, r->from, "writes did not complete");
}

static struct load_result load_bulk(struct load_run *r)
{
    const struct load_options *o = r->o;
    const uint32_t each = load_depth(o);
    for (uint32_t k = 0; k < each; k += LOAD_BATCH) {
        for (uint32_t q = 0; q < o->qps; q++)
            load_post(r, q, mrc_min32(LOAD_BATCH, each - k));
    }
    const double warm = load_wall() + o->seconds / 8; /* slow start of windows, cold caches */
    while (load_wall() < warm) {
        load_turn(r);
        load_poll(r, true);
    }
    const uint64_t before = r->done;
    const uint64_t packets = load_packets(r->from);
    const double start = load_wall();
    const double cpu = load_cpu();
    const double end = start + o->seconds;
    double now;
    while ((now = load_wall()) < end) {
        load_turn(r);
        load_poll(r, true);
    }
    const struct load_result found = {.writes = r->done - before,
                                      .packets = load_packets(r->from) - packets,
                                      .trains = load_trains(r->from),
                                      .again = load_again(r->from),
                                      .seconds = now - start,
                                      .cpu_seconds = load_cpu() - cpu};
    load_drain(r);
    return found;
}

static void load_print(const struct load_result *f, const struct load_options *o)
{
    printf("{\"writes\": %llu, \"bytes\": %llu, \"packets\": %llu, \"seconds\": %.6f, "
           "\"cpu_seconds\": %.6f, \"trains\": %llu, \"retransmitted\": %llu}\n",
           (unsigned long long)f->writes, (unsigned long long)(f->writes * o->bytes),
           (unsigned long long)f->packets, f->seconds, f->cpu_seconds,
           (unsigned long long)f->trains, (unsigned long long)f->again);
}

static void load_latency(struct load_run *r)
{
    const double end = load_wall() + r->o->seconds;
    while (load_wall() < end) {
        const mrc_ns start = mrc_pump_now(r->from->pump);
        load_post(r, 0, 1);
        load_drain(r);
        quantile_add(&r->taken, mrc_pump_now(r->from->pump) - start);
    }
    quantile_print(&r->taken);
}

static void load_go(struct load_end *from, const struct load_options *o)
{
    struct load_run r = {.from = from, .o = o};
    if (o->latency) {
        load_latency(&r);
    } else {
        const struct load_result found = load_bulk(&r);
        load_print(&found, o);
    }
}

/* ---- both ends here ---- */

struct load_pair {
    struct load_end a;
    struct load_end b;
    const struct load_options *o;
    pthread_barrier_t *ready; /* all pairs are */
    struct load_result found;
    pthread_t thread;
};

static void load_join(struct load_pair *p)
{
    struct mrc_mem_wire *wire = mrc_mem_wire_create(LOAD_MEM_RING, 1);
    load_open(&p->a, p->o, wire, 0);
    load_open(&p->b, p->o, wire, 1);
    load_tell(&p->a, &p->b.peer);
    load_tell(&p->b, &p->a.peer);
    for (uint32_t q = 0; q < p->o->qps; q++) {
        load_connect(&p->a, p->o, q, p->b.qpn[q]);
        load_connect(&p->b, p->o, q, p->a.qpn[q]);
    }
}

static void *load_pair_main(void *of)
{
    struct load_pair *p = of;
    load_join(p);
    pthread_barrier_wait(p->ready);
    struct load_run r = {.from = &p->a, .also = &p->b, .o = p->o};
    if (p->o->latency)
        load_latency(&r);
    else
        p->found = load_bulk(&r);
    return NULL;
}

/* Nothing is shared but the process, so that many pairs move what as many processes would. */
static void load_mem(const struct load_options *o)
{
    struct load_pair *pair = calloc(o->threads, sizeof *pair);
    struct load_result all = {0};
    pthread_barrier_t ready;
    load_must(pair != NULL && pthread_barrier_init(&ready, NULL, o->threads) == 0, NULL, "memory");
    for (uint32_t i = 0; i < o->threads; i++) {
        pair[i].o = o;
        pair[i].ready = &ready;
        load_must(pthread_create(&pair[i].thread, NULL, load_pair_main, &pair[i]) == 0, NULL,
                  "thread");
    }
    for (uint32_t i = 0; i < o->threads; i++) {
        pthread_join(pair[i].thread, NULL);
        const struct load_result *f = &pair[i].found;
        all.writes += f->writes;
        all.packets += f->packets;
        all.trains += f->trains;
        all.again += f->again;
        all.seconds = f->seconds > all.seconds ? f->seconds : all.seconds;
        all.cpu_seconds = f->cpu_seconds > all.cpu_seconds ? f->cpu_seconds : all.cpu_seconds;
    }
    if (!o->latency)
        load_print(&all, o);
}

/* The receiver's part is done when the sender's connection ends. */
static void load_serve(struct load_end *e, int tcp)
{
    struct pollfd fds[2] = {{mrc_pump_fd(e->pump), POLLIN, 0}, {tcp, POLLIN, 0}};
    for (;;) {
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents != 0)
            return;
        load_must(mrc_pump_turn(e->pump, 0) >= 0, e, "turn");
    }
}

static void load_sockets(const char *role, const char *addr, const char *port,
                         const struct load_options *o)
{
    const bool sends = strcmp(role, "send") == 0;
    struct load_end e = {0};
    const int tcp = load_meet(sends, addr, port, e.addr);
    load_open(&e, o, NULL, 0);
    struct load_card own = {0};
    load_tell(&e, &own);
    load_swap(tcp, &own, sizeof own, &e.peer);
    uint32_t *theirs = calloc(o->qps, sizeof *theirs);
    load_must(theirs != NULL, &e, "memory");
    load_swap(tcp, e.qpn, o->qps * sizeof *e.qpn, theirs);
    for (uint32_t q = 0; q < o->qps; q++)
        load_connect(&e, o, q, theirs[q]);
    uint8_t here = 1;
    uint8_t there = 0;
    load_swap(tcp, &here, 1, &there); /* nobody sends before both are in RTS */
    if (sends)
        load_go(&e, o);
    else
        load_serve(&e, tcp);
}

int main(int argc, char **argv)
{
    struct load_options o;
    if (argc >= 2 && strcmp(argv[1], "size") == 0)
        return load_size();
    if (argc >= 2 && strcmp(argv[1], "mem") == 0) {
        o = load_parse(argc - 1, argv + 1);
        load_mem(&o);
        return 0;
    }
    if (argc < 4 || (strcmp(argv[1], "recv") != 0 && strcmp(argv[1], "send") != 0)) {
        fputs("usage: load mem | recv ADDR PORT | send ADDR PORT | size; see the top of load.c\n",
              stderr);
        return 1;
    }
    o = load_parse(argc - 3, argv + 3);
    load_sockets(argv[1], argv[2], argv[3], &o);
    return 0;
}
