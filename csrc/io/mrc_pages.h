/* SPDX-License-Identifier: BSD-2-Clause */
/* Large memory, as pages of its own: what is never touched costs nothing, and at the end all of it
 * goes back to the system at once. The heap gives neither: it keeps what was large and is free for
 * the next who asks, and clears it for them. */
#ifndef MRC_PAGES_H
#define MRC_PAGES_H

#include <stddef.h>

void *mrc_pages_get(size_t bytes); /* zeroed, at a multiple of 64; NULL: there is none */
void mrc_pages_put(void *at, size_t bytes);

#endif
