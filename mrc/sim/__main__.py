# SPDX-License-Identifier: BSD-2-Clause
"""python -m mrc.sim: run a scenario on the emulated fabric."""

import sys

from mrc import _early

if __name__ == "__main__":
    _early.install("mrc.sim")
    from .command import main

    _early.hand_over()
    sys.exit(main())
