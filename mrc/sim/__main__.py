# SPDX-License-Identifier: BSD-2-Clause
"""python -m mrc.sim: run a scenario on the emulated fabric."""

import sys

from mrc import _early

if __name__ == "__main__":
    _early.install("mrc.sim")
    # run, too, before an interrupt is an exception: one that strikes while a dataclass is made (by
    # exec of a string) makes the interpreter end by the signal, whatever we return.
    from . import run  # noqa: F401
    from .command import main

    _early.hand_over()
    sys.exit(main())
