# SPDX-License-Identifier: BSD-2-Clause
"""The command mrc-send."""

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

PROGRAM = "mrc-send"


def main(argv: Sequence[str] | None = None) -> int:
    """Run mrc-send; the exit code. Without `argv` signals are ours from the first moment."""
    if argv is None:
        early.install(PROGRAM)
        argv = sys.argv[1:]
    from mrc.cli import frame, options
    from mrc.cli.exits import CliError

    try:
        chosen = options.parse_send(argv)
        if chosen.faults or "MRC_LAB_FOLDER" in os.environ:
            from mrc.cli import inlab

            chosen = inlab.send_options(chosen)
    except CliError as error:
        return options.usage_error(PROGRAM, argv, error)

    async def work(stop: Stop, output: Output) -> Exit:
        import mrc
        from mrc.cli.client import Client
        from mrc.cli.exits import Exit

        await Client(chosen, output, mrc.connect).run(stop)
        return Exit.OK

    peer = f"{chosen.host} port {chosen.common.port}"
    return frame.run(PROGRAM, chosen.common, peer, work)


if __name__ == "__main__":
    sys.exit(main())
