/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole core as one unit for the compiler, lower layers first. */
#include "mrc_trace.c"
#include "mrc_icrc.c"
#include "mrc_wire.c"
