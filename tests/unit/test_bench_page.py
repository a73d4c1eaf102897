# SPDX-License-Identifier: BSD-2-Clause
"""The pages about speed are made of the figures beside them."""

import copy
import json

import pytest

from tools.bench import draw, page
from tools.bench.experiments.limits import KNOWN
from tools.bench.groups import groups
from tools.bench.method import Unit


@pytest.fixture(scope="module")
def document():
    return json.loads(page.DATA.read_text(encoding="utf-8"))


def written(name):
    return (page.FOLDER / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", page.PAGES)
def test_the_tables_of_a_page_are_those_of_its_figures(document, name):
    assert page.text(written(name), name, document) == written(name)


def test_a_figure_that_changes_changes_the_page(document):
    other = copy.deepcopy(document)
    for group in other["groups"].values():
        for row in group["rows"].values():
            for spread in row["figures"].values():
                spread["median"] *= 2
    assert page.text(written("trains"), "trains", other) != written("trains")


def test_what_is_kept_is_short_and_makes_the_same_pages(document):
    again = page.slim(json.loads(json.dumps(document)))
    assert again == document
    assert all("rounds" not in group for group in document["groups"].values())


def test_a_page_without_marks_is_refused(document):
    with pytest.raises(ValueError, match="trains: begin"):
        page.text("# nothing", "trains", document)


# -- what is known of limits ---------------------------------------------------------------------


def test_each_target_but_those_of_peers_has_an_experiment():
    whats = [t.what for g in groups() for t in g.targets]
    for limit in KNOWN:
        assert any(limit.explains(what) for what in whats), limit.title
    without = {what for what in whats if not any(k.explains(what) for k in KNOWN)}
    assert without == {
        "path MTU 1024 / iperf3 UDP",
        "veth / libfabric rxd",
        "veth / aioquic",
        "veth / SRT",
        "contexts on all cores / as many processes",
        "iCRC, GB/s",
        "import mrc, s",
        "import mrc brings scapy",
    }


def test_trials_name_rows_that_are_compared():
    known = {g.name: g for g in groups()}
    for limit in KNOWN:
        for trial in limit.tried:
            group = known[trial.group]
            assert trial.row in [m.name for m in group.methods], trial
            assert trial.against in ("", *group.against), trial


def target(what, median, met):
    measured = {"median": median, "min": median, "max": median}
    return {"what": what, "wanted": 0.8, "at_least": True, "measured": measured, "met": met}


def row(ratio, gbps=2.0):
    spread = {"median": ratio, "min": ratio, "max": ratio}
    figures = {Unit.GBPS: {"median": gbps, "min": gbps, "max": gbps}}
    return {"what": "what it asks", "figures": figures, "ratios": {"bare-gso15": spread}}


def measured(met):
    run = {"time": "2026-12-01 02:00 UTC", "commit": "abc", "rounds": 3, "seconds": 2}
    empty = {"rows": {}, "targets": [], "missing": {}, "wrong": {}, "columns": [Unit.GBPS]}
    bulk = {**empty, "run": run, "targets": [target("bulk, 16 lanes / bare GSO loop", 0.5, met)]}
    rows = {"zerocopy15": row(0.56), "headers-only": row(1.9), "uring-gso15": row(1.01)}
    kernel = {**empty, "run": run, "rows": rows, "missing": {"uring-zc15": "too old a kernel"}}
    start = {"kernel": "6.18", "cores": 2}
    return {"start": start, "groups": {"bulk": bulk, "kernel": kernel}, "interrupted": False}


def test_a_target_that_is_missed_has_its_experiments_shown():
    text = "\n".join(page.limits(measured(met=False)))
    assert "**missed**" in text
    assert "### Bulk" in text
    assert "moves 44 % less: worse" in text
    assert "moves 90 % more: better" in text
    assert "makes no clear difference" in text
    assert "too old a kernel" in text
    assert "**What would remove it**" in text


def test_a_target_that_is_met_needs_no_explanation():
    text = "\n".join(page.limits(measured(met=True)))
    assert "### Bulk" not in text
    assert "| met |" in text


def test_a_miss_that_nobody_has_looked_into_is_said_to_be_one():
    document = measured(met=True)
    document["groups"]["bulk"]["targets"].append(target("import mrc, s", 0.5, met=False))
    text = "\n".join(page.limits(document))
    assert "### No experiment yet\n\n* import mrc, s" in text


@pytest.mark.parametrize(
    ("ratio", "unit", "said"),
    [(1.5, Unit.GBPS, "moves 50 % more: better"), (0.5, Unit.P50, "takes 50 % less: better"),
     (2.0, Unit.CPU, "takes 100 % more: worse"), (1.04, Unit.GBPS, "makes no clear difference")],
)  # fmt: skip
def test_a_ratio_in_words(ratio, unit, said):
    assert page.verdict({"median": ratio, "min": ratio, "max": ratio}, unit) == said


def test_rounds_that_disagree_say_nothing():
    spread = {"median": 1.3, "min": 0.9, "max": 1.6}
    assert page.verdict(spread, Unit.GBPS) == "makes no clear difference"


# -- the figure ----------------------------------------------------------------------------------


def trains():
    def spread(value):
        return {"median": value, "min": 0.9 * value, "max": 1.1 * value}

    rows = {
        f"mrc-train-{name}": {
            "what": name,
            "figures": {
                Unit.CPU: spread(cost),
                Unit.UNEVEN: spread(30),
                Unit.ROW: spread(60),
            },
        }
        for name, cost in (("1", 12.0), ("16", 1.5), ("auto", 1.4))
    }
    return {"groups": {"trains": {"rows": rows}}}


def test_the_figure_is_drawn_from_what_was_measured(tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "img" / "trains.svg"
    draw.figure(trains(), file)
    text = file.read_text()
    assert "auto" in text
    assert "processor time" in text
    draw.figure(trains(), tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == text


def test_without_its_group_there_is_no_figure():
    pytest.importorskip("matplotlib")
    assert draw.impossible({"groups": {}}) == "trains did not run"
    assert draw.impossible(trains()) == ""
