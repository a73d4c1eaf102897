/* SPDX-License-Identifier: BSD-2-Clause */
/* The pump: an engine, its ports and one descriptor. Everything Python calls is here; mrc.cdef
 * repeats these declarations. All returns: >= 0 ok, enum mrc_err (-1..-99) for misuse,
 * -(1000 + errno) when the system refused; mrc_pump_error has the sentence to show. */
#ifndef MRC_PUMP_H
#define MRC_PUMP_H

#include "../core/mrc_engine.h"
#include "mrc_fork.h"
#include "mrc_io.h"

/* What mrc_pump_turn returns. */
enum {
    MRC_TURN_MORE = 1,    /* budget used up: call again soon */
    MRC_TURN_CQ = 2,      /* completions are waiting */
    MRC_TURN_EVENT = 4,   /* EV events are waiting */
    MRC_TURN_BLOCKED = 8, /* a socket is full; the descriptor will say when */
    MRC_TURN_EP = 16,     /* results of EV probes are waiting */
    MRC_TURN_NOTIFY = 32, /* a channel has something, or an asynchronous event came; thread mode */
    MRC_TURN_SOON = 64,   /* more is expected in a moment: look again before you sleep; loop mode */
};

/* When what mrc_pump_post takes leaves. */
enum {
    MRC_POST,       /* with the next turn, and the descriptor says so; in thread mode at once */
    MRC_POST_NOW,   /* at once, from the thread that posts, up to 32 packets */
    MRC_POST_LATER, /* with the next turn or mrc_pump_push, which the caller has promised */
};

struct mrc_pump;

struct mrc_pump *mrc_pump_create(const struct mrc_engine_cfg *cfg); /* NULL: no memory or cfg bad */
/* Gives back everything but the pump itself, so that a call on its way in another thread finds it
 * closed and not gone. BUSY, and nothing was closed: another thread is inside, or waits. */
int mrc_pump_close(struct mrc_pump *p);
int mrc_pump_idle(struct mrc_pump *p); /* BUSY: mrc_pump_close would be */
/* The same, but nobody begins to wait or takes a turn from now on (BUSY), while all other calls are
 * served: mrc_pump_close will succeed, after whatever has to be done before it. */
int mrc_pump_closing(struct mrc_pump *p);
void mrc_pump_destroy(struct mrc_pump *p); /* closes; no thread may use the pump any more */
int mrc_pump_fd(const struct mrc_pump *p); /* readable when a turn is due */
/* The last refusal in the calling thread, in words; "" when there are none. */
const char *mrc_pump_error(const struct mrc_pump *p);
/* One turn: packets in, time, packets out, timer armed. budget = packets each way (0 = 1024).
 * BUSY when another thread is inside. */
int mrc_pump_turn(struct mrc_pump *p, uint32_t budget);
/* From now on a thread of the pump takes the turns (ADR 122): as long as it finds packets, and
 * spin_us after the last; then it sleeps until the next turn is due. All other calls wait for the
 * end of a turn instead of being BUSY, from whatever thread. mrc_pump_fd is readable when the
 * thread found something; mrc_pump_turn moves no packets and returns what it found since the last
 * call. Once, before the descriptor is asked for. STATE: there is a thread already. */
int mrc_pump_start(struct mrc_pump *p, uint32_t spin_us);
/* Without such a thread: how long after a packet mrc_pump_turn returns MRC_TURN_SOON and
 * mrc_pump_wait does not sleep, if that was worth it lately. 0, as it is at first: never. */
int mrc_pump_spin(struct mrc_pump *p, uint32_t spin_us);
/* No more turns, for good; all else works on. For those who cannot close: the process ends, and
 * memory goes that the thread could write to. */
int mrc_pump_stop(struct mrc_pump *p);
/* One turn by the caller, in thread mode as well: what has arrived is dealt with now. */
int mrc_pump_catch_up(struct mrc_pump *p);
/* Block until the descriptor is readable or timeout_ms passed (-1 = for ever); then one turn. */
int mrc_pump_wait(struct mrc_pump *p, int timeout_ms);
uint64_t mrc_pump_now(struct mrc_pump *p); /* the pump's clock (CLOCK_MONOTONIC), ns */

int mrc_pump_port_add(struct mrc_pump *p, const struct mrc_port_cfg *cfg); /* -> port index */
int mrc_pump_port_stats(struct mrc_pump *p, uint32_t port, struct mrc_port_stats *out);

/* Lanes and the path table towards one peer. src = :: lets the kernel choose; src_out gets the one
 * in use. cfg->addrs has its way where it names the plane of a lane: own addresses there must be
 * ones the port receives on. */
int mrc_pump_path_create(struct mrc_pump *p, uint32_t port, const struct mrc_peer_addr *peer,
                         const struct mrc_path_cfg *cfg, const struct mrc_lane_cfg *lanes,
                         uint8_t src_out[16]);                /* -> path id */
int mrc_pump_path_destroy(struct mrc_pump *p, uint32_t path); /* BUSY while QPs use it */
int mrc_pump_path_stats(struct mrc_pump *p, uint32_t path, struct mrc_path_stats *out,
                        int max); /* -> count */
/* Shortest and longest round trip are from now on those of what comes. */
int mrc_pump_path_rtt_anew(struct mrc_pump *p, uint32_t path);
/* state: MRC_EV_GOOD or MRC_EV_DENIED */
int mrc_pump_path_set_state(struct mrc_pump *p, uint32_t path, uint32_t ev, int state);
/* Another EV in the place of `ev` (C.5): same plane, state GOOD or DENIED, outer header of `lane`.
 */
int mrc_pump_path_replace(struct mrc_pump *p, uint32_t path, uint32_t ev,
                          const struct mrc_lane_cfg *lane, int state);
int mrc_pump_path_set_events(struct mrc_pump *p, uint32_t path, uint8_t mask); /* MRC_EV_EVENTS_* */
int mrc_pump_path_set_planes(struct mrc_pump *p, uint32_t path, uint32_t local_up,
                             uint32_t remote_up);
int mrc_pump_path_planes(struct mrc_pump *p, uint32_t path, struct mrc_ep_planes *out);
/* Local planes of all path tables, those to come included; the peers are told (F.1). */
int mrc_pump_set_planes(struct mrc_pump *p, uint32_t local_up);
/* Take nothing new for now, on any QP: refused with NO_RESOURCE. */
int mrc_pump_rx_pause(struct mrc_pump *p, bool paused);
/* EV probes: how many were accepted, in order, or why the first was not; one result each. */
int mrc_pump_ep_post(struct mrc_pump *p, const struct mrc_ep_req *req, int n);
int mrc_pump_ep_poll(struct mrc_pump *p, struct mrc_ep_rsp *out, int max);  /* -> count */
int mrc_pump_events(struct mrc_pump *p, struct mrc_ev_event *out, int max); /* -> count */
/* The same of one table, which no QP uses any more: before it goes and its number is another's. */
int mrc_pump_path_events(struct mrc_pump *p, uint32_t path, struct mrc_ev_event *out, int max);

int mrc_pump_cc_create(struct mrc_pump *p, const struct mrc_cc_cfg *cfg); /* -> cc id */
int mrc_pump_cc_destroy(struct mrc_pump *p, uint32_t cc);
int mrc_pump_cc_query(struct mrc_pump *p, uint32_t cc, struct mrc_cc_info *out);

int mrc_pump_mr_register(struct mrc_pump *p, uint32_t pd, void *addr, uint64_t len, uint8_t access,
                         uint32_t key, uint32_t *rkey);
int mrc_pump_mr_deregister(struct mrc_pump *p, uint32_t rkey);

int mrc_pump_cq_create(struct mrc_pump *p, uint32_t depth); /* -> cq id */
int mrc_pump_cq_destroy(struct mrc_pump *p, uint32_t cq);
int mrc_pump_cq_poll(struct mrc_pump *p, uint32_t cq, struct mrc_wc *out, int max);
int mrc_pump_cq_overrun(struct mrc_pump *p, uint32_t cq);

int mrc_pump_qp_create(struct mrc_pump *p, const struct mrc_qp_init *init); /* -> QPN */
int mrc_pump_qp_modify(struct mrc_pump *p, uint32_t qpn, const struct mrc_qp_attr *attr,
                       uint32_t mask);
int mrc_pump_qp_query(struct mrc_pump *p, uint32_t qpn, struct mrc_qp_attr *attr, uint32_t mask);
int mrc_pump_qp_destroy(struct mrc_pump *p, uint32_t qpn);
int mrc_pump_post_send(struct mrc_pump *p, uint32_t qpn, const struct mrc_send_wr *wr, int n);
int mrc_pump_post(struct mrc_pump *p, uint32_t qpn, const struct mrc_send_wr *wr, int n, int when);
/* What was posted with MRC_POST_LATER leaves now. */
int mrc_pump_push(struct mrc_pump *p);
int mrc_pump_post_recv(struct mrc_pump *p, uint32_t qpn, const uint64_t *wr_id, int n);
int mrc_pump_qp_stats(struct mrc_pump *p, uint32_t qpn, struct mrc_qp_stats *out);
/* enum mrc_drop; UINT64_MAX: no such reason, or BUSY. */
uint64_t mrc_pump_drops(struct mrc_pump *p, int reason);

/* Completion channels (C.1). Channel 0 is always there: the asynchronous events. A descriptor is
 * readable exactly while its channel has an event. */
int mrc_pump_channel_create(struct mrc_pump *p);                    /* -> channel */
int mrc_pump_channel_destroy(struct mrc_pump *p, uint32_t channel); /* BUSY: has queues */
int mrc_pump_channel_fd(struct mrc_pump *p, uint32_t channel);
int mrc_pump_cq_channel(struct mrc_pump *p, uint32_t cq, uint32_t channel); /* once */
int mrc_pump_cq_arm(struct mrc_pump *p, uint32_t cq, int solicited_only);
int mrc_pump_cq_event(struct mrc_pump *p, uint32_t channel); /* -> cq, or NOENT */
int mrc_pump_cq_ack(struct mrc_pump *p, uint32_t cq, uint32_t n);
int mrc_pump_async_take(struct mrc_pump *p, struct mrc_async_event *out); /* 1, or 0: none */
int mrc_pump_async_ack(struct mrc_pump *p, uint32_t n);

int mrc_pump_hint_create(struct mrc_pump *p, const struct mrc_qp_hint *hint);
int mrc_pump_hint_query(struct mrc_pump *p, uint32_t id, struct mrc_qp_hint *out);
int mrc_pump_hint_modify(struct mrc_pump *p, uint32_t id, const struct mrc_qp_hint *hint);
int mrc_pump_hint_destroy(struct mrc_pump *p, uint32_t id);
int mrc_pump_query(struct mrc_pump *p, struct mrc_device_attr *out);

/* 0 in the process that made the pump, MRC_ERR_STATE in a forked child. Every call that touches the
 * engine begins with it. */
int mrc_pump_fork_guard(struct mrc_pump *p);

#endif
