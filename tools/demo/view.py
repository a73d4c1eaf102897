# SPDX-License-Identifier: BSD-2-Clause
"""Shows a story while it happens: a live screen on a terminal, plain lines elsewhere.

The events stay in both: on a terminal they scroll by above the screen, which alone is erased.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .story import PathRow, Story

REFRESH_S = 0.1
PLAIN_S = 1.0
BAR = 8
COLUMNS = 4
BLOCKS = " ▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉█"
STYLES = {"GOOD": "green", "SKIP": "yellow", "ASSUMED_BAD": "bold red", "DENIED": "dim"}
WORDS = {"SKIP": "skip", "ASSUMED_BAD": "BAD", "DENIED": "denied"}


class Output(Console):
    """A console whose reader may leave: that is a BrokenPipeError once, and silence after it."""

    def on_broken_pipe(self) -> None:
        """Replaces rich's SystemExit, which an event loop cannot survive."""
        self.quiet = True
        hush(self.file)
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def hush(file: IO[str]) -> None:
    """What is still buffered for it, and all that comes, goes nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, file.fileno())
    os.close(null)


async def watch(story: Story, console: Console) -> None:
    """Show until cancelled; what is still unsaid then is said before returning."""
    if console.is_terminal and not console.is_dumb_terminal:
        await _live(story, console)
    else:
        await _plain(story, console)


async def _live(story: Story, console: Console) -> None:
    said = 0
    with Live(console=console, auto_refresh=False, transient=True) as live:
        try:
            while True:
                said = _say_new(story, console, said)
                live.update(screen(story), refresh=True)
                await asyncio.sleep(REFRESH_S)
        finally:
            _say_new(story, console, said)


async def _plain(story: Story, console: Console) -> None:
    said, next_line = 0, 0.0
    try:
        while True:
            said = _say_new(story, console, said)
            if story.goodput and time.monotonic() >= next_line:
                next_line = time.monotonic() + PLAIN_S
                console.print(f"{_time(story)} {_headline(story)}", highlight=False)
            await asyncio.sleep(REFRESH_S)
    finally:
        _say_new(story, console, said)


def _say_new(story: Story, console: Console, said: int) -> int:
    for at, text in story.log[said:]:
        if console.is_terminal:
            console.print(_event(_time(story, at), text))
        else:
            line = f"{_time(story, at)} {text}"
            console.print(line, highlight=False, soft_wrap=True, markup=False)
    return len(story.log)


def _event(when: str, text: str) -> Table:
    """One event for people; what is too long for the line goes on below its words."""
    loud = text.startswith(("CUT", "HEAL"))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(when, Text(text), style="bold" if loud else None)
    return grid


def _time(story: Story, at: float | None = None) -> str:
    return f"{(time.monotonic() if at is None else at) - story.begin:7.3f}"


def _headline(story: Story) -> str:
    if not story.goodput:
        return f"no figures yet, {len(story.paths)} paths"
    now = story.goodput[-1]
    return f"{now / 1e9:6.2f} Gbit/s   {story.usable}/{len(story.paths)} paths in use"


def screen(story: Story) -> RenderableType:
    """What is erased at the end: at most 24 lines of 80 columns."""
    head = Text.assemble((f" {story.phase} ", "bold reverse"), "  ", (_headline(story), "bold"))
    return Group(
        head,
        Text(_sparkline(story), style="cyan", overflow="crop", no_wrap=True),
        _grid(story),
    )


def _sparkline(story: Story) -> str:
    top = max(story.peak, 1.0)
    recent = list(story.goodput)[-78:]
    return "".join(BLOCKS[round(value / top * (len(BLOCKS) - 1))] for value in recent)


def _grid(story: Story) -> Table:
    """Planes are columns and spines rows; without switches, just the source ports."""
    if not story.places:
        return _list(story)
    planes = sorted({place[0] for place in story.places.values()})
    spines = sorted({place[1] for place in story.places.values()})
    rows = {place: story.paths[ev] for ev, place in story.places.items()}
    top = _top(story)
    table = Table(box=None, padding=(0, 1))
    table.add_column("Gbit/s", style="dim")
    for plane in planes:
        table.add_column(f"plane {plane}")
    for spine in spines:
        cells = [_cell(rows[plane, spine], top) for plane in planes]
        table.add_row(f"spine {spine}", *cells)
    return table


def _list(story: Story) -> Table:
    rows, top = list(story.paths.values()), _top(story)
    table = Table(box=None, padding=(0, 1), show_header=False)
    for begin in range(0, len(rows), COLUMNS):
        cells: list[RenderableType] = []
        for row in rows[begin : begin + COLUMNS]:
            cells += [str(row.ev), _cell(row, top)]
        table.add_row(*cells)
    return table


def _top(story: Story) -> float:
    return max((row.bits_per_second for row in story.paths.values()), default=0.0)


def _cell(row: PathRow, top: float) -> Text:
    if row.state is None:
        return Text("-", style="dim")
    value = WORDS.get(row.state, f"{row.bits_per_second / 1e9:.2f}")
    share = row.bits_per_second / top if top else 0.0
    return Text.assemble((_bar(share), STYLES.get(row.state, "")), f" {value}")


def _bar(share: float) -> str:
    eighths = round(max(0.0, min(1.0, share)) * BAR * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (EIGHTHS[rest] if full < BAR else "")).ljust(BAR)
