/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the world, for its own files only. */
#ifndef MRC_WORLD_INT_H
#define MRC_WORLD_INT_H

#include "world.h"

/* A packet in flight, as its receiver will see it. */
struct world_packet {
    struct sim_item item; /* first: a port gives these back */
    struct mrc_rx_pkt rx;
    struct world_packet *next;
    uint32_t to;
    uint32_t flow; /* whose packet it is, WORLD_NO_FLOW: nobody's */
    uint64_t id;   /* running number of what left; copies have the same */
    bool injected; /* no engine sent it */
    uint8_t bytes[MRC_HDR_MAX + MRC_MTU_MAX + 8];
};

/* ---- world.c ---- */
void world_push(struct world *w, struct world_event e);

/* ---- world_net.c ---- */
struct world_packet *world_packet_new(struct world *w);
void world_packet_free(struct world *w, struct world_packet *p);
void world_address(uint8_t out[16], uint32_t host);
void world_transmit(struct world *w, uint32_t from, const struct mrc_tx_pkt *tx);
void world_arrive(struct world *w, struct world_packet *p);

/* Cut to keep_bytes on the wire. */
void world_trim(struct world *w, struct mrc_rx_pkt *rx, uint32_t keep_bytes);

/* ---- world_port.c: the port that all senders to a host share ---- */
void world_port_init(struct world *w);
/* What the port must know of a packet; cut: a link has trimmed it already. */
void world_port_describe(struct world_packet *p, const struct sim_packet *sp, bool cut);
void world_port_enter(struct world *w, struct world_packet *p);

/* ---- world_flow.c ---- */
/* The QPs of a retired flow, both in RESET, begin anew with these attributes. */
uint32_t world_reconnect(struct world *w, const struct world_flow *old,
                         const struct world_qp_cfg *q, uint32_t qa, uint32_t qb);

/* ---- world_check.c ---- */
bool world_intact(const struct world *w, const struct mrc_rx_pkt *rx); /* iCRC */
/* A packet is handed to the engine of host `to`. */
void world_check_arrived(struct world *w, uint32_t to, const struct world_packet *p);

/* ---- world_cover.c ---- */
void world_cover_event(struct world *w, const struct mrc_ev_event *e);

/* ---- world_hostile.c ---- */
/* A packet left; the third host saw it, and may do something. */
void world_hostile_see(struct world *w, const struct world_packet *p);

/* ---- world_trace.c: lines for the checker, docs/reference/trace.md ---- */
void world_log_world(struct world *w);
void world_log_flow(struct world *w, const struct world_flow *f);
void world_log_sent(struct world *w, uint32_t from, uint32_t to, uint16_t path,
                    const struct world_packet *p);
void world_log_turn(struct world *w, uint32_t host);
void world_log_arrived(struct world *w, uint32_t to, const struct world_packet *p);
void world_log_post(struct world *w, const struct world_flow *f, const struct world_wr *wr);
void world_log_done(struct world *w, const struct world_flow *f, const char *what, uint64_t n,
                    uint8_t status);
void world_log_event(struct world *w, uint32_t host, uint32_t peer, const struct mrc_ev_event *e);

#endif
