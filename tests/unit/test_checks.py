# SPDX-License-Identifier: BSD-2-Clause
"""The checks of the C rules find what they are for."""

import shutil

import pytest

from tools import check_includes, check_purity

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


def purity(tmp_path, text):
    (tmp_path / "mrc_a.c").write_text(text)
    return check_purity.violations(tmp_path, "gcc")


@needs_gcc
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("#include <stdlib.h>\nvoid *f(void) { return malloc(1); }\n", "malloc"),
        ("int counter;\nint f(void) { return ++counter; }\n", "counter"),
        ("int f(void) { static int seen; return ++seen; }\n", "seen"),
        ("double sqrt(double);\ndouble f(double x) { return sqrt(x); }\n", "sqrt"),
    ],
)
def test_purity_names_what_leaves_the_core(tmp_path, text, named):
    found = purity(tmp_path, text)
    assert len(found) == 1
    assert "mrc_a.c" in found[0]
    assert named in found[0]


@needs_gcc
def test_purity_allows_tables_copies_and_other_core_files(tmp_path):
    (tmp_path / "mrc_b.c").write_text("int helper(int x) { return x + 1; }\n")
    text = (
        "#include <string.h>\nint helper(int);\n"
        'static const char *const names[] = {"a", "b"};\n'
        "const char *f(char *to, const char *from, int n)\n"
        "{ memcpy(to, from, 100); return names[helper(n)]; }\n"
    )
    assert purity(tmp_path, text) == []


@needs_gcc
def test_the_simulator_may_take_memory_but_reads_no_clock(tmp_path):
    (tmp_path / "fab_a.c").write_text(
        "#include <stdlib.h>\n#include <time.h>\n"
        "void *f(void) { return calloc(1, (size_t)time(NULL)); }\n"
    )
    found = check_purity.violations(tmp_path, "gcc", check_purity.SIM_ALLOWED, "the simulator")
    assert found == ["fab_a.c: uses time, which is outside the simulator"]


def includes(tmp_path, files):
    for name, text in files.items():
        path = tmp_path / "csrc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return check_includes.violations(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("core/mrc_wire.h", '#include "mrc_qp.h"\n'),
        ("core/mrc_path.c", '#include "mrc_cc.h"\n'),
        ("core/mrc_req.c", '#include "mrc_resp.h"\n'),
        ("core/mrc_engine.c", '#include "../io/mrc_io.h"\n'),
        ("core/mrc_engine.c", "#include <stdio.h>\n"),
        ("core/mrc_surprise.c", ""),
        ("io/mrc_io_udp.c", '#include "../core/mrc_engine.h"\n'),
        ("io/mrc_io_udp.c", '#include "mrc_pump.h"\n'),
        ("sim/sim_link.c", '#include "../io/mrc_clock.h"\n'),
        ("sim/sim_link.c", "#include <time.h>\n"),
        ("sim/sim_queue.c", '#include "fab.h"\n'),
        ("sim/fab_net.c", '#include "../tests/world.h"\n'),
    ],
)
def test_includes_names_the_file_that_looks_up(tmp_path, name, text):
    found = includes(tmp_path, {name: text})
    assert len(found) == 1
    assert found[0].startswith(f"csrc/{name} ")


def test_includes_allows_what_lies_below(tmp_path):
    files = {
        "core/mrc_path.h": '#include <stdint.h>\n#include "mrc_base.h"\n#include "mrc_rand.h"\n',
        "core/mrc_path_probe.c": '#include "mrc_path.h"\n',
        "core/mrc_nscc.c": '#include "mrc_cc.h"\n',
        "core/mrc_req.c": '#include "mrc_path.h"\n#include "mrc_cc.h"\n',
        "sim/fab_net.c": '#include <stdlib.h>\n#include "../core/mrc_qp.h"\n#include "fab_int.h"\n',
        "io/mrc_pump.c": '#include "../core/mrc_engine.h"\n#include "mrc_io.h"\n',
        "io/mrc_io_udp.c": '#include <sys/socket.h>\n#include "../core/mrc_types.h"\n',
    }
    assert includes(tmp_path, files) == []
