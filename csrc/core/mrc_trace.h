/* SPDX-License-Identifier: BSD-2-Clause */
/* Why packets are dropped: one enum, one counter each, one test each. */
#ifndef MRC_TRACE_H
#define MRC_TRACE_H

#include "mrc_base.h"

enum mrc_drop {
    MRC_DROP_SHORT = 0, /* headers do not fit */
    MRC_DROP_TVER,
    MRC_DROP_OPCODE,
    MRC_DROP_LENGTH,
    MRC_DROP_ICRC,
    MRC_DROP_UDP_LEN,    /* UDP length and bytes disagree */
    MRC_DROP_QPN,        /* no such QP */
    MRC_DROP_QP_STATE,   /* QP not in a state that takes this */
    MRC_DROP_PEER,       /* source is not the connected peer */
    MRC_DROP_PSN_STALE,  /* far outside the window (H8) */
    MRC_DROP_PSN_WINDOW, /* just outside: NACKed */
    MRC_DROP_PAYLOAD,    /* payload longer than path MTU, or wrong for the opcode */
    MRC_DROP_ACCESS,     /* rkey, access or bounds: NAKed */
    MRC_DROP_WIMM_LIMIT, /* too many immediates: NAKed */
    MRC_DROP_NO_RECV,    /* no receive work request: NAKed */
    MRC_DROP_SACK_RANGE, /* acknowledges what was never sent */
    MRC_DROP_ACK_RANGE,
    MRC_DROP_NACK_RANGE,
    MRC_DROP_PROBE_RATE,
    MRC_DROP_EP_UNKNOWN, /* endpoint operation from a stranger or of unknown kind */
    MRC_DROP_TRIM_OFF,   /* trimmed packet where trim NACKs are off or QP unknown */
    MRC_DROP_EP_STALE,   /* endpoint response to nothing we asked: late, twice, or invented */
    MRC_DROP_NO_BITMAP,  /* no room to track one more PSN out of order: NACKed */
    MRC_DROP_NO_BUFFER,  /* no room for one more early immediate: NACKed */
    MRC_DROP_PAUSED,     /* the application has paused receiving: NACKed */
    MRC_DROP_RQMSN,      /* immediate whose number contradicts its place */
    MRC_DROP_COUNT
};

/* Short name for reports, e.g. "icrc". */
const char *mrc_drop_name(enum mrc_drop d);

#endif
