# SPDX-License-Identifier: BSD-2-Clause
"""What a requestor and the paths it chooses must not do: a story for each rule."""

from collections.abc import Callable

from mrc.model.wire import NackReason
from tests.unit.checker_story import EVS, MTU, TRIMMED_LASTHOP, A, B, N, Story, answering, one, sent

# ---- what a requestor must not do ----


def psn_gap() -> Story:
    return sent(N, N + 2)


def psn_window() -> Story:
    s = Story()
    s.post(300 * MTU)
    for i in range(257):
        s.data(N + i, a=1)
    return s


def psn_unposted() -> Story:
    return sent(N, N + 1, N + 2, N + 3, N + 4)


def msn() -> Story:
    s = one()
    s.data(N, msn=2)
    return s


def rqmsn() -> Story:
    s = one(imm=True)
    s.data(N, rqmsn=2)
    return s


def packet_size() -> Story:
    s = one()
    s.data(N, payload_len=MTU - 4)
    return s


def opcode() -> Story:
    s = Story()
    s.post(2 * MTU)
    s.data(N, opcode=0xC7)
    return s


def address() -> Story:
    s = one()
    s.data(N, va=1)
    return s


def rtx_bit() -> Story:
    s = one()
    s.data(N, rtx=1)
    return s


def rtx_differs() -> Story:
    s = one()
    s.data(N)
    s.now += 300_000
    s.data(N, EVS[1], rtx=1, digest=2)
    return s


def rtx_acked() -> Story:
    s = one()
    s.exchange(N)
    s.data(N, rtx=1)
    return s


def rtx_received() -> Story:
    s = Story()
    s.post(2 * MTU)
    s.exchange(N)
    s.data(N, rtx=1)
    return s


def rtx_baseless() -> Story:
    s = one()
    s.data(N)
    s.data(N, EVS[1], rtx=1)
    return s


def rtx_same_ev() -> Story:
    s = answering(one(), tclass=TRIMMED_LASTHOP)
    refused = s.nack(s.checker.live[0].sender.sent[N].last, NackReason.TRIMMED_LASTHOP)
    s.turn(A)
    s.arrives(refused)
    s.data(N, rtx=1)
    return s


def ask_last() -> Story:
    s = one()
    s.post()
    s.data(N, a=0)
    return s


def ask_idle() -> Story:
    s = one(signaled=False)
    s.data(N, a=0)
    return s


def wimm_limit() -> Story:
    s = Story()
    for i in range(3):
        s.post(imm=True)
        s.data(N + i)
    return s


def timestamp() -> Story:
    s = Story(flow={"tseth": True})
    s.post()
    s.data(N, stamp=1)
    return s


def ecn_data() -> Story:
    s = one()
    s.data(N, tclass=0)
    return s


def ev_unknown() -> Story:
    s = one()
    s.data(N, 0x00030005)
    return s


def ev_bad() -> Story:
    s = sent(N)
    s.event(0, 2, 5)
    s.data(N + 1)
    return s


def ev_skip() -> Story:
    s = sent()
    out = s.data(N)
    s.turn(B)
    s.arrives(out, 3)
    marked = s.sack(out, m=1)
    s.turn(A)
    s.arrives(marked)
    s.data(N + 1)
    return s


def dead() -> Story:
    s = sent(N)
    s.done(0, status=3)
    s.data(N + 1)
    return s


def probe_psn() -> Story:
    s = one()
    s.probe(at=5)
    return s


def done_early() -> Story:
    s = one()
    s.data(N)
    s.done(0)
    return s


def done_order() -> Story:
    s = one()
    s.exchange(N)
    s.done(0)
    s.done(0)
    return s


def imm_early() -> Story:
    s = one(imm=True)
    s.data(N)
    s.receive(0)
    return s


def imm_order() -> Story:
    s = one(imm=True)
    s.exchange(N)
    s.receive(0)
    s.receive(0)
    return s


# ---- paths ----


def ev_denied() -> Story:
    s = sent(N)
    s.event(0, 3, 5)
    return s


def ev_healed() -> Story:
    s = sent(N)
    s.event(0, 2, 5)
    s.event(2, 0, 6)
    return s


def ev_condemned() -> Story:
    s = one()
    s.event(0, 2, 4)
    return s


def ev_floor() -> Story:
    s = Story(world={"min_active": 4})
    s.post()
    s.data(N)
    s.event(0, 2, 5)
    return s


BROKEN: dict[str, Callable[[], Story]] = {
    "psn-gap": psn_gap,
    "psn-window": psn_window,
    "psn-unposted": psn_unposted,
    "msn": msn,
    "rqmsn": rqmsn,
    "packet-size": packet_size,
    "opcode": opcode,
    "address": address,
    "rtx-bit": rtx_bit,
    "rtx-differs": rtx_differs,
    "rtx-acked": rtx_acked,
    "rtx-received": rtx_received,
    "rtx-baseless": rtx_baseless,
    "rtx-same-ev": rtx_same_ev,
    "ask-last": ask_last,
    "ask-idle": ask_idle,
    "wimm-limit": wimm_limit,
    "timestamp": timestamp,
    "ecn-data": ecn_data,
    "ev-unknown": ev_unknown,
    "ev-bad": ev_bad,
    "ev-skip": ev_skip,
    "dead": dead,
    "probe-psn": probe_psn,
    "done-early": done_early,
    "done-order": done_order,
    "imm-early": imm_early,
    "imm-order": imm_order,
    "ev-denied": ev_denied,
    "ev-healed": ev_healed,
    "ev-condemned": ev_condemned,
    "ev-floor": ev_floor,
}
