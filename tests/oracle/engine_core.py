# SPDX-License-Identifier: BSD-2-Clause
"""A C engine with one connected queue pair, behind Python calls; time is an argument.

Packets come and go as the model's records: what the engine emits is decoded by the model's codec,
its iCRC checked by the model's; what it is given is encoded by them.
"""

from dataclasses import dataclass
from typing import Any

from mrc.model import ip, wire
from mrc.model.ends import Completion, Drop, Ends, Region, Status
from mrc.model.path import State
from tests.oracle import unit as unit_module

NEVER = (1 << 64) - 1
PD = 7
DSCP_DATA, DSCP_RETX, DSCP_CONTROL, DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP = 4, 8, 46, 12, 16
ECT0, CE = 2, 3
BURST = 64
NAMES = {name.lower(): name for name in Drop.__members__}


@dataclass(frozen=True, slots=True)
class Wired:
    """A packet on the wire: what the headers above BTH say, and the bytes below."""

    packet: wire.Packet
    ev: int
    tclass: int

    @property
    def transport(self) -> bytes:
        """BTH to pad."""
        return wire.encode(self.packet)

    @property
    def nominal(self) -> int:
        """UDP length + 40 (E.1)."""
        return len(self.transport) + 4 + 8 + 40


@dataclass(frozen=True, slots=True)
class Options:
    """What an engine and its queue pair are made with; byte counts, times in nanoseconds."""

    side: int  # 0 or 1: addresses
    sq_psn: int = 0
    rq_psn: int = 0
    mtu: int = 256
    mpr: int = 1
    mpr_max: int = 4
    max_wimm: int = 4
    max_wimm_dest: int = 4
    timeout: int = 8
    linear_cnt: int = 3
    exp_cnt: int = 5
    sack_threshold: int = 16384
    window: int = 0  # fixed congestion window; 0: none
    evs: int = 4
    planes: int = 2
    min_active: int = 1
    retx_class: bool = True
    cap: int = 0
    depth: int = 16
    train_max: int = 1
    sq_depth: int = 64
    ooo_max: int = 0
    imm_max: int = 0
    penalty: int = 0xFF  # never any
    timestamps: bool = False


class CoreEngine:
    """One engine, one queue pair."""

    def __init__(self, options: Options, now: int) -> None:
        unit = unit_module.module()
        self.ffi, self.lib, self.o, self.now = unit.ffi, unit.lib, options, now
        self.keep: list[Any] = []
        self.evs = [0x10000 * (i % 3) + 0xC000 + i for i in range(options.evs)]
        cfg = {"seed": 1, "qp_max": 2, "mr_max": 8, "cq_max": 2, "path_max": 1, "cc_max": 1}
        cfg |= {"dscp_data": DSCP_DATA, "dscp_retx": DSCP_RETX if options.retx_class else DSCP_DATA}
        cfg |= {"dscp_control": DSCP_CONTROL, "dscp_trimmed": DSCP_TRIMMED}
        cfg |= {"dscp_trimmed_lasthop": DSCP_TRIMMED_LASTHOP}
        cfg |= {"ooo_max": options.ooo_max, "imm_max": options.imm_max}
        c = self.ffi.new("struct mrc_engine_cfg *", cfg)
        self.e = self.lib.mrc_engine_init(self._block(self.lib.mrc_engine_size(c)), c, now)
        assert self.e != self.ffi.NULL
        for _ in range(2):  # send, receive
            assert self.lib.mrc_cq_create(self.e, self._block(self.lib.mrc_cq_size(512)), 512) >= 0
        self._paths()
        cc = {"kind": self.lib.MRC_CC_FIXED if options.window else self.lib.MRC_CC_NONE}
        cc |= {"max_cwnd_bytes": options.window, "mtu_bytes": options.mtu}
        self.cc = self.ffi.new("struct mrc_cc *")
        assert self.lib.mrc_cc_init(self.cc, self.ffi.new("struct mrc_cc_cfg *", cc), now) == 0
        assert self.lib.mrc_cc_attach(self.e, self.cc) == 0
        init = {"pd": PD, "send_cq": 0, "recv_cq": 1, "sq_depth": options.sq_depth}
        init |= {"rq_depth": options.depth, "mpr_max": options.mpr_max, "ev_max": options.evs}
        init |= {"max_wimm_dest": max(1, options.max_wimm_dest)}
        i = self.ffi.new("struct mrc_qp_init *", init)
        self.qpn = self.lib.mrc_qp_create(self.e, self._block(self.lib.mrc_qp_size(i)), i)
        assert self.qpn > 2
        self.tx_room = self.ffi.new("struct mrc_tx_pkt[]", BURST)
        self.drops = self._drops()

    def _block(self, size: int) -> Any:
        assert size > 0
        self.keep.append(self.ffi.new("uint64_t[]", size // 8 + 1))
        return self.keep[-1]

    def _paths(self) -> None:
        o = self.o
        cfg = {"count": o.evs, "min_active": o.min_active, "event_ring": 256, "seed": 3}
        c = self.ffi.new("struct mrc_path_cfg *", cfg)
        each = [{"ev": ev, "plane": 1 + i % o.planes, "lane": i} for i, ev in enumerate(self.evs)]
        entries = self.ffi.new("struct mrc_path_entry_cfg[]", each)
        room = self._block(self.lib.mrc_path_size(c))
        self.table = self.lib.mrc_path_init(room, c, entries, self.now)
        assert self.lib.mrc_path_attach(self.e, self.table) == 0

    @staticmethod
    def address(side: int) -> bytes:
        """The inner address of a side."""
        return b"\xfd" + bytes(14) + bytes([1 + side])

    def connect(self, peer: int) -> None:
        """RESET to RTS (C.3)."""
        o, lib = self.o, self.lib
        attr: dict[str, Any] = {
            "access": 3,
            "dest_qpn": peer,
            "path_mtu": o.mtu,
            "rq_psn": o.rq_psn,
        }
        attr |= {"dport": ip.UDP_PORT}
        attr |= {"sq_psn": o.sq_psn, "path": 0, "cc": 0, "mpr": o.mpr, "mpr_dest": o.mpr}
        attr |= {"max_wimm": o.max_wimm, "max_wimm_dest": o.max_wimm_dest, "timeout": o.timeout}
        attr |= {"linear_cnt": o.linear_cnt, "exp_cnt": o.exp_cnt, "cap": o.cap}
        attr |= {"sack_threshold": o.sack_threshold, "train_max": o.train_max}
        attr |= {"rx_penalty": o.penalty, "timestamps": o.timestamps}
        attr |= {"src": list(self.address(o.side)), "dst": list(self.address(1 - o.side))}
        steps = {
            lib.MRC_QPS_INIT: lib.MRC_QP_ACCESS | lib.MRC_QP_CAP,
            lib.MRC_QPS_RTR: lib.MRC_QP_AV | lib.MRC_QP_RQ_PSN | lib.MRC_QP_PATH
            | lib.MRC_QP_MPR_DEST | lib.MRC_QP_WIMM_DEST | lib.MRC_QP_SACK | lib.MRC_QP_RX_PENALTY,
            lib.MRC_QPS_RTS: lib.MRC_QP_SQ_PSN | lib.MRC_QP_CC | lib.MRC_QP_MPR | lib.MRC_QP_WIMM
            | lib.MRC_QP_TIMEOUT | lib.MRC_QP_RETRY | lib.MRC_QP_TRAIN | lib.MRC_QP_TIMESTAMPS,
        }  # fmt: skip
        for state, mask in steps.items():
            a = self.ffi.new("struct mrc_qp_attr *", attr | {"state": state})
            code = lib.mrc_qp_modify(self.e, self.qpn, a, mask | lib.MRC_QP_STATE, self.now)
            assert code == 0, (state, code)
        self.peer = peer

    @property
    def ends(self) -> Ends:
        """As the model sees them."""
        return Ends(self.qpn, self.peer, self.o.mtu)

    def pause(self, *, paused: bool) -> None:
        """The application takes nothing for now, or goes on."""
        self.lib.mrc_engine_rx_pause(self.e, paused)

    def register(self, size: int, *, writable: bool = True, pd: int = PD) -> Region:
        """Register memory; the record holds a copy of its first content."""
        room = self.ffi.new("uint8_t[]", size)
        self.keep.append(room)
        key, access = self.ffi.new("uint32_t *"), 3 if writable else 1
        salt = 0x9E3779B1 * len(self.keep) % (1 << 32)
        assert self.lib.mrc_mr_register(self.e, pd, room, size, access, salt, key) == 0
        start = int(self.ffi.cast("uintptr_t", room))
        return Region(key[0], start, bytearray(size), writable=writable and pd == PD)

    def content(self, region: Region) -> bytes:
        """Return what the core has there now."""
        size = len(region.data)
        return bytes(self.ffi.buffer(self.ffi.cast("uint8_t *", region.start), size))

    def fill(self, region: Region, data: bytes) -> None:
        """Set the content, here and in the record."""
        region.data[:] = data
        self.ffi.memmove(self.ffi.cast("uint8_t *", region.start), data, len(data))

    # ---- the doors -----------------------------------------------------------------------------

    def rx(
        self, w: Wired, *, keep: int | None = None, spoil: bool = False, stranger: bool = False
    ) -> frozenset[str]:
        """Give the engine a packet; return the names of the drops it counted.

        keep: a switch left that many bytes from BTH on. spoil: the iCRC is wrong.
        """
        body = w.transport
        src = self.address(7 if stranger else 1 - self.o.side)
        dst = self.address(self.o.side)
        length = len(body) + 12
        header = ip.Ipv6(src=int.from_bytes(src, "big"), dst=int.from_bytes(dst, "big"))
        header = ip.Ipv6(payload_length=length, src=header.src, dst=header.dst)
        udp = ip.Udp(sport=w.ev % (1 << 16), length=length)
        data = body + ip.icrc(header, udp, body)
        data = bytes([data[0] ^ spoil]) + data[1:] if spoil else data
        data = data[:keep]
        room = self.ffi.from_buffer(data)
        fields = {"bytes": room, "len": len(data), "udp_len": length, "sport": udp.sport}
        fields |= {"dport": udp.dport, "tclass": w.tclass, "flow_label": w.ev >> 16}
        p = self.ffi.new("struct mrc_rx_pkt *", fields | {"src": list(src), "dst": list(dst)})
        self.lib.mrc_engine_rx(self.e, p, 1, self.now)
        before, self.drops = self.drops, self._drops()
        return frozenset(n for n, count in self.drops.items() if count != before[n])

    def tick(self, now: int) -> None:
        """Let time pass."""
        assert now >= self.now
        self.now = now
        self.lib.mrc_engine_tick(self.e, now)
        assert self.deadline > now, "a deadline in the past after a tick"

    @property
    def deadline(self) -> int:
        """When tick is needed next."""
        return int(self.lib.mrc_engine_deadline(self.e))

    def tx_one(self) -> Wired | None:
        """Take one packet out."""
        count = self.lib.mrc_engine_tx(self.e, self.tx_room, 1, self.now)
        return self._wired(self.tx_room[0]) if count else None

    def _wired(self, t: Any) -> Wired:
        payload = bytes(self.ffi.buffer(t.payload, t.payload_len)) if t.payload_len else b""
        head = bytes(self.ffi.buffer(t.hdr, t.hdr_len)) + payload
        data = head + bytes(self.ffi.buffer(t.tail, t.tail_len))
        src, dst = self.address(self.o.side), self.address(1 - self.o.side)
        length = len(data) + 8
        addresses = {"src": int.from_bytes(src, "big"), "dst": int.from_bytes(dst, "big")}
        header = ip.Ipv6(payload_length=length, **addresses)
        udp = ip.Udp(sport=t.ev % (1 << 16), length=length)
        assert ip.icrc(header, udp, data[:-4]) == data[-4:], "wrong iCRC"
        packet = wire.decode(data)
        assert wire.encode(packet) == data[:-4], "reserved bits or pad are not zero"
        assert self.evs[t.lane] == t.ev, "lane and EV disagree"
        return Wired(packet, t.ev, t.tclass)

    def _drops(self) -> dict[str, int]:
        count = self.lib.MRC_DROP_COUNT
        name = self.lib.mrc_drop_name
        return {
            self.ffi.string(name(d)).decode(): self.lib.mrc_engine_drops(self.e, d)
            for d in range(count)
        }

    # ---- the application -----------------------------------------------------------------------

    def post_recv(self, wr_id: int) -> bool:
        """Post a receive; False: no room."""
        ids = self.ffi.new("uint64_t[]", [wr_id])
        return bool(self.lib.mrc_qp_post_recv(self.e, self.qpn, ids, 1) == 1)

    def post_send(self, **fields: int) -> int:
        """Post a send; what the engine returned."""
        wr = self.ffi.new("struct mrc_send_wr *", fields)
        return int(self.lib.mrc_qp_post_send(self.e, self.qpn, wr, 1))

    def poll(self, *, recv: bool) -> list[Any]:
        """Return the completions of one queue as records."""
        room = self.ffi.new("struct mrc_wc[]", 512)
        count = self.lib.mrc_cq_poll(self.e, int(recv), room, 512)
        assert count >= 0
        return [self._completion(room[i], recv=recv) for i in range(count)]

    def _completion(self, wc: Any, *, recv: bool) -> Completion:
        status = next(s for s in Status if getattr(self.lib, f"MRC_WC_{s.name}") == wc.status)
        assert wc.qpn == self.qpn
        if not recv or status is not Status.SUCCESS:
            return Completion(wc.wr_id, status, recv=recv)
        assert wc.opcode == self.lib.MRC_WC_RECV_RDMA_WITH_IMM
        assert wc.flags & self.lib.MRC_WC_WITH_IMM
        return Completion(
            wc.wr_id,
            status,
            recv=True,
            byte_len=frozenset({wc.byte_len}),
            imm=wc.imm,
            solicited=bool(wc.flags & self.lib.MRC_WC_SOLICITED),
        )

    def stats(self) -> Any:
        """Return the queue pair's counters."""
        s = self.ffi.new("struct mrc_qp_stats *")
        assert self.lib.mrc_qp_stats(self.e, self.qpn, s) == 0
        return s

    @property
    def failed(self) -> bool:
        """Whether the queue pair is in the error state."""
        return bool(self.stats().state == self.lib.MRC_QPS_ERR)

    def ev_states(self) -> dict[int, State]:
        """Return the state of each EV."""
        numbers = {getattr(self.lib, f"MRC_EV_{s.name}"): s for s in State}
        return {
            ev: numbers[self.lib.mrc_path_state(self.table, i)] for i, ev in enumerate(self.evs)
        }


def model_drops(names: frozenset[str]) -> frozenset[Drop]:
    """Return the model's names of drops; KeyError for one it does not know."""
    return frozenset(Drop[NAMES[name]] for name in names)


def same_completions(core: list[Completion], model: list[Completion]) -> bool:
    """Compare; the model may leave byte_len open."""

    def strip(c: Completion) -> tuple[object, ...]:
        return c.wr_id, c.status, c.recv, c.imm, c.solicited

    return [*map(strip, core)] == [*map(strip, model)] and all(
        c.byte_len <= m.byte_len for c, m in zip(core, model, strict=True)
    )
