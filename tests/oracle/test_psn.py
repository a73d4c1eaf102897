# SPDX-License-Identifier: BSD-2-Clause
"""Sequence arithmetic: the C functions beside the model (MRC B.1)."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from mrc.model import psn

PSN = st.integers(0, 0xFFFFFF)


@given(a=PSN, b=PSN)
@example(a=0, b=0x800000)
@example(a=0x800000, b=0)
@example(a=0, b=0xFFFFFF)
def test_difference(unit: Any, a: int, b: int) -> None:
    lib = unit.lib
    assert lib.mrc_psn_diff({"v": a}, {"v": b}) == psn.diff(a, b)
    assert lib.mrc_psn_after({"v": a}, {"v": b}) == psn.after(a, b)
    assert psn.wrap(b + psn.diff(a, b)) == a
    assert -(1 << 23) <= psn.diff(a, b) < 1 << 23


@given(a=PSN, n=st.integers(-(1 << 31), (1 << 31) - 1))
def test_addition(unit: Any, a: int, n: int) -> None:
    assert unit.lib.mrc_psn_add({"v": a}, n).v == psn.wrap(a + n)


@given(near=st.integers(-(1 << 40), 1 << 40), distance=st.integers(-(1 << 23), (1 << 23) - 1))
def test_unwrapping_finds_the_nearest(near: int, distance: int) -> None:
    assert psn.unwrap(psn.wrap(near + distance), near) == near + distance


def test_timestamps_wrap_after_8_388_608_ns() -> None:
    """A.5: 16 bits of 128 ns."""
    assert psn.timestamp_ns(0x0001, 0xFFFF) == 256
    assert psn.timestamp_ns(0, 1) == 8_388_608 - 128
