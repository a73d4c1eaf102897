/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__ /* it knows the ends of what is of the heap */

void *mrc_pages_get(size_t bytes)
{
    const size_t whole = (bytes + 63) & ~(size_t)63;
    void *const at = whole >= bytes ? aligned_alloc(64, whole) : NULL;
    return at != NULL ? memset(at, 0, whole) : NULL;
}

void mrc_pages_put(void *at, size_t bytes)
{
    (void)bytes;
    free(at);
}

#else

void *mrc_pages_get(size_t bytes)
{
    void *const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at != MAP_FAILED ? at : NULL;
}

void mrc_pages_put(void *at, size_t bytes)
{
    if (at != NULL)
        (void)munmap(at, bytes);
}

#endif
