/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the pump: mrc_pump.c turns, mrc_pump_obj.c and mrc_pump_path.c make and destroy
 * what hangs off it. */
#ifndef MRC_PUMP_INT_H
#define MRC_PUMP_INT_H

#include "mrc_pump.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum {
    PUMP_PORTS_MAX = 32,
    PUMP_CHANNELS_MAX = 128, /* completion channels; number 0 is the asynchronous events */
    PUMP_EVENTS = 256,       /* EV events between the tables' rings and the caller; power of two */
    PUMP_RX_BURST = 128,
    PUMP_FEW =
        4, /* packets in a turn: an exchange of single ones; a write is one, and two answer */
};

/* Memory given to the core, so that closing the pump gives all of it back. */
struct pump_block {
    struct pump_block *next;
    struct pump_block **link; /* what points at this block */
    size_t pages;             /* of its own, bytes; 0: it is of the heap */
    _Alignas(64) uint8_t bytes[];
};

struct pump_mr {
    uint64_t len;
    uint8_t *addr;
    uint32_t rkey;
    bool used;
};

struct pump_port {
    struct mrc_io *io;
    mrc_ns stall_until; /* its pool is short of room: the engine rests until then, at most */
    mrc_ns retry_at;    /* memory was short: try again then; 0: not waiting */
};

struct pump_channel {
    int fd; /* eventfd */
    bool open;
    bool readable;
    uint32_t cqs; /* completion queues bound to it */
};

struct pump_turn {
    mrc_ns now;      /* when it began */
    uint32_t budget; /* packets each way; 0: the default */
    uint32_t moved;  /* packets, both ways; what strangers send does not count */
    bool more;
    bool blocked;
};

/* Looking for packets instead of sleeping, where that was worth it lately. */
struct pump_look {
    mrc_ns max;           /* so long at a time; 0: never */
    _Atomic mrc_ns until; /* now; 0: not looking */
    uint32_t skip;        /* occasions let pass after the last look in vain */
    uint32_t left;        /* so many of them are to come */
};

/* Thread mode: a thread of the pump takes the turns, everybody else comes in between two of them.
 * Whoever holds `own` owns the engine, the ports and all of the pump that is not atomic. */
struct pump_thread {
    pthread_mutex_t own;
    pthread_cond_t passed; /* the thread has given way to all it owed it to */
    pthread_cond_t gate;   /* `next` is off */
    pthread_cond_t ended;  /* the thread takes no more turns */
    pthread_t id;
    atomic_uint waiting; /* for `own`, the thread not counted */
    atomic_bool next;    /* the thread has given way: whoever comes now lets it in first */
    atomic_uint ready;   /* MRC_TURN_* found by the thread and not taken */
    int ready_fd;        /* eventfd: readable when `ready` gained a bit since it was last read */
    uint32_t told;       /* completions that `ready` has told of, free-running */
    uint32_t told_async; /* asynchronous events, the same */
    bool noted;          /* a channel has become readable since it was told of */
    uint32_t owed;       /* so many may still come in before the thread */
    bool resting;        /* it does not own the pump and looks at the epoll descriptor */
    bool yielding;       /* it waits for `passed` */
    bool due;            /* somebody left work while it was not resting */
    bool stop;
    bool running;
    bool joinable;
    atomic_int other_cpu;  /* where the application last called from */
    _Atomic mrc_ns called; /* when */
};

struct mrc_pump {
    struct mrc_engine *engine;
    struct mrc_engine_cfg cfg;
    atomic_flag busy;
    atomic_bool closed;  /* busy stays set then: nobody gets in any more */
    atomic_bool closing; /* somebody will close it: nobody begins to wait, or a turn, any more */
    atomic_uint waiters; /* threads in mrc_pump_wait, which sleeps outside */
    atomic_uint takers;  /* threads in pump_take, which are outside for a moment */
    pid_t pid;
    unsigned forks; /* mrc_fork_count when it was made */
    int epoll_fd;
    int timer_fd;
    int kick_fd;
    bool kicked;  /* kick_fd is readable */
    mrc_ns armed; /* what timer_fd is set to */
    uint32_t port_count;
    struct pump_port ports[PUMP_PORTS_MAX];
    struct pump_block *blocks;
    struct pump_mr *mrs; /* cfg.mr_max */
    uint32_t *paths;     /* ids in use; cfg.path_max */
    uint32_t path_count;
    uint32_t local_up; /* planes, for path tables to come */
    struct mrc_ev_event events[PUMP_EVENTS];
    uint32_t event_head;
    uint32_t event_tail;
    struct mrc_rx_pkt rx[PUMP_RX_BURST];
    struct mrc_tx_pkt tx[MRC_IO_BURST_MAX];
    const struct mrc_tx_pkt *list[MRC_IO_BURST_MAX];
    char error[MRC_IO_ERROR_MAX]; /* of the call that is inside; pump_leave hands it out */
    struct pump_channel channel[PUMP_CHANNELS_MAX];
    uint32_t channel_end; /* none is open from here on */
    uint8_t *cq_channel;  /* cfg.cq_max; 0: none */
    struct pump_look look;
    atomic_bool threaded; /* a thread was started: `busy` stays set, and thread.own rules */
    struct pump_thread thread;
};

/* One thread at a time, and never a forked child (MRC_ERR_BUSY, MRC_ERR_STATE). */
int pump_enter(struct mrc_pump *p);
/* The same of a pump whose turns a thread takes: waits for the end of the turn. */
int pump_enter_between(struct mrc_pump *p);
void pump_leave_between(struct mrc_pump *p);
/* What pump_enter refused with err, in the words of this thread; returns err. */
int pump_turn_away(int err, const char *words);
/* Its thread takes no more turns. */
void pump_thread_end(struct mrc_pump *p);
/* What the thread has found since the last call: MRC_TURN_*. Needs no owner. */
int pump_take(struct mrc_pump *p);
/* A turn by the owner. */
int pump_turn_inside(struct mrc_pump *p, struct pump_turn *t);
/* A turn by somebody who comes in for it. */
int pump_turn(struct mrc_pump *p, uint32_t budget);
/* After each turn. may: packets that come now are worth looking for. True: so look, or go on. */
bool pump_look(struct pump_look *l, const struct pump_turn *t, bool may);
/* Whoever looks does so longer: something was sent, and there will be an answer. */
void pump_look_on(struct pump_look *l, mrc_ns now);
void pump_look_set(struct pump_look *l, uint32_t spin_us);
/* Until the descriptor is readable, true, or there is no more looking. Needs no owner. */
bool pump_look_around(const struct pump_look *l, int fd, mrc_ns limit);
void pump_pause(void); /* of a thread that looks again and again */
/* Work was posted: send it, or see to it that somebody does. */
void pump_posted(struct mrc_pump *p, int when);
/* Lets the next one in and hands the result through. */
int pump_leave(struct mrc_pump *p, int result);
/* Makes the descriptors of the channels say what is waiting; pump_leave calls it. */
void pump_signal(struct mrc_pump *p);
void pump_close_channels(struct mrc_pump *p);
void pump_cq_gone(struct mrc_pump *p, uint32_t cq);
/* The descriptor becomes readable: a turn is due. */
void pump_kick(struct mrc_pump *p);
/* Puts what went wrong in words; returns err. */
int pump_refuse(struct mrc_pump *p, int err, const char *what);
/* NULL: no such table, which is then in words. */
struct mrc_path_table *pump_path(struct mrc_pump *p, uint32_t path);
/* The same of a queue pair (0: one that is being made), naming the attributes. */
int pump_refuse_qp(struct mrc_pump *p, uint32_t qpn, int err);
/* The pump's local planes, beside whatever the node reported of its own. */
void pump_local_planes(struct mrc_pump *p, uint32_t path);
/* Do packets of that path MTU fit through all lanes of the table, as far as is known? INVAL: not
 * through the one that the sentence names. */
int pump_path_fits(struct mrc_pump *p, uint32_t path, uint32_t path_mtu);
/* Moves EV events from the tables to the pump while there is room. */
void pump_collect_events(struct mrc_pump *p);

/* Is there a thread to speak to? In a forked child there is none, and its lock may be held. */
static inline bool pump_threaded(const struct mrc_pump *p)
{
    return atomic_load_explicit(&p->threaded, memory_order_acquire);
}

static inline mrc_ns pump_look_until(const struct pump_look *l)
{
    return atomic_load_explicit(&l->until, memory_order_relaxed);
}

/* mrc_pump_mem.c */
void *pump_alloc(struct mrc_pump *p, size_t size); /* zeroed; NULL: no memory */
void pump_free(struct mrc_pump *p, void *bytes);

#endif
