/* SPDX-License-Identifier: BSD-2-Clause */
/* Am I still the process that I was? For those who ask at each call: no system call. */
#ifndef MRC_FORK_H
#define MRC_FORK_H

/* From now on forks are counted. Any number of times. */
void mrc_fork_watch(void);
/* How often this process came out of a fork since: another number in the child than in its
 * parent. */
unsigned mrc_fork_count(void);

#endif
