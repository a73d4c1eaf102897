/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the packets of some links for a time: mrc_relay.c. Used by mrc/lab/relay.py through ctypes.
 */
#ifndef MRC_RELAY_H
#define MRC_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#define MRC_RELAY_API __attribute__((visibility("default")))

struct mrc_relay;

/* Ever growing. */
struct mrc_relay_stats {
    uint64_t relayed;
    uint64_t refused;  /* the interface did not take them */
    uint64_t no_room;  /* more kept than memory allows */
    uint64_t too_long; /* for the ring: a train that nobody cut up */
};

/* NULL: no memory or no descriptors. */
MRC_RELAY_API struct mrc_relay *mrc_relay_new(uint64_t seed);
/* A link: bound packet sockets, rx at its end, tx at its beginning; they are the relay's now.
 * The link's number, or a negative errno. */
MRC_RELAY_API int mrc_relay_add(struct mrc_relay *r, int rx, int tx, uint32_t mtu_bytes);
/* From the next packet on: delay_ns, and up to jitter_ns more, drawn for each. */
MRC_RELAY_API void mrc_relay_set(struct mrc_relay *r, uint32_t id, uint64_t delay_ns,
                                 uint64_t jitter_ns);
/* Takes nothing more; what is kept still leaves when it is due. */
MRC_RELAY_API void mrc_relay_end(struct mrc_relay *r, uint32_t id);
/* Works until the control descriptor is readable. */
MRC_RELAY_API void mrc_relay_run(struct mrc_relay *r, int control);
MRC_RELAY_API void mrc_relay_read_stats(const struct mrc_relay *r, struct mrc_relay_stats *out);

#endif
