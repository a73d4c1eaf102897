/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters out, as rows of columns. */
#include "fab_int.h"

const char *fab_drop_name(enum fab_drop d)
{
    static const char *const name[FAB_DROPS] = {
        [FAB_DROP_QUEUE] = "queue",
        [FAB_DROP_LOSS] = "loss",
        [FAB_DROP_CUT] = "cut",
        [FAB_DROP_DOWN] = "down",
        [FAB_DROP_STOPPED] = "stopped",
        [FAB_DROP_NO_ROUTE] = "no_route",
        [FAB_DROP_HOP_LIMIT] = "hop_limit",
        [FAB_DROP_MTU] = "mtu",
        [FAB_DROP_STRAY] = "stray",
        [FAB_DROP_POOL] = "pool",
    };
    return (uint32_t)d < FAB_DROPS ? name[d] : "?";
}

void fab_totals(const struct fab *f, struct fab_totals *out) { *out = f->totals; }

void fab_sizes(const struct fab *f, struct fab_sizes *out)
{
    *out = (struct fab_sizes){.memory_bytes = f->memory_bytes,
                              .links = f->links,
                              .switches = f->switches,
                              .packets_max = f->cfg.packets_max};
    for (uint32_t i = 0; i < f->switches; i++) {
        uint32_t *const most = f->sw[i].t1 ? &out->routes_t1 : &out->routes_t0;
        *most = *most > f->sw[i].routes.count ? *most : f->sw[i].routes.count;
    }
}

/* ---- flows ---- */

static void read_sender(const struct fab *f, const struct fab_flow *w, uint64_t *row)
{
    struct mrc_qp_stats s = {0};
    (void)mrc_qp_stats(f->host[w->from].e, w->qpn, &s);
    row[FAB_F_SENT_BYTES] = s.bytes_sent;
    row[FAB_F_SENT] = s.packets_sent;
    row[FAB_F_RETRANSMITTED] = s.packets_retransmitted;
    row[FAB_F_SPURIOUS] = s.spurious_retransmits;
    row[FAB_F_LOST] = s.losses_inferred;
    row[FAB_F_TIMEOUTS] = s.timeouts;
    row[FAB_F_NACKS] = s.nacks_received;
    row[FAB_F_PROBES] = s.probes_sent;
    row[FAB_F_ACKED] = s.bytes_acked;
    row[FAB_F_CWND] = s.cwnd_bytes;
    row[FAB_F_INFLIGHT] = s.inflight_bytes > 0 ? (uint64_t)s.inflight_bytes : 0;
    row[FAB_F_OUTSTANDING] = s.outstanding;
    row[FAB_F_STATE] = s.state;
    row[FAB_F_ERROR] = s.error;
}

uint32_t fab_read_flows(const struct fab *f, uint64_t *out, uint32_t first, uint32_t rows)
{
    uint32_t n = 0;
    for (; n < rows && first + n < f->flows; n++) {
        const struct fab_flow *const w = &f->flow[first + n];
        uint64_t *const row = out + (size_t)n * FAB_F_COLS;
        struct mrc_qp_stats s = {0};
        (void)mrc_qp_stats(f->host[w->to].e, w->qpn_peer, &s);
        row[FAB_F_DELIVERED] = s.bytes_received;
        row[FAB_F_MESSAGES] = w->arrived;
        row[FAB_F_MARKED] = s.ce_received;
        row[FAB_F_TRIMMED] = s.trims_received;
        row[FAB_F_OOO] = s.ooo_received;
        row[FAB_F_DUPLICATES] = s.duplicates_received;
        row[FAB_F_ACTIVE_EVS] = mrc_path_active(f->host[w->from].path[w->path].object);
        read_sender(f, w, row);
    }
    return n;
}

/* ---- paths ---- */

static uint64_t read_since(const struct fab *f, mrc_ns at)
{
    return at > f->start ? at - f->start : 0;
}

uint32_t fab_read_paths(const struct fab *f, uint32_t flow, uint64_t *out, uint32_t rows)
{
    if (flow >= f->flows)
        return 0;
    const struct fab_flow *const w = &f->flow[flow];
    const struct mrc_path_table *const t = f->host[w->from].path[w->path].object;
    uint32_t n = 0;
    for (; n < rows && n < mrc_path_count(t); n++) {
        struct mrc_path_stats s;
        uint64_t *const row = out + (size_t)n * FAB_P_COLS;
        mrc_path_stats(t, (uint16_t)n, &s);
        row[FAB_P_EV] = s.ev;
        row[FAB_P_PLANE] = s.plane;
        row[FAB_P_STATE] = s.state;
        row[FAB_P_BACKUP] = s.backup;
        row[FAB_P_SENT] = s.packets_sent;
        row[FAB_P_BYTES] = s.bytes_sent;
        row[FAB_P_LOST] = s.packets_lost;
        row[FAB_P_RETRANSMITTED] = s.retransmits;
        row[FAB_P_MARKED] = s.ecn_marks;
        row[FAB_P_TRIMMED] = s.trims;
        row[FAB_P_PROBES] = s.probes_sent;
        row[FAB_P_ANSWERED] = s.probes_answered;
        row[FAB_P_RTT_COUNT] = s.rtt_count;
        row[FAB_P_RTT_SUM_NS] = s.rtt_sum_ns;
        row[FAB_P_RTT_MIN_NS] = s.rtt_min_ns;
        row[FAB_P_RTT_MAX_NS] = s.rtt_max_ns;
        row[FAB_P_BAD_SINCE_NS] = read_since(f, s.bad_since_ns);
        row[FAB_P_GOOD_SINCE_NS] = read_since(f, s.good_since_ns);
    }
    return n;
}

/* ---- links ---- */

uint32_t fab_read_links(struct fab *f, uint64_t *out, uint32_t first, uint32_t rows, bool reset)
{
    uint32_t n = 0;
    for (; n < rows && first + n < f->links; n++) {
        struct fab_link *const l = &f->link[first + n];
        const struct sim_queue *const q = &l->port;
        uint64_t *const row = out + (size_t)n * FAB_L_COLS;
        memset(row, 0, FAB_L_COLS * sizeof *row);
        for (int c = 0; c < SIM_CLASSES; c++) {
            row[FAB_L_PACKETS] += q->stats.packets[c];
            row[FAB_L_BYTES] += q->stats.bytes[c];
            row[FAB_L_QUEUE] += q->waiting_bytes[c];
            row[FAB_L_DROPPED] += q->stats.dropped[c];
        }
        row[FAB_L_PEAK] = l->peak_bytes;
        row[FAB_L_TRIMMED] = q->stats.trimmed;
        row[FAB_L_MARKED] = q->stats.marked;
        row[FAB_L_LOST] = l->wire.stats.lost;
        row[FAB_L_CORRUPTED] = l->wire.stats.corrupted;
        row[FAB_L_REFUSED] = l->refused;
        row[FAB_L_WAIT_NS] = q->stats.wait_ns[SIM_DATA];
        if (reset)
            l->peak_bytes = row[FAB_L_QUEUE];
    }
    return n;
}

/* ---- messages ---- */

static uint64_t read_when(const struct fab *f, mrc_ns at)
{
    return at == MRC_NEVER ? MRC_NEVER : at - f->start;
}

uint32_t fab_read_messages(const struct fab *f, uint64_t *out, uint32_t first, uint32_t rows)
{
    uint32_t n = 0;
    for (; n < rows && first + n < f->msgs; n++) {
        const struct fab_state *const s = &f->state[first + n];
        uint64_t *const row = out + (size_t)n * FAB_M_COLS;
        row[FAB_M_STARTED_NS] = read_when(f, s->started);
        row[FAB_M_ARRIVED_NS] = read_when(f, s->arrived);
        row[FAB_M_DONE_NS] = read_when(f, s->done);
        row[FAB_M_STATUS] = s->status;
    }
    return n;
}

uint32_t fab_read_drops(const struct fab *f, uint32_t host, uint64_t *out)
{
    if (host >= f->cfg.hosts)
        return 0;
    for (int d = 0; d < MRC_DROP_COUNT; d++)
        out[d] = mrc_engine_drops(f->host[host].e, (enum mrc_drop)d);
    return MRC_DROP_COUNT;
}
