# SPDX-License-Identifier: BSD-2-Clause
"""The reference page names every option and every key, and no option that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mrc.cli.parser import recv_parser, send_parser
from tools.bench.groups import groups

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"


def options():
    return {
        name
        for parser in (send_parser(), recv_parser())
        for action in parser._actions
        for name in action.option_strings
    }


def test_every_option_is_on_the_page():
    """Of several names of an option one is enough."""
    text = PAGE.read_text()
    for parser in (send_parser(), recv_parser()):
        for action in parser._actions:
            names = [n for n in action.option_strings if n not in ("-h", "--help", "--version")]
            if names:
                assert any(re.search(rf"(?<![\w-]){name}\b", text) for name in names), names


def test_every_option_on_the_page_exists():
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.read_text()))
    assert named <= options()


def test_help_tells_counts_from_sizes():
    text = " ".join(send_parser().format_help().split())
    assert "counts (-n) take k, M, G: powers of 1000" in text
    assert "sizes (-s, --sweep, --window) take k, M, G: powers of 1024" in text


def test_the_tutorial_makes_the_directories_it_uses():
    text = (PAGE.parents[1] / "tutorial.md").read_text()
    used = re.findall(r"mrc-recv .*-o (\S+)", text)
    assert used
    for folder in used:
        assert f"mkdir -p {folder}" in text[: text.index(f"-o {folder}")]


def test_the_page_about_the_bench_has_every_group_and_no_other():
    text = (PAGE.parent / "bench.md").read_text()
    named = re.findall(r"^\| `([a-z0-9]+)` \|", text, re.MULTILINE)
    assert named == [g.name for g in groups()]


def keys(value):
    """All keys but those inside `ports` and `drops`, which counters.md explains."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            if key not in ("ports", "drops"):
                yield from keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from keys(item)


@pytest.mark.parametrize("load", ["-n 3 --bidir -P 2 -i 0.05", "-n 3 --latency --sweep 1:2"])
async def test_every_key_is_on_the_page(pair, load):
    await pair.run(load)
    text = PAGE.read_text()
    known = {
        "event",
        "data",
        "previous",
        "protocol",
        "imm",
        "sweep",
        "evs",
        "ev_profile",
        "mtu",
        "cc",
        "window",
        "train",
        "test",
        "host",
        "port",
        "time",
        "timesecs",
        "omitted",
    }
    for document in (pair.send.json, pair.recv.json):
        missing = {key for key in keys(document) if not re.search(rf"\b{key}\b", text)}
        assert missing <= known
