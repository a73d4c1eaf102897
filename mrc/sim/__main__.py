# SPDX-License-Identifier: BSD-2-Clause
"""python -m mrc.sim: run a scenario on the emulated fabric."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
