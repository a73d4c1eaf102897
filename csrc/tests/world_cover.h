/* SPDX-License-Identifier: BSD-2-Clause */
/* What a simulated run must have seen for it to prove anything: each fault, and each reaction to
 * one, counted where it happens. vopr sums them over its seeds and fails when a kind never came.
 *
 * Reasons of drops are counted beside these, by the engines. */
#ifndef MRC_WORLD_COVER_H
#define MRC_WORLD_COVER_H

#include <stdint.h>

#define WORLD_COVER_LIST(X)                                                                        \
    /* what was done to the packets */                                                             \
    X(LOST, "lost")                                                                                \
    X(LOST_CONTROL, "lost-control-only")                                                           \
    X(LOST_DATA, "lost-data-only")                                                                 \
    X(CUT, "cut-both-ways")                                                                        \
    X(CUT_ONE_WAY, "cut-one-way")                                                                  \
    X(OVERFLOWED, "overflowed")                                                                    \
    X(DUPLICATED, "duplicated")                                                                    \
    X(CORRUPTED, "corrupted")                                                                      \
    X(MARKED, "marked")                                                                            \
    X(TRIMMED, "trimmed")                                                                          \
    X(TRIMMED_LASTHOP, "trimmed-lasthop")                                                          \
    X(REORDERED, "reordered")                                                                      \
    X(REORDERED_FAR, "reordered-by-more-than-129")                                                 \
    /* what was done to the hosts and paths */                                                     \
    X(PATH_DIED, "path-died")                                                                      \
    X(PATH_HEALED, "path-healed")                                                                  \
    X(PATH_BAD, "path-lossy")                                                                      \
    X(PORT_DOWN, "port-down")                                                                      \
    X(PORT_UP, "port-up")                                                                          \
    X(DENIED, "denied")                                                                            \
    X(ALLOWED, "allowed")                                                                          \
    X(REFUSED, "send-refused")                                                                     \
    X(STALLED, "stalled")                                                                          \
    X(PAUSED, "paused")                                                                            \
    X(STALL_LOST, "lost-while-stalled")                                                            \
    X(MPR_SHRUNK, "mpr-shrunk")                                                                    \
    X(MPR_GROWN, "mpr-grown")                                                                      \
    X(RESET, "reset-and-reuse")                                                                    \
    X(RESET_STALE, "packet-of-a-former-life")                                                      \
    X(DESTROYED, "destroyed-with-work")                                                            \
    X(ERROR_BY_HAND, "error-by-hand")                                                              \
    X(BAD_KEY, "wrong-key")                                                                        \
    X(STRANGER, "stranger")                                                                        \
    X(REPLAYED, "replayed")                                                                        \
    X(FORGED, "forged")                                                                            \
    /* numbers that wrapped, limits that were met */                                               \
    X(PSN_WRAP, "psn-wrap")                                                                        \
    X(MSN_WRAP, "msn-wrap")                                                                        \
    X(RQMSN_WRAP, "rqmsn-wrap")                                                                    \
    X(AETH_WRAP, "aeth-msn-wrap")                                                                  \
    X(RCVD_WRAP, "rcvd-bytes-wrap")                                                                \
    X(TIME_WRAP, "timestamp-wrap")                                                                 \
    X(WINDOW_FULL, "window-full")                                                                  \
    X(WIMM_FULL, "wimm-limit-met")                                                                 \
    X(HOSTS, "more-than-two-hosts")                                                                \
    X(SHARED, "several-qps-on-one-path-table")                                                     \
    /* what the engines did about it */                                                            \
    X(RTX, "rtx")                                                                                  \
    X(RTX_MANY, "rtx-three-times")                                                                 \
    X(TIMEOUT, "timeout")                                                                          \
    X(INFERRED, "loss-inferred")                                                                   \
    X(SPURIOUS, "spurious-rtx")                                                                    \
    X(ACK_QUERY, "asked-for-the-ack-again")                                                        \
    X(SACK_MARK, "sack-mark")                                                                      \
    X(SACK_ALWAYS_SKIP, "sack-always-skip")                                                        \
    X(SACK_PENALTY, "sack-penalty")                                                                \
    X(SACK_ECHO, "sack-rtx-echo")                                                                  \
    X(SACK_GAP, "sack-with-a-gap")                                                                 \
    X(SACK_FAR, "sack-beyond-64")                                                                  \
    X(TSETH, "tseth")                                                                              \
    X(PROBE, "probe")                                                                              \
    X(PROBE_ANSWER, "probe-answer")                                                                \
    X(NACK_TRIMMED, "nack-trimmed")                                                                \
    X(NACK_LASTHOP, "nack-trimmed-lasthop")                                                        \
    X(NACK_WINDOW, "nack-window")                                                                  \
    X(NACK_NO_BITMAP, "nack-no-bitmap")                                                            \
    X(NACK_NO_BUFFER, "nack-no-buffer")                                                            \
    X(NACK_NO_RESOURCE, "nack-no-resource")                                                        \
    X(NACK_UNEXPECTED, "nack-unexpected")                                                          \
    X(NAK_ACCESS, "nak-access")                                                                    \
    X(PORT_REQUEST, "port-status-request")                                                         \
    X(PORT_RESPONSE, "port-status-response")                                                       \
    X(EV_BAD_TIMEOUT, "ev-bad-by-timeout")                                                         \
    X(EV_BAD_LOSS, "ev-bad-by-loss")                                                               \
    X(EV_BAD_TOLD, "ev-bad-by-always-skip")                                                        \
    X(EV_BAD_SEND, "ev-bad-by-send-error")                                                         \
    X(EV_HEALED, "ev-healed-by-probe")                                                             \
    X(EV_HELD, "ev-kept-for-want-of-better")                                                       \
    X(EV_DENIED, "ev-denied")                                                                      \
    X(EV_ALLOWED, "ev-allowed")                                                                    \
    X(DUPLICATE_SEEN, "duplicate-received")                                                        \
    X(OOO_SEEN, "out-of-order-received")                                                           \
    X(CE_SEEN, "mark-received")                                                                    \
    X(IMM, "immediate")                                                                            \
    X(RETRY_EXCEEDED, "retries-exceeded")                                                          \
    X(ACCESS_ERROR, "remote-access-error")                                                         \
    X(REMOTE_ERROR, "remote-operation-error")                                                      \
    X(FLUSHED, "flushed")

#define WORLD_COVER_ENUM(id, name) WORLD_C_##id,
enum world_cover { WORLD_COVER_LIST(WORLD_COVER_ENUM) WORLD_COVER_COUNT };

#endif
