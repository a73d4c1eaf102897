/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole core as one unit for the compiler, lower layers first. */
#include "mrc_trace.c"
#include "mrc_icrc.c"
#include "mrc_heap.c"
#include "mrc_wire.c"
#include "mrc_path.c"
#include "mrc_path_probe.c"
#include "mrc_path_state.c"
#include "mrc_cc.c"
#include "mrc_nscc.c"
