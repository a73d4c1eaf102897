# SPDX-License-Identifier: BSD-2-Clause
"""The border: two transcriptions of its numbers, its fork guard, what importing costs."""

from __future__ import annotations

import enum
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mrc
from mrc import device, endpoint, events, types
from mrc._ffi import ffi, lib

ROOT = Path(__file__).resolve().parents[2]
FFI_FILES = ("mrc.cdef", "_ffi.c", "sim.cdef", "_sim.c")

# Python enum -> prefix of the C names.
ENUMS = [
    (types.Access, "MRC_ACCESS_"),
    (types.WrOpcode, "MRC_WR_"),
    (types.SendFlags, "MRC_SEND_"),
    (types.WcStatus, "MRC_WC_"),
    (types.WcOpcode, "MRC_WC_"),
    (types.WcFlags, "MRC_WC_"),
    (types.QpState, "MRC_QPS_"),
    (types.QpCap, "MRC_QP_CAP_"),
    (types.EvState, "MRC_EV_"),
    (types.EvReason, "MRC_EV_R_"),
    (types.TurnFlags, "MRC_TURN_"),
    (types.PortCap, "MRC_IO_CAP_"),
    (types.Backend, "MRC_IO_"),
    (types.CcKind, "MRC_CC_"),
    (types.Recovery, "MRC_RECOVERY_"),
    (types.CcState, "MRC_CCS_"),
    (events.AsyncType, "MRC_ASYNC_"),
    (device.DeviceCap, "MRC_DEV_"),
]


@pytest.mark.parametrize(("ours", "prefix"), ENUMS, ids=[e.__name__ for e, _ in ENUMS])
def test_enum_equals_its_c_twin(ours, prefix):
    for member in ours:
        if issubclass(ours, enum.IntFlag) and member.value == 0:
            continue
        assert member.value == getattr(lib, prefix + member.name), member


@pytest.mark.parametrize(
    ("ours", "prefix"),
    [(types.PortCap, "MRC_IO_CAP_"), (types.TurnFlags, "MRC_TURN_"), (types.EvReason, "MRC_EV_R_")],
)
def test_no_c_value_is_missing_here(ours, prefix):
    there = {name.removeprefix(prefix) for name in dir(lib) if name.startswith(prefix)}
    assert there == {m.name for m in ours} - ({"NONE"} if issubclass(ours, enum.IntFlag) else set())


def test_drop_reasons_have_the_names_of_c():
    assert len(types.DropReason) == lib.MRC_DROP_COUNT
    for reason in types.DropReason:
        name = ffi.string(lib.mrc_drop_name(reason)).decode()
        assert name.replace("-", "_") == reason.name.lower()


def test_limits():
    assert types.EV_MAX == lib.MRC_EV_MAX
    assert types.PLANE_MAX == lib.MRC_PLANE_MAX
    assert types.PLANES_ALL == lib.MRC_PLANES_ALL
    assert endpoint.CONTROL_CLASS == lib.MRC_EP_DSCP_CONTROL
    assert types.MPR_MAX == lib.MRC_MPR_MAX
    assert types.TRAIN_MAX == lib.MRC_TRAIN_MAX
    assert types.UDP_PORT == lib.MRC_UDP_PORT


def test_every_status_has_words():
    assert all(status.text for status in types.WcStatus)


def test_import_is_light():
    """House rule: scapy and asyncio are not paid for by those who do not use them."""
    code = "import sys, mrc; print([m for m in ('asyncio', 'scapy', 'uvloop') if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30
    )
    assert out.stdout.strip() == "[]"


def test_the_compiled_module_has_one_importer():
    """A house rule that the import contracts cannot see: the module is no Python file."""
    importers = [
        path.name
        for path in (ROOT / "mrc").rglob("*.py")
        if "_ffi import" in path.read_text() or "import _ffi" in path.read_text()
    ]
    assert importers == ["_core.py"]


def test_all_public_names_exist():
    for name in mrc.__all__:
        assert getattr(mrc, name) is not None
    assert set(mrc.__all__) <= set(dir(mrc))
    with pytest.raises(AttributeError):
        _ = mrc.no_such_name


def test_fork_guard():
    """Field report 77: a child neither uses nor closes what is its parent's."""
    with mrc.Context() as context:
        region = mrc.MemoryRegion.alloc(mrc.ProtectionDomain(context), 64)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                context.turn()
            except mrc.MrcForkError as exc:
                if "child needs a Context of its own" in str(exc):
                    context.close()
                    with mrc.Context() as own:  # and its own works
                        own.turn()
                    status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        context.turn()  # the parent's is unharmed
        region.close()


# ---- the generated binding -----------------------------------------------------------------


def test_generated_binding_is_fresh():
    command = [sys.executable, str(ROOT / "tools" / "gen_ffi.py"), "--check"]
    subprocess.run(command, check=True, timeout=60)


@pytest.fixture(params=["mrc", "sim"])
def copy(tmp_path, request):
    """A binding of a copy of the generator, with files that a test may spoil."""
    for name in ("tools/gen_ffi.py", *(f"csrc/ffi/{f}" for f in FFI_FILES)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    spec = importlib.util.spec_from_file_location("gen_copy", tmp_path / "tools" / "gen_ffi.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gen_copy"] = module
    spec.loader.exec_module(module)
    yield next(b for b in module.BINDINGS if b.cdef.stem == request.param)
    del sys.modules["gen_copy"]


def test_changed_declarations_are_noticed(copy):
    assert copy.check() is None
    copy.cdef.write_text(copy.cdef.read_text() + "\nint mrc_more(void);\n")
    assert "changed" in copy.check()


def test_edited_binding_is_noticed(copy):
    text = copy.output.read_text()
    copy.output.write_text(text + "/* edited */\n")
    same_cffi = copy.head().splitlines()[2] == text.splitlines()[2]
    expected = f"{copy.output.name} was edited by hand" if same_cffi else None
    assert copy.check() == expected


def test_missing_binding_is_noticed(copy):
    copy.output.unlink()
    assert "missing" in copy.check()
