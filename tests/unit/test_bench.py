# SPDX-License-Identifier: BSD-2-Clause
"""The arithmetic of the bench: medians, ratios within a round, and what did not run by name."""

import json

from tools.bench.methods import Cores, Method, Sample
from tools.bench.report import document, table


def method(name, ours, missing=""):
    return Method(name, f"what {name} is", ours, lambda link, cores, seconds: Sample(0), missing)


METHODS = [method("mrc", ours=True), method("bare", ours=False), method("tcp", False, "not there")]


def rounds(*pairs):
    return [{"mrc": Sample(a * 1e9), "bare": Sample(b * 1e9, 0.25)} for a, b in pairs]


def test_a_ratio_is_taken_within_a_round():
    # The machine halves its speed in the second round: both do, and the ratio does not move.
    doc = document(rounds((8, 10), (4, 5), (8, 10)), METHODS, {}, {})
    assert doc["end"]["ratios"] == {"mrc/bare": {"median": 0.8, "min": 0.8, "max": 0.8}}
    assert doc["end"]["methods"]["mrc"]["gbps"] == {"median": 8.0, "min": 4.0, "max": 8.0}


def test_what_did_not_run_is_named_and_has_no_row():
    doc = document(rounds((8, 10)), METHODS, {"mrc": "peer gone"}, {})
    assert doc["not_run"] == {"tcp": "not there", "mrc": "peer gone"}
    assert "tcp" not in doc["end"]["methods"]
    assert "not run: tcp: not there" in table(doc)


def test_a_method_that_failed_later_has_no_median():
    both = rounds((8, 10), (8, 10))
    del both[1]["mrc"]
    doc = document(both, METHODS, {"mrc": "peer gone"}, {})
    assert set(doc["end"]["methods"]) == {"bare"}
    assert doc["end"]["ratios"] == {}


def test_a_peer_that_moved_nothing_does_not_divide_by_zero():
    doc = document(rounds((8, 0)), METHODS, {}, {"cores": Cores(None, None).sender})
    assert json.loads(json.dumps(doc, allow_nan=False)) == doc
    assert table(doc)
