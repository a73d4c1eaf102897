# SPDX-License-Identifier: BSD-2-Clause
"""Row templates instead of listed destinations (D.9), and the way back of SRv6 profiles (D.8).

The uSIDs of the fabric have the number scheme of D.9's example, so the kernel's switches judge.
"""

from pathlib import Path

import pytest

from mrc.lab import Fabric, Mode, Role, carrier, host_address, usid

from .programs import Pair
from .test_transfer import assert_even, assert_verified, forwarded

pytestmark = pytest.mark.netns


class TemplatePair(Pair):
    """Both ends with a profile of planes and uplinks, and the rows of their node."""

    def __init__(self, fabric: Fabric, folder: Path, reverse: str) -> None:
        self.folder, self.reverse = folder, reverse
        for end in range(2):
            (folder / f"rows-{end}.toml").write_text(rows(end))
            (folder / f"template-{end}.toml").write_text(
                f'format = "srv6"\nplanes = {fabric.spec.planes}\n'
                f'uplinks = [1, {fabric.spec.spines}]\nreverse = "{reverse}"\n'
                f'[template]\nrows = "rows-{end}.toml"\n'
            )
        super().__init__(fabric, folder, Mode.SRV6, "raw")

    def _paths(self, end: int) -> list[str]:
        return ["--backend", self.backend, "--ev-profile", f"{self.folder}/template-{end}.toml"]


def rows(end: int) -> str:
    """One row: the other host's. Planes, uplink and host number are 0, to be filled in."""
    own, other = usid(Role.T0, 0, end + 1), usid(Role.T0, 0, 2 - end)
    template = carrier(own, usid(Role.T1, 0, 0), other, usid(Role.HOST_RAW, 0, 0))
    return f'[[row]]\nprefix = "{host_address(1 - end)}/128"\ntemplate = "{template}"\n'


@pytest.mark.parametrize("reverse", ["own", "reflect"])
def test_the_switches_take_what_the_templates_make(fabric: Fabric, tmp_path: Path, reverse: str):
    with TemplatePair(fabric, tmp_path, reverse) as pair:
        before = fabric.spine_counters()
        transfer = pair.send("-t", "1")
        wire = forwarded(fabric, before)
    assert_verified(transfer)
    assert_even(wire)
    by_ev = {p["ev"]: p["bytes_sent"] for p in transfer.end["paths"]}
    assert len(by_ev) == fabric.spec.planes * fabric.spec.spines
    assert_even(list(by_ev.values()))
    assert {ev >> 24 for ev in by_ev} == set(range(1, fabric.spec.planes + 1))
    assert {ev >> 16 & 0xFF for ev in by_ev} == set(range(1, fabric.spec.spines + 1))
