# SPDX-License-Identifier: BSD-2-Clause
"""Scenario files: a fabric, what its hosts send and how, what goes wrong, what must come of it.

    name = "one of four paths silently black-holed"
    claim = "G.4 figures 12, 13: the EV leaves at once, line rate is kept"  # compared with
    on = ["sim", "lab"]                    # where it can be run; default both
    scaling = "1/100 of the paper's rates" # in words, for whoever reads the figures

    [fabric]                               # mrc.fabric.shape
    planes = 4
    t1 = 4
    rate = "500mbit"

    [transport]                            # mrc.fabric.plan.Transport
    mode = "mrc"

    [[work]]                               # mrc.fabric.plan.Work
    kind = "bulk"

    [[fault]]                              # mrc.fabric.fault
    do = "fail"
    target = "p1.t1.2"
    at = "3s"
    until = "5s"

    [run]                                  # mrc.fabric.plan.RunPlan
    duration = "8s"

    [[compare]]                            # the same script again, otherwise
    id = "rc"                              # its name in expressions
    name = "rc, one path"
    transport.mode = "rc"                  # tables are merged, lists (fault, work) replaced

    [expect]                               # sentence = expression over the record
    "no gap above 20 ms" = "gap_ms <= 20"

    [figure]
    show = "planes"                        # total, planes, evs, works, lost, bars
    bars = ["goodput_bps / 1e9"]           # show = "bars": one group of bars each

    [lab.fabric]                           # otherwise on a lab: any of the tables above
    rate = "20mbit"

    verdict = "the longest gap was {gap_ms:.0f} ms"   # before the first table

Unknown keys are errors that name the line and what was meant; so are names in expressions that no
record of these cases will have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Formatter

from . import expression
from .capacity import ENCAP, HEADERS, TIMESTAMP
from .errors import FabricError, PlacedError, near
from .fault import Fault
from .grammar import Known, check_expectation, check_figure, check_sentence
from .plan import (
    RunPlan,
    Transport,
    Work,
    read_fault,
    read_run,
    read_shape,
    read_transport,
    read_work,
)
from .shape import FabricShape
from .target import parse_target
from .tomltext import Place, Table, Where, read_toml
from .vocabulary import known_in, known_of

__all__ = ["MAIN", "Case", "Expectation", "Figure", "Scenario", "load_scenario", "parse_scenario"]

MAIN = "main"
"""The id of the run that is no comparison."""

FABRICS = ("sim", "lab")
SHOWN = ("total", "planes", "evs", "works", "lost", "bars")
_ID = re.compile(r"[a-z][a-z0-9_]{0,30}")
_BYTES_MAX = 1 << 20
_CASE_TABLES = ("fabric", "transport", "run", "work", "fault")
_LAB_TOO = ("compare", "expect", "scaling", "verdict", "figure")


@dataclass(frozen=True, slots=True)
class Case:
    """One run: the scenario's own, or one it is compared with."""

    id: str
    name: str
    shape: FabricShape
    transport: Transport
    works: tuple[Work, ...]
    faults: tuple[Fault, ...]
    run: RunPlan


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must hold, in words and as an expression over the record."""

    words: str
    expression: str


@dataclass(frozen=True, slots=True)
class Figure:
    """What the figure of a scenario shows."""

    show: str = "total"
    bars: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole file."""

    name: str
    claim: str
    verdict: str
    scaling: str
    on: tuple[str, ...]
    main: Case
    compare: tuple[Case, ...] = ()
    expect: tuple[Expectation, ...] = ()
    figure: Figure = field(default_factory=Figure)
    source: str = ""
    takes_ns: int = 0
    """All of it on the emulated fabric, on one core of the machine of its author; 0: not said."""

    @property
    def cases(self) -> tuple[Case, ...]:
        """All runs, the scenario's own first."""
        return (self.main, *self.compare)

    def only(self, ids: Collection[str]) -> Scenario:
        """With these cases only, the first of them in the place of the main one.

        Expectations and sentences of cases that are gone go, too. FabricError: there is no such
        case.
        """
        known = [case.id for case in self.cases]
        for case_id in ids:
            if case_id not in known:
                raise FabricError(f"there is no case {case_id!r}; {near(case_id, known)}")
        kept = [case for case in self.cases if case.id in ids]
        gone = set(known[1:]) - set(ids)
        whole = kept[0].id == MAIN
        expect = tuple(
            one for one in self.expect if whole and not expression.names_in(one.expression) & gone
        )
        said = [field for _, field, _, _ in Formatter().parse(self.verdict) if field]
        plain = not whole or any(expression.names_in(text) & gone for text in said)
        return replace(
            self,
            main=kept[0],
            compare=tuple(kept[1:]),
            expect=expect,
            verdict="" if plain else self.verdict,
        )


def load_scenario(
    path: Path,
    changes: Mapping[str, object] | None = None,
    fabric: str = "sim",
    places: Mapping[Place, Where] | None = None,
) -> Scenario:
    """The scenario in a file. OSError; FabricError with file, line and reason."""
    raw = path.read_bytes()
    if len(raw) > _BYTES_MAX:
        raise FabricError(f"{path}: is longer than {_BYTES_MAX} bytes")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise FabricError(f"{path}: is not UTF-8 text") from None
    return parse_scenario(text, str(path), changes, fabric, places)


def parse_scenario(
    text: str,
    source: str,
    changes: Mapping[str, object] | None = None,
    fabric: str = "sim",
    places: Mapping[Place, Where] | None = None,
) -> Scenario:
    """The scenario in a text; `source` begins every message.

    changes: values laid over the document, as from `--set`; comparisons over them. fabric: where
    it is to be run; on a lab the table `lab` is laid over the document first. places: what has
    said each of the changes, for messages about them. FabricError.
    """
    document = _for_fabric(read_toml(text, source), fabric).merged(changes or {}, places or {})
    if "lab" in document:
        document.raw("lab")  # looked at already
    main = _case(document, MAIN, "")
    compare = [_compared(document, table) for table in document.tables("compare")]
    ids = [case.id for case in compare]
    for case_id in ids:
        if ids.count(case_id) > 1:
            document.fail("compare", f"two comparisons have the id {case_id}")
    known = known_of(main, compare)
    scenario = Scenario(
        name=document.text("name"),
        claim=document.text("claim", ""),
        verdict=_verdict(document, known),
        scaling=document.text("scaling", ""),
        on=_on(document),
        main=main,
        compare=tuple(compare),
        expect=_expect(document.table("expect"), known),
        figure=_figure(document.table("figure"), (main, *compare)),
        source=source,
        takes_ns=document.time_ns("takes", 0),
    )
    document.done()
    return scenario


def _for_fabric(document: Table, fabric: str) -> Table:
    own = document.raw("lab") if "lab" in document else {}
    if not isinstance(own, dict) or not set(own) <= {*_CASE_TABLES, *_LAB_TOO}:
        known = ", ".join((*_CASE_TABLES, *_LAB_TOO))
        document.fail("lab", f"holds what is otherwise on a lab: {known}")
    return document.merged(own, document.within("lab")) if fabric == "lab" else document


def _case(document: Table, case_id: str, name: str) -> Case:
    shape = read_shape(document.table("fabric"))
    run = read_run(document.table("run"))
    transport_table = document.table("transport")
    transport = read_transport(transport_table)
    needs = transport.path_mtu + HEADERS + ENCAP + (TIMESTAMP if transport.timestamps else 0)
    if needs > shape.mtu:
        transport_table.fail(
            "path_mtu", f"{transport.path_mtu} makes packets of {needs}, but mtu is {shape.mtu}"
        )
    for target in transport.deny:
        try:
            parse_target(target).check(shape)
        except FabricError as error:
            transport_table.fail("deny", str(error))
    tables = document.tables("work")
    if not tables:
        document.fail("", "there is no [[work]]: nothing would be sent")
    works = tuple(read_work(table, i, shape, run) for i, table in enumerate(tables))
    names = [work.name for work in works]
    for i, (table, work) in enumerate(zip(tables, works, strict=True)):
        if work.name in names[:i]:
            table.fail("name", f"two pieces of work are called {work.name!r}")
        if not _ID.fullmatch(work.name.replace("-", "_")):
            table.fail("name", f"{work.name!r}: letters, digits and - or _, small")
    faults = tuple(read_fault(table, shape, run) for table in document.tables("fault"))
    return Case(case_id, name, shape, transport, works, faults, run)


def _compared(document: Table, table: Table) -> Case:
    name = table.text("name")
    case_id = table.text("id", re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"))
    if not _ID.fullmatch(case_id) or case_id == MAIN:
        table.fail("id", f"{case_id!r}: a small letter, then letters, digits, _; not {MAIN}")
    changes = {key: table.raw(key) for key in _CASE_TABLES if key in table}
    table.done()
    try:
        return _case(document.merged(changes, table.within()), case_id, name)
    except FabricError as error:
        raise PlacedError(f"{error} (in the comparison {case_id})") from None


def _on(document: Table) -> tuple[str, ...]:
    words = document.words("on") or list(FABRICS)
    for word in words:
        if word not in FABRICS:
            document.fail("on", f"{word!r} is neither sim nor lab")
    return tuple(words)


def _verdict(document: Table, known: Known) -> str:
    text = document.text("verdict", "")
    try:
        check_sentence(text, known)
    except FabricError as error:
        document.fail("verdict", str(error))
    return text


def _expect(table: Table, known: Known) -> tuple[Expectation, ...]:
    found = []
    for words, text in table.pairs():
        try:
            check_expectation(text, known)
        except FabricError as error:
            table.fail(words, str(error))
        found.append(Expectation(words, text))
    return tuple(found)


def _figure(table: Table, cases: Sequence[Case]) -> Figure:
    found = Figure(
        show=table.choice("show", SHOWN, "total"),
        bars=tuple(table.words("bars")),
        labels=tuple(table.words("labels")),
        unit=table.text("unit", ""),
    )
    if (found.show == "bars") != bool(found.bars):
        table.fail("bars", 'belong to show = "bars", and are expressions')
    if found.labels and len(found.labels) != len(found.bars):
        table.fail("labels", f"{len(found.labels)} for {len(found.bars)} bars")
    for case in cases if found.bars else ():
        where = "" if case.id == MAIN else f" (in the comparison {case.id})"
        for text in found.bars:
            try:
                check_figure(text, known_in(case))
            except FabricError as error:
                table.fail("bars", f"{error}{where}")
    table.done()
    return found
