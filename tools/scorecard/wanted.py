# SPDX-License-Identifier: BSD-2-Clause
"""What is wanted of MRC, and whether it was found. Pure.

Figures are medians of all runs. Rates are wanted at MTU 9000; at MTU 1500, where framing leaves
less, the same share of what it leaves is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mrc.fabric.measure import median
from tools.scorecard.emulated import TITLES
from tools.scorecard.peers import mrc
from tools.scorecard.rows import TIMES, Record, gbit, grouped, percent, three, whole
from tools.scorecard.stage import SHAPES


@dataclass(frozen=True, slots=True)
class Verdict:
    """One wanted figure."""

    mtu: int | None
    """None: of the emulated fabric."""
    case: str
    what: str
    wanted: str
    found: str
    """The median, and behind it every run."""
    met: bool | None
    """None: it was not measured."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    case: str
    what: str
    key: str
    how: str
    """One of ``>=``, ``<=``, ``<``."""
    limit: float
    show: Callable[[float], str]
    unit: str = ""
    relative: bool = False
    """To the same figure of the case ``clean``."""

    def at(self, mtu: int) -> float:
        """The limit; rates follow the framing."""
        if not self.key.endswith("_bps") or self.relative:
            return self.limit
        share = mrc({}).payload_share
        return self.limit * share(SHAPES[mtu]) / share(SHAPES[9000])

    def text(self, value: float) -> str:
        """A figure with its unit."""
        return f"{self.show(value)}{self.unit}"


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 20 else whole(value)


WANTED = (
    _Wanted("clean", "goodput", "goodput_bps", ">=", 1.90e9, gbit, " Gbit/s"),
    _Wanted("loss", "goodput, of clean", "goodput_bps", ">=", 0.95, percent, relative=True),
    _Wanted("loss-one", "path out of use", "out_ms", "<", 100, _ms, " ms"),
    _Wanted("loss-one", "load of that path 100 ms after the fault and later", "still_share", "<",
            0.05, percent),
    _Wanted("loss-one", "goodput with it out", "after_fault_bps", ">=", 1.40e9, gbit, " Gbit/s"),
    _Wanted("loss-one", "lost later", "late_loss_share", "<", 0.001, percent),
    _Wanted("hole", "longest gap", "gap_ms", "<=", 20, _ms, " ms"),
    _Wanted("hole", "95 % of what is left", "to95_ms", "<=", 100, _ms, " ms"),
    _Wanted("hole", "full rate after the heal", "full_ms", "<=", 200, _ms, " ms"),
    _Wanted("flap", "of the time-averaged capacity", "share_of_capacity", ">=", 0.90, percent),
    _Wanted("flap", "runs with an error of the queue pair", "wrong", "<=", 0, whole),
    _Wanted("reorder", "of capacity", "share_of_capacity", ">=", 0.95, percent),
    _Wanted("reorder", "sent needlessly", "spurious_share", "<", 0.005, percent),
)  # fmt: skip


def verdicts(document: Mapping[str, Any]) -> list[Verdict]:
    """Of all cases and MTUs of a document, whoever ran; and what the emulated fabric says."""
    groups = grouped(document["records"])
    found = []
    for mtu in dict.fromkeys(mtu for mtu, _ in groups):
        cases = {case: peers.get("mrc", []) for (m, case), peers in groups.items() if m == mtu}
        asked = {*cases, *document["not_run"]}
        found += [_judged(wanted, mtu, cases) for wanted in WANTED if wanted.case in asked]
    return found + list(_emulated(document.get("emulated", {})))


def missed(document: Mapping[str, Any]) -> list[Verdict]:
    """Those that were measured and are not met."""
    return [verdict for verdict in verdicts(document) if verdict.met is False]


def _judged(wanted: _Wanted, mtu: int, cases: Mapping[str, list[Record]]) -> Verdict:
    limit = wanted.at(mtu)
    values = _values(wanted, cases.get(wanted.case, []))
    if wanted.relative:
        clean = median(v for v in _values(wanted, cases.get("clean", [])) if v is not None)
        values = [v / clean for v in values if v is not None] if clean else []
    text = f"{wanted.how} {wanted.text(limit)}"
    if not values:
        return Verdict(mtu, wanted.case, wanted.what, text, "not measured", None)
    if wanted.key == "wrong":
        value: float | None = sum(v or 0 for v in values)
    else:
        value = median(values)
    shown = _shown(wanted, value)
    if len(values) > 1:
        shown += f" ({', '.join(_bare(wanted, v) for v in values)})"
    return Verdict(mtu, wanted.case, wanted.what, text, shown, _holds(value, wanted.how, limit))


def _values(wanted: _Wanted, records: list[Record]) -> list[float | None]:
    """The figure of each run; None: it never happened. A run that failed has none."""
    if wanted.key == "wrong":
        return [float("failed" in r or bool(r["result"]["errors"])) for r in records]
    results = [r["result"] for r in records if "failed" not in r]
    return [
        result[wanted.key]
        for result in results
        if wanted.key in result and (wanted.key in TIMES or result[wanted.key] is not None)
    ]


def _shown(wanted: _Wanted, value: float | None) -> str:
    return "never" if value is None else wanted.text(value)


def _bare(wanted: _Wanted, value: float | None) -> str:
    return "never" if value is None else wanted.show(value)


def _holds(value: float | None, how: str, limit: float) -> bool:
    seen = math.inf if value is None else value
    return {">=": seen >= limit, "<=": seen <= limit, "<": seen < limit}[how]


def _emulated(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[Verdict]:
    incast, update = (figures.get(key) for key in TITLES)
    if incast:
        share, jain = incast["victim_share"], incast["jain"]
        yield Verdict(None, "incast", "victim's goodput, of alone", f">= {percent(0.95)}",
                      percent(share), share >= 0.95)  # fmt: skip
        yield Verdict(None, "incast", "Jain's index of the seven", f">= {three(0.98)}",
                      three(jain), jain >= 0.98)  # fmt: skip
    if update:
        stopped, rtt = update["stopped_ms"], update["rtt_ms"]
        yield Verdict(None, "update", "last packet into the plane after the carrier was lost",
                      f"<= one RTT, {rtt:.2f} ms", f"{stopped:.2f} ms", stopped <= rtt)  # fmt: skip
