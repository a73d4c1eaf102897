# SPDX-License-Identifier: BSD-2-Clause
"""What a responder said in one turn, judged by what the turn brought (MRC A.6 to A.9, B.4, B.7)."""

from mrc.model import psn
from mrc.model.check_answer import DSCP_TRIMMED, DSCP_TRIMMED_LASTHOP, FAR, Receiver, TurnRecord
from mrc.model.trace import In, Out, there
from mrc.model.wire import CcState, NackReason, Neth, Seth, Syndrome

_MANY = 16  # packets of one turn; more may share what they call for
_BITS = 64
_DSCP_OF: dict[int, int] = {
    NackReason.TRIMMED: DSCP_TRIMMED,
    NackReason.TRIMMED_LASTHOP: DSCP_TRIMMED_LASTHOP,
}
_NAKS = (
    Syndrome.NAK_INVALID_REQUEST,
    Syndrome.NAK_REMOTE_ACCESS,
    Syndrome.NAK_REMOTE_OPERATION,
)


def judge_turn(r: Receiver, now: int) -> None:
    """Judge the turn that is over and begin another."""
    turn = r.close_turn()
    if not (turn.arrivals or turn.sacks or turn.acks or turn.nacks):
        return
    _acks(r, turn)
    if not r.open:
        return
    _sacks(r, turn)
    _nacks(r, turn)
    _amplified(r, turn, now)
    if r.sure and not r.muted:
        _missing(r, turn, now)
        if turn.arrivals <= _MANY:
            _missing_each(r, turn, now)


def _amplified(r: Receiver, turn: TurnRecord, now: int) -> None:
    answers = len(turn.sacks) + len(turn.acks) + len(turn.nacks)
    walk = (r.top - r.cack) // _BITS + 2  # SACKs that walk over a wide window, B.4
    if answers > 2 * turn.arrivals + walk and not r.muted:
        r.report("amplified", now, f"{answers} answers to {turn.arrivals} packets")


def _acks(r: Receiver, turn: TurnRecord) -> None:
    """Judge the transport ACKs (A.6, B.6)."""
    for out in turn.acks:
        aeth = there(out.packet.aeth)
        number = psn.unwrap(out.packet.bth.psn, r.cack)
        if aeth.syndrome in _NAKS:
            continue
        if aeth.syndrome != Syndrome.ACK:
            r.report("ack-syndrome", out.now, f"{aeth.syndrome:#x}")
        if number > r.cack:
            r.report("ack-hole", out.now, f"{number}, cack {r.cack}")
        if not r.open or not r.sure:
            continue
        if not turn.may_ack and not r.muted:
            r.report("ack-unasked", out.now, f"psn {number}")
        if aeth.msn != psn.wrap(r.done):
            r.report("ack-msn", out.now, f"{aeth.msn}, not {psn.wrap(r.done)}")


def _sacks(r: Receiver, turn: TurnRecord) -> None:
    """Judge the SACKs (A.7, A.8, B.4)."""
    for out in turn.sacks:
        seth = there(out.packet.seth)
        cack = psn.unwrap(seth.cack_psn, r.cack)
        if out.packet.bth.psn != seth.cack_psn:
            r.report("sack-psn", out.now, f"{out.packet.bth.psn}, cack {seth.cack_psn}")
        if cack > r.cack:
            r.report("sack-hole", out.now, f"{cack}, but {r.cack + 1} is missing")
        if cack < r.told:
            r.report("sack-retreat", out.now, f"{cack} after {r.told}")
        r.told = max(r.told, cack)
        for i in range(64):
            if seth.sack_bitmap >> i & 1 and not r.arrived(cack + seth.sack_offset + i):
                r.report("sack-bitmap", out.now, f"psn {cack + seth.sack_offset + i}")
        if seth.pr:
            _probe_answer(r, turn, out, seth)
        else:
            _reflection(r, turn, out, seth, cack + seth.ack_psn_offset)
        if (seth.mpr != 0) != r.flow.dynamic:
            r.report("sack-mpr", out.now, f"{seth.mpr}")
        if r.sure:
            _state(r, out, seth, cack)


def _state(r: Receiver, out: Out, seth: Seth, cack: int) -> None:
    state = there(out.packet.cc_state)
    if cack < r.cack:
        r.report("sack-lags", out.now, f"{cack}, not {r.cack}")
    low = high = 1
    if r.top - cack > 64:
        high = r.top - 63 - cack
    if not low <= seth.sack_offset <= high:
        r.report("sack-base", out.now, f"{seth.sack_offset} is not in {low}..{high}")
    if state.ooo_count != min(len(r.above), 0x7FFF):
        r.report("sack-ooo", out.now, f"{state.ooo_count}, not {len(r.above)}")
    units = psn.wrap(-(-r.rcvd // 256))
    if state.rcvd_bytes != units:
        r.report("sack-rcvd", out.now, f"{state.rcvd_bytes}, not {units}")
    if r.flow.dynamic and seth.mpr * 128 != r.window:
        r.report("sack-mpr", out.now, f"{seth.mpr}, not {r.window // 128}")


def _same(r: Receiver, out: Out, got: In, entropy: int) -> bool:
    """Whether EV and timestamp of an answer are those of the packet (B.4); H11 moves the latter."""
    sent = there(got.out)
    p = sent.packet
    stamp = p.tseth.tx_timestamp if p.tseth else p.peth.tx_timestamp if p.peth else 0
    said: CcState | Neth = out.packet.cc_state or there(out.packet.neth)
    return entropy == sent.ev and (r.world.service or said.tx_timestamp == stamp)


def _reflection(r: Receiver, turn: TurnRecord, out: Out, seth: Seth, number: int) -> None:
    if turn.arrivals == 0:
        if not r.muted:
            r.report("sack-unasked", out.now, f"ack_psn {number}")
        return
    about = turn.about(number)
    if r.arrived(number):  # the answer to a probe goes on in a second SACK over a wide window
        about = about + [got for got in turn.probes if _same(r, out, got, seth.entropy)]
    if not about:
        # Farther back than the field reaches, cack stands for the packet.
        if number != psn.unwrap(seth.cack_psn, number) and not r.muted:
            r.report("sack-trigger", out.now, f"ack_psn {number}")
        return
    fits = [got for got in about if _same(r, out, got, seth.entropy)]
    if seth.m == 1:
        fits = [got for got in fits if got.ce]
    if out.packet.bth.rtx:
        fits = [got for got in fits if there(got.out).packet.bth.rtx]
    if (not fits and not r.muted) or (seth.m > 1 and not r.world.skip):
        r.report("sack-reflects", out.now, f"psn {number}, EV {seth.entropy:08x}, m {seth.m}")


def _probe_answer(r: Receiver, turn: TurnRecord, out: Out, seth: Seth) -> None:
    fits = [
        got
        for got in turn.probes
        if there(there(got.out).packet.peth).probe_id == seth.probe_id
        and _same(r, out, got, seth.entropy)
        and (got.ce or seth.m != 1)
    ]
    if not fits and not r.muted:
        r.report("probe-unasked", out.now, f"id {seth.probe_id}")


def _nacks(r: Receiver, turn: TurnRecord) -> None:
    """Judge the NACKs (B.3, B.7)."""
    for out in turn.nacks:
        neth = there(out.packet.neth)
        number = psn.unwrap(neth.nack_psn, r.cack)
        about = turn.about(number)
        if r.muted:
            continue
        if not any(_same(r, out, got, neth.entropy) for got in about):
            r.report("nack-unasked", out.now, f"psn {number}")
            continue
        if number <= r.told or (r.sure and r.arrived(number) and number not in turn.accepted):
            r.report("nack-received", out.now, f"psn {number}")
        if neth.nack_reason in _DSCP_OF and not any(
            got.dscp == _DSCP_OF[neth.nack_reason] for got in turn.trimmed.get(number, [])
        ):
            r.report("nack-trimmed", out.now, f"psn {number}, reason {neth.nack_reason}")
        beyond = number - turn.cack - r.window
        if neth.nack_reason == NackReason.PSN_OOR_WINDOW and r.sure and not 0 < beyond < FAR:
            r.report("nack-window", out.now, f"psn {number}, {beyond} beyond the window")


def _missing(r: Receiver, turn: TurnRecord, now: int) -> None:
    """Judge what a turn should have brought and did not."""
    said = [out.packet.seth for out in turn.sacks if out.packet.seth]
    plain = [seth for seth in said if not seth.pr]
    if turn.sack and not plain:
        r.report("sack-missing", now, turn.sack)
    if turn.wants_ack and not turn.acks:
        r.report("ack-missing", now, f"cack {r.cack}")
    if turn.acks and plain and turn.acks[0].id < min(o.id for o in turn.sacks):
        r.report("ack-first", now, f"cack {r.cack}")


def _missing_each(r: Receiver, turn: TurnRecord, now: int) -> None:
    """The same, where each packet has its answer."""
    said = [out.packet.seth for out in turn.sacks if out.packet.seth]
    if turn.marked and not any(seth.m for seth in said):
        r.report("sack-missing", now, "a marked packet, and no m")
    if turn.echoed and not any(o.packet.bth.rtx for o in turn.sacks):
        r.report("sack-missing", now, "a retransmission, and no rtx")
    ids = {seth.probe_id for seth in said if seth.pr}
    for got in turn.probes:
        number = there(there(got.out).packet.peth).probe_id
        if number not in ids:
            r.report("probe-missing", now, f"id {number}")
    refused = {psn.unwrap(o.packet.neth.nack_psn, r.cack) for o in turn.nacks if o.packet.neth}
    for number in turn.wants_nack - refused:
        if not r.arrived(number):
            r.report("nack-missing", now, f"psn {number}")
