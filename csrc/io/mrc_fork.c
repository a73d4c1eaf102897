/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_fork.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_uint fork_count;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void fork_child(void) { atomic_fetch_add(&fork_count, 1); }
static void fork_begin(void) { (void)pthread_atfork(NULL, NULL, fork_child); }

void mrc_fork_watch(void) { (void)pthread_once(&fork_once, fork_begin); }
unsigned mrc_fork_count(void) { return atomic_load_explicit(&fork_count, memory_order_relaxed); }
