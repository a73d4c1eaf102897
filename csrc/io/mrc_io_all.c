/* SPDX-License-Identifier: BSD-2-Clause */
/* All of io as one unit for the compiler. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_clock.c"
#include "mrc_fork.c"
#include "mrc_io.c"
#include "mrc_io_mem.c"
#include "mrc_io_raw.c"
#include "mrc_io_udp.c"
#include "mrc_pages.c"
#include "mrc_panic.c"
#include "mrc_pump.c"
#include "mrc_pump_chan.c"
#include "mrc_pump_mem.c"
#include "mrc_pump_obj.c"
#include "mrc_pump_path.c"
#include "mrc_pump_thread.c"
#include "mrc_pump_wait.c"
#include "mrc_rawrx.c"
#include "mrc_rxsock.c"
