# SPDX-License-Identifier: BSD-2-Clause
"""The command mrc-recv."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mrc.cli import early

if TYPE_CHECKING:
    from mrc.cli.exits import Exit
    from mrc.cli.output import Output
    from mrc.cli.stop import Stop

PROGRAM = "mrc-recv"


def main(argv: Sequence[str] | None = None) -> int:
    """Run mrc-recv; the exit code. Without `argv` signals are ours from the first moment."""
    if argv is None:
        early.install(PROGRAM)
        argv = sys.argv[1:]
    from mrc.cli import frame, options
    from mrc.cli.exits import CliError

    try:
        chosen = options.parse_recv(argv)
        if "MRC_LAB_FOLDER" in os.environ:
            from mrc.cli import inlab

            chosen = inlab.recv_options(chosen)
    except CliError as error:
        return options.usage_error(PROGRAM, argv, error)

    async def work(stop: Stop, output: Output) -> Exit:
        import mrc
        from mrc.cli.server import Server

        return await Server(chosen, output, mrc.listen).run(stop)

    peer = f"{chosen.common.bind or '::'} port {chosen.common.port}"
    return frame.run(PROGRAM, chosen.common, peer, work)


if __name__ == "__main__":
    sys.exit(main())
