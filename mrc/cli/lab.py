# SPDX-License-Identifier: BSD-2-Clause
"""The command mrc-lab."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mrc import _early

PROGRAM = "mrc-lab"


def main(argv: Sequence[str] | None = None) -> int:
    """Run mrc-lab; the exit code. Without `argv` signals are ours from the first moment."""
    if argv is None:
        _early.install(PROGRAM)
        argv = sys.argv[1:]
        from mrc.cli import labverbs

        if argv[:1] == ["run"]:  # all it loads, before an interrupt is an exception
            from mrc.cli import labrun  # noqa: F401

        _early.hand_over()
    else:
        from mrc.cli import labverbs
    return labverbs.main(argv)


if __name__ == "__main__":
    sys.exit(main())
