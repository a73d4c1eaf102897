# SPDX-License-Identifier: BSD-2-Clause
"""What the hosts of a scenario send, as tables: queue pairs, waiting messages, bulk flows.

A collective is its messages: each waits for the one it depends on to arrive at its sender, as in a
program that forwards what it has received.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from mrc.fabric.plan import Work
from mrc.fabric.scenario import Case
from mrc.fabric.ways import Pair, flow_name, permuted

from ._tables import NONE, Bulk, Messages

__all__ = ["Flow", "Pair", "Traffic", "make_traffic"]


@dataclass(frozen=True, slots=True)
class Flow:
    """A direction of a queue pair in which something is sent."""

    index: int
    """2 x the queue pair, 1 more from b to a."""
    name: str
    work: str
    src: int
    dst: int
    start_ns: int
    stop_ns: int | None


@dataclass(slots=True)
class Traffic:
    """All of it."""

    pairs: list[Pair] = field(default_factory=list)
    flows: dict[int, Flow] = field(default_factory=dict)
    messages: Messages = field(default_factory=Messages)
    message_flow: list[int] = field(default_factory=list)
    bulks: list[Bulk] = field(default_factory=list)


def make_traffic(case: Case) -> Traffic:
    """The tables of a case. The same case and seed give the same."""
    maker = _Maker(case)
    for work in case.works:
        maker.add(work)
    return maker.made


class _Maker:
    def __init__(self, case: Case) -> None:
        self._case = case
        self._random = random.Random(case.run.seed)  # noqa: S311 - a draw that can be repeated
        self.made = Traffic()
        self._known: dict[tuple[str, int, int], list[int]] = {}

    def add(self, work: Work) -> None:
        match work.kind:
            case "bulk":
                self._bulk(work, [(work.src, work.dst)])
            case "incast":
                self._bulk(work, [(host, work.dst) for host in work.hosts])
            case "permutation":
                self._bulk(work, permuted(work, self._random))
            case "pair":
                self._finite(work)
            case "ring-allreduce":
                self._ring(work)
            case "all-to-all":
                self._all_to_all(work)

    def _flows(self, work: Work, src: int, dst: int) -> list[int]:
        """Indices of the flows from src to dst, a queue pair each, made when first asked for."""
        a, b = min(src, dst), max(src, dst)
        key = (work.name, a, b)
        count = work.qps or self._case.transport.qps
        if key not in self._known:
            first = len(self.made.pairs)
            self.made.pairs += [Pair(a, b, work, k) for k in range(count)]
            self._known[key] = list(range(first, first + count))
        found = [2 * qp + (src != a) for qp in self._known[key]]
        for k, index in enumerate(found):
            name = flow_name(src, dst, k, count)
            taken = {flow.name for i, flow in self.made.flows.items() if i != index}
            if index not in self.made.flows:
                name = f"{work.name}:{name}" if name in taken else name
                self.made.flows[index] = Flow(
                    index, name, work.name, src, dst, work.start_ns, work.stop_ns
                )
        return found

    def _bulk(self, work: Work, ways: Sequence[tuple[int, int]]) -> None:
        for src, dst in ways:
            for a, b in ((src, dst), (dst, src)) if work.both else ((src, dst),):
                self.made.bulks += [
                    Bulk(
                        flow=index,
                        bytes=work.bytes,
                        outstanding=work.outstanding or 8,
                        start_ns=work.start_ns,
                        stop_ns=work.stop_ns or 0,
                    )
                    for index in self._flows(work, a, b)
                ]

    def _message(self, flow: int, size: int, delay_ns: int = 0, after: int = NONE) -> int:
        self.made.message_flow.append(flow)
        return self.made.messages.add(flow, size, after=after, delay_ns=delay_ns)

    def _finite(self, work: Work) -> None:
        for a, b in ((work.src, work.dst), (work.dst, work.src)):
            flows = self._flows(work, a, b)
            for n in range(work.count):
                self._message(flows[n % len(flows)], work.bytes, work.start_ns)
            if not work.both:
                return

    def _ring(self, work: Work) -> None:
        """N - 1 steps of reduce-scatter, n - 1 of all-gather; a chunk of 1/n goes round in each.

        Several queue pairs share each chunk, as channels do; each waits for its own part only.
        """
        hosts = work.hosts
        size = len(hosts)
        flows = [self._flows(work, h, hosts[(i + 1) % size]) for i, h in enumerate(hosts)]
        channels = len(flows[0])
        part = max(1, -(-work.bytes // (size * channels)))
        for channel in range(channels):
            before = [NONE] * size
            for step in range(work.count * 2 * (size - 1)):
                delay = work.start_ns if step == 0 else 0
                arrived = [before[i - 1] for i in range(size)]
                before = [
                    self._message(flows[i][channel], part, delay, arrived[i]) for i in range(size)
                ]

    def _all_to_all(self, work: Work) -> None:
        """Each host to each other, the next first, all at once; a repetition waits pair by pair."""
        hosts = work.hosts
        size = len(hosts)
        part = max(1, -(-work.bytes // (size - 1)))
        before: dict[tuple[int, int], int] = {}
        for repeat in range(work.count):
            now: dict[tuple[int, int], int] = {}
            for distance in range(1, size):
                for i, src in enumerate(hosts):
                    dst = hosts[(i + distance) % size]
                    flows = self._flows(work, src, dst)
                    each = max(1, -(-part // len(flows)))
                    delay = work.start_ns if repeat == 0 else 0
                    after = before.get((dst, src), NONE)
                    for flow in flows:
                        now[src, dst] = self._message(flow, each, delay, after)
            before = now
