# SPDX-License-Identifier: BSD-2-Clause
"""What a lab makes of a scenario, in words: what is played as the file says, what is left out."""

from __future__ import annotations

from collections.abc import Iterator

from mrc.fabric import report
from mrc.fabric.scenario import Case, Scenario
from mrc.units import time_text

from .jobs import INTERVAL_NS
from .plan import DELAY_NS, spec_of

__all__ = ["describe"]


def describe(scenario: Scenario) -> Iterator[str]:
    """Lines about what will be run."""
    train = scenario.main.transport.train
    trains = f"trains of up to {train}" if train > 1 else "trains as mrc-send forms them"
    yield from report.describe(scenario, _cable(scenario.main), f", {trains}")
    for words in dict.fromkeys(w for case in scenario.cases for w in _left_out(case)):
        yield f"  left out on a lab: {words}"


def _cable(case: Case) -> str:
    delay_ns = spec_of(case.shape).delay_ns
    return f"{time_text(delay_ns)} a cable between T0 and T1" if delay_ns else "no delay added"


def _left_out(case: Case) -> Iterator[str]:
    shape, played_ns = case.shape, spec_of(case.shape).delay_ns
    if shape.delay_ns and not played_ns:
        yield (
            f"delay {time_text(shape.delay_ns)} a cable: {time_text(DELAY_NS[0])} is the least,"
            " and the machine itself takes as long"
        )
    elif played_ns:
        yield f"delay {time_text(played_ns)} on the cables of hosts"
    if case.run.sample_ns < INTERVAL_NS:
        yield f"sample {time_text(case.run.sample_ns)}: every {time_text(INTERVAL_NS)} instead"
