# SPDX-License-Identifier: BSD-2-Clause
"""`make bench`: ours, the bare loops and iperf3 in turn over the same link."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from mrc.lab import FabricError
from tools.bench.link import BenchError, Link, fabric, veth
from tools.bench.methods import BARE, Cores, Method, Sample, methods
from tools.bench.report import Rounds, document, table


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """What the user asked for."""
    parser = argparse.ArgumentParser(
        prog="make bench", description="Goodput of mrc-send beside a bare UDP loop and iperf3."
    )
    parser.add_argument("-r", "--rounds", type=int, default=5, help="rounds; ratios need several")
    parser.add_argument("-t", "--time", type=int, default=4, help="seconds of each run")
    parser.add_argument("--quick", action="store_true", help="one round of one second")
    parser.add_argument("--only", action="append", help="only this method; may be repeated")
    parser.add_argument(
        "--fabric", action="store_true", help="over 16 SRv6 paths of the demo's fabric, not a veth"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there")
    args = parser.parse_args(argv)
    if args.quick:
        args.rounds, args.time = 1, 1
    if args.rounds < 1 or args.time < 1:
        parser.error("--rounds and --time must be at least 1")
    known = {m.name for m in methods()}
    for name in args.only or []:
        if name not in known:
            parser.error(f"no method {name}; there are {', '.join(sorted(known))}")
    return args


def pinning() -> Cores:
    """Sender and receiver on a core each, when we may use two."""
    usable = sorted(os.sched_getaffinity(0))
    return Cores(usable[0], usable[1]) if len(usable) > 1 else Cores(None, None)


def measure(
    link: Link, cores: Cores, chosen: list[Method], args: argparse.Namespace
) -> tuple[Rounds, dict[str, str]]:
    """All rounds. Each begins with another method, so that no one always runs on a warm machine.

    A method that fails once is left out from then on and named with its reason.
    """
    rounds: Rounds = []
    failed: dict[str, str] = {}
    for number in range(args.rounds):
        samples: dict[str, Sample] = {}
        start = number % len(chosen)
        for method in chosen[start:] + chosen[:start]:
            if method.name in failed:
                continue
            try:
                samples[method.name] = method.run(link, cores, args.time)
            except BenchError as bad:
                failed[method.name] = str(bad)
                continue
            gbps = samples[method.name].goodput_bps / 1e9
            print(f"round {number + 1}: {method.name:12} {gbps:6.2f} Gbit/s", file=sys.stderr)
        rounds.append(samples)
    return rounds, failed


def main(argv: list[str] | None = None) -> int:
    """0: all that could run did; 2: something failed; 4: nothing can be measured here."""
    args = arguments(argv)
    every = [m for m in methods() if not args.only or m.name in args.only]
    chosen = [m for m in every if not m.missing]
    cores = pinning()
    if not BARE.exists():
        print("bench: the bare loops are not compiled; run make bench", file=sys.stderr)
        return 4
    try:
        with fabric() if args.fabric else veth() as link:
            chosen = [m for m in chosen if link.tcp or not m.tcp]
            rounds, failed = measure(link, cores, chosen, args)
            where = {
                "link": link.name,
                "seconds": args.time,
                "cores_used": [cores.sender, cores.receiver],
            }
    except (BenchError, FabricError) as bad:
        print(f"bench: {bad}", file=sys.stderr)
        return 4
    doc = document(rounds, every, failed, where)
    print(table(doc))
    if args.json:
        args.json.write_text(json.dumps(doc, indent=1, allow_nan=False) + "\n")
    return 2 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
