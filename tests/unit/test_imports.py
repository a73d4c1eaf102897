# SPDX-License-Identifier: BSD-2-Clause
"""What an import brings with it. Not timed: the modules that cost something are named."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mrc

# With all that these import in turn: what a transport has no use for before it is asked for it.
HEAVY = {
    "argparse",
    "asyncio",
    "concurrent.futures",
    "ctypes",
    "email",
    "hashlib",
    "http",
    "json",
    "logging",
    "multiprocessing",
    "pathlib",
    "pyroute2",
    "random",
    "scapy",
    "secrets",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "tomllib",
    "urllib",
    "uvloop",
}
RECORDS = {"dataclasses", "inspect", "mrc._ffi", "mrc.types"}


def loaded(program: str) -> set[str]:
    """Modules that this program loads beside those of the interpreter."""
    code = f"import sys; before = set(sys.modules)\n{program}\nprint(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    return set(done.stdout.split())


def test_import_mrc_brings_names_and_nothing_else():
    assert loaded("import mrc") & (HEAVY | RECORDS) == set()


VERBS = """
import mrc
with mrc.Context(pump={pump!r}) as context:
    pd = mrc.ProtectionDomain(context)
    cq = mrc.CompletionQueue(context, 16)
    mrc.MemoryRegion(pd, bytearray(10))
    mrc.QueuePair(pd, cq, cq)
"""


@pytest.mark.parametrize("pump", ["loop", "thread"])
def test_verbs_need_no_event_loop(pump):
    assert loaded(VERBS.format(pump=pump)) & HEAVY == set()


def test_connections_need_no_scapy_before_they_have_srv6_paths():
    assert "scapy" not in loaded("import mrc, asyncio; mrc.connect; mrc.listen; mrc.mem_pair")


def test_the_command_reads_its_arguments_before_it_loads_a_transport():
    program = "from mrc.cli.options import parse_send; parse_send(['host', '-n', '1'])"
    assert loaded(program) & {"asyncio", "scapy", "ssl", "uvloop", "mrc._ffi"} == set()


def test_every_public_name_is_found_where_the_table_says():
    assert sorted(mrc._MODULE_OF) == sorted(mrc.__all__)
    for name in mrc.__all__:
        assert getattr(mrc, name) is vars(mrc)[name]
    assert mrc.types.EV_MAX == 4096  # a module of the package, as if it had been imported
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mrc.nothing
