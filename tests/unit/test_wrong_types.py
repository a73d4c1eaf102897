# SPDX-License-Identifier: BSD-2-Clause
"""Each argument of each public class and call, given something of another type.

Every case is a call that is right, made once as it stands, and then with each of its arguments in
turn replaced by values of other types. What comes is taken, or refused by an error that names the
argument: never what broke first inside, and never an error of cffi's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import mrc
from mrc import controller
from mrc._core import MemWire
from mrc.oob import ConnectionInfo, QpInfo, RemoteRegion

from .nodes import Node
from .sides import ADDR, Side

NAN = float("nan")
WRONG = [
    None, True, 7, -1, 1 << 70, 1.5, NAN, "x", "\0", b"x", object(), [], ["x"], {}, (1,), (None,),
    int, print,
]  # fmt: skip


@dataclass
class Case:
    """A call, and arguments that are right. `says`: other words for an argument in messages."""

    call: Callable[..., Any]
    given: dict[str, Any]
    says: dict[str, str] = field(default_factory=dict)


class World:
    """Objects that calls need."""

    def __init__(self) -> None:
        wire = MemWire(64, 1)
        self.side, self.peer = Side(wire, 0), Side(wire, 1)
        self.side.connect(self.peer)
        self.node = Node(mrc.Context(seed=3)).offline().online()
        self.table = self.node.table()
        self.channel = mrc.CompletionChannel(self.side.ctx)
        self.buffer = bytearray(64)

    def close(self) -> None:
        for ctx in (self.side.ctx, self.peer.ctx, self.node.ctx):
            ctx.close()


def closing(make: Callable[..., Any]) -> Callable[..., Any]:
    """So that a thousand objects are not open at a time."""

    def call(**given: Any) -> None:
        make(**given).close()

    return call


def records() -> dict[str, Case]:
    """What is only made."""
    udp = mrc.EvFormat.UDP
    qp = QpInfo(ADDR[0], qpn=2, psn=3)
    made: dict[type, dict[str, Any]] = {
        mrc.CcProfile: {f: getattr(mrc.CcProfile(), f) for f in mrc.CcProfile.__slots__},
        mrc.NsccConfig: {f: getattr(mrc.NsccConfig(), f) for f in mrc.NsccConfig.__slots__},
        mrc.ContextLimits: {
            f: getattr(mrc.ContextLimits(), f) for f in mrc.ContextLimits.__slots__
        },
        mrc.DscpClasses: {f: getattr(mrc.DscpClasses(), f) for f in mrc.DscpClasses.__slots__},
        mrc.ReceivePolicy: {
            f: getattr(mrc.ReceivePolicy(), f) for f in mrc.ReceivePolicy.__slots__
        },
        mrc.ProbeConfig: {f: getattr(mrc.ProbeConfig(), f) for f in mrc.ProbeConfig.__slots__},
        mrc.QpInitAttr: {f: getattr(mrc.QpInitAttr(), f) for f in mrc.QpInitAttr.__slots__},
        mrc.EvEntry: {"value": 5, "plane": 1, "dst": None, "srh": None, "backup": False},
        mrc.EvField: {"width": 16, "init": 0, "min": 0, "max": 0, "mask": 1},
        mrc.EvProfile: {
            "format": udp,
            "entries": (mrc.EvEntry(5),),
            "min_active": 1,
            "name": "n",
            "interfaces": (),
            "reverse": None,
            "deny": (),
            "events": mrc.EvProfile.udp(1).events,
            "rows": None,
            "loss": mrc.EvProfile.udp(1).loss,
        },
        controller.EvId: {"value": b"\1", "port": 1},
        controller.NodeLimits: {
            f: getattr(controller.NodeLimits(), f) for f in controller.NodeLimits.__slots__
        },
        ConnectionInfo: {"qp": qp, "path_mtu": 1024, "mpr": 4},
        QpInfo: {"gid": ADDR[0], "qpn": 2, "psn": 3},
        RemoteRegion: {"name": "r", "addr": 1, "length": 2, "rkey": 3},
    }
    return {cls.__name__: Case(cls, given) for cls, given in made.items()}


def objects(w: World) -> dict[str, Case]:
    """What is made for a context."""
    s, ctx = w.side, w.side.ctx
    return {
        "Context": Case(
            closing(mrc.Context),
            {
                "seed": 1,
                "limits": mrc.ContextLimits(),
                "dscp": mrc.DscpClasses(),
                "solicited_bit7": False,
                "receive": mrc.ReceivePolicy(),
                "api_version": mrc.API_VERSION,
            },
            {"api_version": "API version"},
        ),
        "Controller": Case(
            closing(mrc.Controller),
            {"ctx": ctx, "profile": mrc.CcProfile(), "path_mtu": 1024},
            {"path_mtu": "path MTU"},
        ),
        "CompletionChannel": Case(closing(mrc.CompletionChannel), {"ctx": ctx}),
        "CompletionQueue": Case(
            closing(mrc.CompletionQueue), {"ctx": ctx, "depth": 8, "channel": None}
        ),
        "ProtectionDomain": Case(closing(mrc.ProtectionDomain), {"ctx": ctx}),
        "MemoryRegion": Case(
            closing(mrc.MemoryRegion),
            {"pd": s.pd, "buffer": w.buffer, "access": mrc.Access.LOCAL_WRITE},
            {"buffer": "cannot register"},
        ),
        "MemoryRegion.alloc": Case(
            closing(mrc.MemoryRegion.alloc), {"pd": s.pd, "nbytes": 64}, {"nbytes": "bytes"}
        ),
        "QueuePair": Case(
            closing(mrc.QueuePair),
            {"pd": s.pd, "send_cq": s.cq, "recv_cq": s.cq, "init": mrc.QpInitAttr()},
        ),
        "QpHint": Case(
            closing(mrc.QpHint),
            {"ctx": ctx, "qps_per_peer": 1, "peers": 2, "incast": 3, "vendor": bytes(128)},
        ),
        "PathTable": Case(
            closing(mrc.PathTable),
            {
                "port": s.port,
                "profile": mrc.EvProfile.udp(2),
                "dst": ADDR[1],
                "dport": 4791,
                "src": ADDR[0],
                "scope_id": 0,
                "probes": mrc.ProbeConfig(),
                "seed": 1,
            },
        ),
    }


def operations(w: World) -> dict[str, Case]:
    """What is done with objects."""
    s, ctx = w.side, w.side.ctx
    profile = mrc.EvProfile.udp(2)
    return {
        "QueuePair.modify": Case(s.qp.modify, {"attr": mrc.QpAttr(mpr=4)}),
        "PathTable.deny": Case(w.table.deny, {"ev": 50001}, {"ev": "EV"}),
        "PathTable.allow": Case(w.table.allow, {"ev": 50001}, {"ev": "EV"}),
        "PathTable.replace": Case(
            w.table.replace,
            {"ev": 50001, "entry": mrc.EvEntry(50001), "deny": False},
            {"ev": "EV", "entry": "EV"},
        ),
        "PathTable.set_events": Case(w.table.set_events, {"mask": profile.events}),
        "PathTable.set_planes": Case(
            w.table.set_planes,
            {"local_up": 2, "remote_up": 2},
            {"local_up": "plane mask", "remote_up": "plane mask"},
        ),
        "EvProfile.udp": Case(
            mrc.EvProfile.udp,
            {"count": 2, "sport_base": 5, "planes": 1},
            {"count": "number of EVs", "sport_base": "source ports", "planes": "number of planes"},
        ),
        "EvProfile.load": Case(mrc.EvProfile.load, {"path": __file__}, {"path": "file name"}),
        "EvProfile.denying": Case(profile.denying, {"evs": [49152]}, {"evs": "deny"}),
        "EvProfile.towards": Case(profile.towards, {"dst": ADDR[0]}),
        "DscpClasses.parse": Case(mrc.DscpClasses.parse, {"text": "control=9"}, {"text": "CLASS"}),
        "WcBatch": Case(mrc.WcBatch, {"size": 4}),
        "SendBatch": Case(mrc.SendBatch, {"size": 4}),
        "MemWire": Case(MemWire, {"ring": 16, "seed": 1}, {"ring": "packets"}),
        "NodeController": Case(
            lambda **k: controller.NodeController(**k).close(),
            {"ctx": ctx, "ports": 1, "limits": controller.NodeLimits()},
            {"ctx": "context", "ports": "ports"},
        ),
        "CompletionQueue.poll": Case(s.cq.poll, {"batch": 4}),
        "QueuePair.post_recv": Case(s.qp.post_recv, {"wr_ids": []}, {"wr_ids": "work request id"}),
        "QueuePair.post_send": Case(s.qp.post_send, {"wrs": []}, {"wrs": "work request"}),
        "Context.turn": Case(ctx.turn, {"budget": 1}),
        "Context.disable_plane": Case(ctx.disable_plane, {"plane": 3}),
        "Context.enable_plane": Case(ctx.enable_plane, {"plane": 3}),
        "Endpoint.post": Case(
            ctx.endpoint.post,
            {
                "path": s.path.number,
                "evs": [49152],
                "timeout_ns": 5,
                "dscp": 0,
                "service_time": False,
            },
            {"evs": "EV", "dscp": "request class", "path": "EV probe", "timeout_ns": "timeout"},
        ),
        "send_and_wait": Case(
            controller.send_and_wait,
            {
                "ctx": w.node.ctx,
                "requests": [],
                "timeout_ns": 5,
                "op": controller.EndpointOp.EV_PROBE,
                "dscp": 5,
            },
            {
                "timeout_ns": "timeout",
                "op": "EndpointOp",
                "dscp": "class",
                "requests": "EndpointRequest",
            },
        ),
        "NodeController.set_port": Case(w.node.control.set_port, {"port": 1, "enabled": True}),
    }


def ports(w: World) -> dict[str, Case]:
    """A port lives as long as its context."""
    ctx = w.side.ctx
    return {
        "Port": Case(
            mrc.Port,
            {
                "ctx": ctx,
                "backend": mrc.Backend.UDP,
                "addr": "::1",
                "scope_id": 0,
                "udp_port": 47911,
                "udp_port_tries": 100,
                "gso": True,
                "gro": True,
                "sndbuf_bytes": 0,
                "rcvbuf_bytes": 0,
                "wire": None,
                "mem_end": 0,
            },
            {
                "udp_port": "UDP port",
                "udp_port_tries": "udp_port",
                "wire": "wire",
                "backend": "memory",
            },
        ),
    }


def calls(w: World) -> dict[str, Case]:
    """All of them, by name."""
    return records() | objects(w) | ports(w) | operations(w)


@pytest.fixture(scope="module")
def world():
    made = World()
    yield made
    made.close()


NAMES = sorted(calls(World()))


def outcome(case: Case, argument: str, value: object) -> tuple[type[Exception], str]:
    """What came of it. OSError: it was taken, or the system has no such address, port or file."""
    try:
        case.call(**{**case.given, argument: value})
    except Exception as exc:  # noqa: BLE001 - which one is the question
        return type(exc), str(exc)
    return OSError, ""


@pytest.mark.parametrize("name", NAMES)
def test_wrong_types(world, name):
    case = calls(world)[name]
    with contextlib.suppress(mrc.MrcProfileError):  # of a file that is no profile
        case.call(**case.given)
    for argument in case.given:
        known = {argument, argument.replace("_", " "), case.says.get(argument, argument)}
        for value in WRONG:
            what, message = outcome(case, argument, value)
            where = f"{name}({argument}={value!r}): {what.__name__}: {message}"
            assert issubclass(what, mrc.MrcError | TypeError | ValueError | OSError), where
            if issubclass(what, mrc.MrcError | TypeError | ValueError):
                assert any(word in message for word in known), where


def test_every_public_class_and_call_is_here_or_said_why_not():
    """Records that only come out, objects made by others, and enums take nothing of a caller's."""
    out = {
        "AsyncEvent", "AsyncEvents", "CcInfo", "DeviceAttr", "EvEvent", "Immediate", "PathPlanes",
        "PathStats", "PortStats", "ProbeResult", "QpStats", "WorkCompletion", "Notifications",
        "BatchResult", "EndpointResponse", "EvSlot", "NodeEvent", "ManagedCcProfile",
        "ManagedEvProfile", "ManagedFormat",
    }  # fmt: skip
    elsewhere = {  # tests/aio/test_arguments.py; and test_arguments.py, where they are used
        "Connection", "Prober", "Server", "connect", "listen", "mem_pair",
        "QpAttr", "SendWr", "query_device",
        "CcAttr", "EvAttr", "EvReplace", "EvSetState", "FormatAttr", "EndpointRequest",
    }  # fmt: skip
    here = {name.split(".")[0] for name in NAMES}
    missing = []
    for module in (mrc, controller):
        for name in module.__all__:
            thing = getattr(module, name)
            plain = not callable(thing) or (
                isinstance(thing, type)
                and (issubclass(thing, Exception) or hasattr(thing, "__members__"))
            )
            if not plain and name not in here | out | elsewhere:
                missing.append(name)
    assert missing == []
