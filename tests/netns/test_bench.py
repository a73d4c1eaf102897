# SPDX-License-Identifier: BSD-2-Clause
"""The bench runs, and says what it measured. How fast is nobody's business here."""

import json
import subprocess
import sys

import pytest

from tools.bench.methods import BARE, ROOT

pytestmark = pytest.mark.netns


@pytest.mark.parametrize("link", ["veth", "fabric"])
def test_a_short_run_gives_rows_and_ratios(netns, tmp_path, link):
    assert BARE.exists(), "make build/bench/bare"
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "tools.bench", "--quick", "--json", str(out)]
    command += ["--only", "mrc", "--only", "bare-single", *["--fabric"] * (link == "fabric")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    doc = json.loads(out.read_text())
    assert doc["start"]["link"] == link
    assert doc["not_run"] == {}
    assert set(doc["end"]["methods"]) == {"mrc", "bare-single"}
    assert doc["end"]["ratios"]["mrc/bare-single"]["median"] > 0
