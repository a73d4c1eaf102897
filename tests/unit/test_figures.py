# SPDX-License-Identifier: BSD-2-Clause
"""The figures of the documentation show the data that is committed."""

from __future__ import annotations

import pytest

from tools.figures import nscc


@pytest.mark.parametrize("name", nscc.FIGURES)
def test_committed_figure_is_that_of_the_data(name):
    assert (nscc.OUTPUT / f"{name}.svg").read_text() == nscc.figure(nscc.FIGURES[name])


def test_every_case_is_shown():
    shown = {case for cases in nscc.FIGURES.values() for case in cases}
    assert shown == {path.stem for path in nscc.GOLDEN.glob("*.csv")}
