/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_trace.h"

const char *mrc_drop_name(enum mrc_drop d)
{
    switch (d) {
    case MRC_DROP_SHORT: return "short";
    case MRC_DROP_TVER: return "tver";
    case MRC_DROP_OPCODE: return "opcode";
    case MRC_DROP_LENGTH: return "length";
    case MRC_DROP_ICRC: return "icrc";
    case MRC_DROP_UDP_LEN: return "udp_len";
    case MRC_DROP_QPN: return "qpn";
    case MRC_DROP_QP_STATE: return "qp_state";
    case MRC_DROP_PEER: return "peer";
    case MRC_DROP_PSN_STALE: return "psn_stale";
    case MRC_DROP_PSN_WINDOW: return "psn_window";
    case MRC_DROP_PAYLOAD: return "payload";
    case MRC_DROP_ACCESS: return "access";
    case MRC_DROP_WIMM_LIMIT: return "wimm_limit";
    case MRC_DROP_NO_RECV: return "no_recv";
    case MRC_DROP_SACK_RANGE: return "sack_range";
    case MRC_DROP_ACK_RANGE: return "ack_range";
    case MRC_DROP_NACK_RANGE: return "nack_range";
    case MRC_DROP_PROBE_RATE: return "probe_rate";
    case MRC_DROP_EP_UNKNOWN: return "ep_unknown";
    case MRC_DROP_TRIM_OFF: return "trim_off";
    case MRC_DROP_EP_STALE: return "ep_stale";
    case MRC_DROP_NO_BITMAP: return "no_bitmap";
    case MRC_DROP_NO_BUFFER: return "no_buffer";
    case MRC_DROP_PAUSED: return "paused";
    case MRC_DROP_RQMSN: return "rqmsn";
    case MRC_DROP_COUNT: break;
    }
    return "unknown";
}
