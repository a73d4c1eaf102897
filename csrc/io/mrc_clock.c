/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_clock.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>

mrc_ns mrc_clock_now(void)
{
    struct timespec t;
    MRC_ASSERT(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    return (mrc_ns)t.tv_sec * MRC_SEC + (mrc_ns)t.tv_nsec;
}

int mrc_clock_arm(int timer_fd, mrc_ns when)
{
    struct itimerspec spec = {0};
    if (when != MRC_NEVER) {
        if (when == 0)
            when = 1; /* zero would disarm */
        spec.it_value.tv_sec = (time_t)(when / MRC_SEC);
        spec.it_value.tv_nsec = (long)(when % MRC_SEC);
    }
    return timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0 ? 0 : -errno;
}
