# SPDX-License-Identifier: BSD-2-Clause
"""Write docs/reference/cli.md from the parsers of the commands, or check that it is fresh."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mrc.cli import helptext
from mrc.cli.options import recv_parser, send_parser

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"


def usage(action: argparse.Action) -> str:
    """An option as one types it."""
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    shown = [f"`{o}`" for o in action.option_strings]
    if action.nargs != 0:
        choices = "|".join(map(str, action.choices)) if action.choices else ""
        value = action.metavar or choices or action.dest.upper()
        more = " ..." if action.nargs == "+" else ""
        shown[-1] = f"`{action.option_strings[-1]} {value}{more}`"
    return ", ".join(shown).replace("|", "\\|")


def explained(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Its help, defaults filled in."""
    values = {**vars(action), "prog": parser.prog}
    return ((action.help or "") % values).replace("|", "\\|")


def section(parser: argparse.ArgumentParser, about: str) -> list[str]:
    """One command: what it is for, then a table for each group of options."""
    lines = [f"## {parser.prog}", "", about]
    for group in parser._action_groups:
        actions = [a for a in group._group_actions if a.help is not argparse.SUPPRESS]
        if actions:
            title = (group.title or "").capitalize()
            lines += ["", f"### {title} ({parser.prog})", "", "| option | meaning |", "| --- | --- |"]
            lines += [f"| {usage(a)} | {explained(parser, a)} |" for a in actions]
    return [*lines, ""]


def page() -> str:
    """The whole page."""
    lines = [
        "# Commands",
        "",
        "Written by `make docs` from the parsers; `--help` says the same.",
        "What the reports contain: [cli-report.md](cli-report.md).",
        "",
        *section(recv_parser(), helptext.RECV_ABOUT),
        *section(send_parser(), helptext.SEND_ABOUT),
        "## Both",
        "",
        "```text",
        helptext._CODES.strip(),
        "```",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Exit code for make: 0 fine, 1 stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    if parser.parse_args().check:
        if PAGE.exists() and PAGE.read_text() == page():
            return 0
        print(f"{PAGE.name} is stale: run make docs", file=sys.stderr)
        return 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
