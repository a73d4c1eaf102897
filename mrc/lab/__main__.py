# SPDX-License-Identifier: BSD-2-Clause
"""``python -m mrc.lab``: try a fabric, or keep one up to work in it by hand."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys

from .check import check_paths
from .errors import FabricUnavailableError
from .fabric import Fabric
from .plan import FabricSpec

EXIT_FAILED = 2
EXIT_ENVIRONMENT = 4


def main(argv: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(argv)
    try:
        spec = FabricSpec(options.planes, options.spines, rate_mbit=options.rate_mbit)
    except ValueError as error:
        _parser().error(str(error))
    try:
        with Fabric(spec, userns=True if options.userns else None) as fabric:
            return _check(fabric) if options.verb == "check" else _stay(fabric)
    except FabricUnavailableError as error:
        print(f"no fabric here: {error}", file=sys.stderr)
        return EXIT_ENVIRONMENT
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mrc.lab", description=__doc__)
    parser.add_argument("verb", choices=("check", "up"), help="try every path, or stay up")
    parser.add_argument("--planes", type=int, default=4)
    parser.add_argument("--spines", type=int, default=4, help="per plane")
    parser.add_argument("--rate-mbit", type=int, help="rate of every fabric link")
    parser.add_argument("--userns", action="store_true", help="use a user namespace even as root")
    return parser


def _check(fabric: Fabric) -> int:
    results = check_paths(fabric)
    for result in results:
        path = result.path
        seen = " ".join(f"{plane}.{spine}" for plane, spine in result.spines) or "none"
        verdict = "ok" if result.ok else "WRONG" if result.arrived else "LOST"
        print(f"path {path.index:3} sport {path.sport} {path.kernel_carrier} via {seen}: {verdict}")
    return 0 if all(result.ok for result in results) else EXIT_FAILED


def _stay(fabric: Fabric) -> int:
    for host in fabric.hosts:
        print(f"host {host.index + 1} {host.address}: {shlex.join(host.command(['bash']))}")
    print("Ctrl-C takes it down", flush=True)
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
