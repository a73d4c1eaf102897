/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an impossible state ends: one line on stderr, then abort so that a debugger or a core file
 * shows the rest. */
#include "../core/mrc_base.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void mrc_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "mrc: impossible state at %s:%d: %s\n", file, line, what);
    abort();
}
