# SPDX-License-Identifier: BSD-2-Clause
"""How long the machines search.

`HYPOTHESIS_PROFILE=deep` searches 25 times as long and at random, and keeps what it finds in
`.hypothesis`; without it (CI) the same examples come every time. `quick` stops at the first failure
without looking for a smaller one. In each case a failing example is printed with the decorator that
replays it.
"""

import os

from hypothesis import HealthCheck, Phase, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "")
DEEP = PROFILE == "deep"
PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.target]
FACTOR = 25 if DEEP else 1


def budget(examples: int, steps: int) -> settings:
    """Return settings for a machine: so many runs of so many steps."""
    return settings(
        max_examples=examples * FACTOR,
        stateful_step_count=steps,
        deadline=None,
        derandomize=not DEEP,
        phases=PHASES if PROFILE == "quick" else [*PHASES, Phase.shrink],
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
