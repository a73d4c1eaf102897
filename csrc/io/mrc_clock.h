/* SPDX-License-Identifier: BSD-2-Clause */
/* The one clock read, once per turn. */
#ifndef MRC_CLOCK_H
#define MRC_CLOCK_H

#include "../core/mrc_base.h"

mrc_ns mrc_clock_now(void); /* CLOCK_MONOTONIC */

/* Arm a CLOCK_MONOTONIC timerfd for an absolute time; MRC_NEVER disarms it. 0 or -errno. */
int mrc_clock_arm(int timer_fd, mrc_ns when);

#endif
