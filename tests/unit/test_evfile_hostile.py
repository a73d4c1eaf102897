# SPDX-License-Identifier: BSD-2-Clause
"""EV profile files that no hand wrote: whatever they hold, the error names the file."""

from __future__ import annotations

from pathlib import Path

import pytest

import mrc
from mrc.ev import EvProfile

_EV = "\n[[ev]]\nvalue = 50001\n"
_PLANE = 'format = "udp"' + _EV + '[[plane]]\nnumber = 1\ninterface = "%s"\n'
_ROWS = 'format = "srv6"\n[template]\nrows = "%s"\n'
HOSTILE = {
    "endless number": ('format = "udp"\nmin_active = ' + "1" * 5000, "is not TOML"),
    "endless hexadecimal": ('format = "udp"\nmin_active = 0x' + "f" * 5000 + _EV, "20000 bits"),
    "negative": ('format = "udp"\nmin_active = -' + "1" * 5000 + _EV, "is not TOML"),
    "hexadecimal EV": ('format = "udp"\n[[ev]]\nvalue = 0x' + "f" * 5000, "20000 bits"),
    "hexadecimal in a list": ("format = [0x" + "f" * 5000 + "]", "20000 bits"),
    "nested": ("format = " + "[" * 5000, "nested too deeply"),
    "nested tables": ("format = " + "{a=" * 5000, "nested too deeply"),
    "zero in rows": (_ROWS % "\\u0000", "is not a file name"),
    "zero in deny_file": ('format = "udp"\ndeny_file = "a\\u0000"' + _EV, "is not a file name"),
    "endless deny_file": ('format = "udp"\ndeny_file = "/dev/full"' + _EV, "is longer than"),
    "endless rows": (_ROWS % "/dev/full", "is longer than"),
    "zero in an interface": (_PLANE % "a\\u0000", "no interface name"),
    "slash in an interface": (_PLANE % "a/b", "no interface name"),
    "space in an interface": (_PLANE % "a b", "no interface name"),
}


@pytest.mark.parametrize(("text", "words"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_profile_errors(tmp_path, text, words):
    (tmp_path / "paths.toml").write_text(text)
    with pytest.raises(mrc.MrcProfileError) as caught:
        EvProfile.load(tmp_path / "paths.toml")
    assert "paths.toml: " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["block = " + "1" * 5000, "row = " + "[" * 5000])
def test_hostile_rows(tmp_path, text):
    (tmp_path / "rows.toml").write_text(text)
    (tmp_path / "paths.toml").write_text(_ROWS % "rows.toml")
    with pytest.raises(mrc.MrcProfileError, match=r"rows\.toml: is "):
        EvProfile.load(tmp_path / "paths.toml")


def test_names_that_cannot_be():
    with pytest.raises(mrc.MrcProfileError, match="is not a file name"):
        EvProfile.load("a\0b")
    with pytest.raises(mrc.MrcProfileError, match="/dev/full: is longer than"):
        EvProfile.load(Path("/dev/full"))
