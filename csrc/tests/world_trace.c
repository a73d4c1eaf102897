/* SPDX-License-Identifier: BSD-2-Clause */
/* A run as a text that a machine reads: docs/reference/trace.md. Everything a bystander could see,
 * packets as bytes, and nothing that an engine knows. */
#include "world_int.h"

enum { TRACE_HEADERS_MAX = MRC_HDR_MAX + 4 };

void world_log_to(struct world *w, FILE *log)
{
    w->log = log;
    const struct world_cfg *const c = &w->cfg;
    fprintf(
        log,
        "trace 1\nworld start=%llu hosts=%u paths=%u min_active=%u trim=%u service=%u skip=%u\n",
        (unsigned long long)c->start_ns, c->hosts, c->paths, c->min_active,
        c->link.trim_bytes != 0 || c->port.trim_bytes != 0, c->service_time,
        c->icrc_skip_percent != 0);
    for (uint32_t h = 0; h < c->hosts; h++)
        for (uint16_t i = 0; i < c->paths; i++) {
            const struct mrc_path_entry_cfg *const e =
                mrc_path_entry(w->host[h].table[h == 0 ? 1 : 0], i);
            fprintf(log, "path %u host=%u ev=%08x plane=%u backup=%u\n", i, h, e->ev, e->plane,
                    e->backup);
        }
}

void world_log_flow(struct world *w, const struct world_flow *f)
{
    if (w->log == NULL)
        return;
    const struct world_qp_cfg *const q = &f->qp;
    fprintf(w->log,
            "flow %u from=%u to=%u qpn_from=%u qpn_to=%u psn=%u mtu=%u mpr=%u mpr_dest=%u "
            "dynamic=%u wimm=%u timeout=%u linear=%u exp=%u threshold=%u late=%u tseth=%u "
            "msn=%u rqmsn=%u reverse=%u rcvd=%llu done=%u\n",
            (unsigned)(f - w->flow), f->from, f->to, f->qpn_from, f->qpn_to, f->psn_next.v, q->mtu,
            q->mpr, q->mpr_dest != 0 ? q->mpr_dest : q->mpr, q->dynamic_mpr, q->max_wimm,
            q->timeout, q->linear_cnt, q->exp_cnt, q->sack_threshold, q->late_numbers,
            q->timestamps, f->msn_base, f->rqmsn, f->reverse, (unsigned long long)f->rcvd_start,
            f->msn_done);
}

static void trace_bytes(FILE *out, const struct mrc_rx_pkt *rx)
{
    const uint32_t n = mrc_min32(rx->len, TRACE_HEADERS_MAX);
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, "%02x", rx->bytes[i]);
}

/* CRC over all bytes after the headers that a retransmission must repeat: payload and pad. */
static uint32_t trace_digest(const struct world *w, const struct mrc_rx_pkt *rx)
{
    struct mrc_pkt p;
    if (mrc_wire_decode(&p, rx->bytes, rx->len, false) != MRC_WIRE_OK || p.payload_len == 0)
        return 0;
    return w->crc(0xFFFFFFFF, p.payload, p.payload_len);
}

void world_log_sent(struct world *w, uint32_t from, uint32_t to, uint16_t path,
                    const struct world_packet *p)
{
    if (w->log == NULL)
        return;
    fprintf(w->log,
            "out %llu id=%llu from=%u to=%u path=%u tclass=%u label=%u sport=%u len=%u "
            "digest=%08x bytes=",
            (unsigned long long)w->now, (unsigned long long)p->id, from, to, path, p->rx.tclass,
            p->rx.flow_label, p->rx.sport, p->rx.len, trace_digest(w, &p->rx));
    trace_bytes(w->log, &p->rx);
    fputc('\n', w->log);
}

void world_log_turn(struct world *w, uint32_t host)
{
    if (w->log != NULL)
        fprintf(w->log, "turn %llu host=%u\n", (unsigned long long)w->now, host);
}

void world_log_arrived(struct world *w, uint32_t to, const struct world_packet *p)
{
    if (w->log == NULL)
        return;
    const bool intact = world_intact(w, &p->rx);
    fprintf(w->log, "in %llu id=%llu host=%u tclass=%u len=%u udp=%u intact=%u src=%u",
            (unsigned long long)w->now, (unsigned long long)p->id, to, p->rx.tclass, p->rx.len,
            p->rx.udp_len, intact, p->rx.src[15] - 1u);
    if (p->injected) {
        fprintf(w->log, " label=%u sport=%u digest=%08x bytes=", p->rx.flow_label, p->rx.sport,
                trace_digest(w, &p->rx));
        trace_bytes(w->log, &p->rx);
    }
    fputc('\n', w->log);
}

void world_log_post(struct world *w, const struct world_flow *f, const struct world_wr *wr)
{
    if (w->log != NULL)
        fprintf(w->log, "post %llu flow=%u wr=%llu length=%u imm=%u signaled=%u raddr=%llu\n",
                (unsigned long long)w->now, (unsigned)(f - w->flow), (unsigned long long)f->posted,
                wr->length, wr->is_imm, wr->signaled, (unsigned long long)wr->raddr);
}

void world_log_done(struct world *w, const struct world_flow *f, const char *what, uint64_t n,
                    uint8_t status)
{
    if (w->log != NULL)
        fprintf(w->log, "%s %llu flow=%u n=%llu status=%u\n", what, (unsigned long long)w->now,
                (unsigned)(f - w->flow), (unsigned long long)n, status);
}

void world_log_event(struct world *w, uint32_t host, uint32_t peer, const struct mrc_ev_event *e)
{
    if (w->log != NULL)
        fprintf(w->log, "event %llu host=%u peer=%u ev=%08x was=%u now=%u reason=%u\n",
                (unsigned long long)w->now, host, peer, e->ev, e->from, e->to, e->reason);
}

void world_log_note(struct world *w, const char *what, uint32_t a, uint32_t b, uint32_t c)
{
    if (w->log != NULL)
        fprintf(w->log, "note %llu %s %u %u %u\n", (unsigned long long)w->now, what, a, b, c);
}
