# SPDX-License-Identifier: BSD-2-Clause
"""Figures: every kind is drawn, small and the same each time."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from mrc.fabric import FabricError, figure
from mrc.fabric.scenario import SHOWN, Figure

from .records import LINE, mark, record

RC = record([(2, LINE / 4)], case="rc", name="one path", lost=3)
MADE = replace(
    record([(1, LINE), (1, 0.7 * LINE)], [mark(1.0, on=True), mark(1.5, on=False)], lost=9),
    compare=(RC,),
)


def shown(kind):
    return Figure(kind, ("goodput_bps / 1e9",) if kind == "bars" else (), (), "")


@pytest.mark.parametrize("kind", [k for k in SHOWN if k != "lost"])
def test_every_kind_is_drawn_small_and_the_same_again(kind, tmp_path):
    first, again = tmp_path / "a.svg", tmp_path / "b.svg"
    figure.draw(MADE, shown(kind), first)
    figure.draw(MADE, shown(kind), again)
    assert first.read_bytes() == again.read_bytes()
    assert first.stat().st_size < 60_000
    words = " ".join(ET.fromstring(first.read_text()).itertext())
    assert "made by hand" in words
    if kind != "bars":
        assert "fail p1.t1.2" in words
    if kind in ("total", "bars"):
        assert "one path" in words


def test_losses_are_drawn_where_they_were_counted(tmp_path):
    samples = tuple(replace(s, lost=int(10 * s.t_s)) for s in MADE.samples)
    figure.draw(replace(MADE, samples=samples, compare=()), shown("lost"), tmp_path / "a.svg")
    with pytest.raises(FabricError):
        figure.draw(
            replace(MADE, samples=tuple(replace(s, lost=None) for s in samples)),
            shown("lost"),
            tmp_path / "b.svg",
        )


def test_other_formats(tmp_path):
    figure.draw(MADE, shown("total"), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(FabricError, match="a figure ends with"):
        figure.draw(MADE, shown("total"), tmp_path / "a.gif")


def test_a_line_has_no_more_points_than_can_be_seen():
    xs, _ = figure._slopes(record([(30, LINE)]).series(), 1.0)
    assert len(xs) <= figure.POINTS_MAX
