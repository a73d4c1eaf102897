# SPDX-License-Identifier: BSD-2-Clause
"""What a responder must not do: a story for each rule."""

from collections.abc import Callable

from mrc.model.wire import NackReason
from tests.unit.checker_story import (
    CONTROL,
    EVS,
    MTU,
    TRIMMED,
    TRIMMED_LASTHOP,
    B,
    N,
    Story,
    answering,
    one,
    sent,
)

# ---- what a responder must not do ----


def _sack(**odd: int) -> Callable[[], Story]:
    """The second packet of a message arrives before the first; its SACK has something odd."""

    def story() -> Story:
        s = Story()
        s.post(2 * MTU)
        s.data(N)
        out = s.data(N + 1)
        s.turn(B)
        s.arrives(out)
        s.sack(out, **odd)
        return s

    return story


def sack_hole() -> Story:
    s = sent(N, N + 1)
    out = s.data(N + 2, a=1)
    s.turn(B)
    s.arrives(out)
    s.sack(out, cack=N + 2, bitmap=0)
    return s


def sack_lags() -> Story:
    s = answering(sent())
    s.sack(s.checker.live[0].sender.sent[N].last, cack=N - 1, bitmap=0)
    return s


def sack_retreat() -> Story:
    s = sent()
    s.exchange(N)
    out = s.data(N + 1, a=1)
    s.turn(B)
    s.arrives(out)
    s.sack(out, cack=N - 1, bitmap=0)
    return s


def sack_base() -> Story:
    s = Story()
    s.post(70 * MTU)
    outs = [s.data(N + i) for i in range(70)]
    s.turn(B)
    s.arrives(outs[69])
    s.sack(outs[69], offset=40, bitmap=1 << 30)
    return s


def sack_missing() -> Story:
    return answering(one())


def sack_unasked() -> Story:
    s = one()
    out = s.data(N)
    s.turn(B)
    s.sack(out)
    return s


def sack_mpr() -> Story:
    s = answering(sent())
    s.sack(s.checker.live[0].sender.sent[N].last, mpr=2)
    return s


def probe_missing() -> Story:
    s = one()
    out = s.probe()
    s.turn(B)
    s.arrives(out)
    return s


def probe_unasked() -> Story:
    s = one()
    out = s.probe()
    s.turn(B)
    s.sack(out)
    return s


def ack_hole() -> Story:
    s = sent(N)
    out = s.data(N + 1, a=1)
    s.turn(B)
    s.arrives(out)
    s.sack(out)
    s.ack(N + 1, done=0)
    return s


def ack_missing() -> Story:
    s = answering(one())
    s.sack(s.checker.live[0].sender.sent[N].last)
    return s


def ack_unasked() -> Story:
    s = answering(sent())
    s.sack(s.checker.live[0].sender.sent[N].last)
    s.ack(done=0)
    return s


def ack_msn() -> Story:
    s = answering(one())
    s.sack(s.checker.live[0].sender.sent[N].last)
    s.ack(done=3)
    return s


def ack_syndrome() -> Story:
    s = answering(one())
    s.sack(s.checker.live[0].sender.sent[N].last)
    s.ack(syndrome=0x3F)
    return s


def ack_first() -> Story:
    s = answering(one())
    s.ack()
    s.sack(s.checker.live[0].sender.sent[N].last)
    return s


def ecn_control() -> Story:
    s = answering(one())
    s.sack(s.checker.live[0].sender.sent[N].last, tclass=CONTROL | 2)
    return s


def nack_trimmed() -> Story:
    s = answering(one(), tclass=TRIMMED_LASTHOP)
    s.nack(s.checker.live[0].sender.sent[N].last, NackReason.TRIMMED)
    return s


def nack_window() -> Story:
    s = answering(one())
    s.nack(s.checker.live[0].sender.sent[N].last, NackReason.PSN_OOR_WINDOW)
    return s


def nack_received() -> Story:
    s = sent()
    s.exchange(N)
    s.now += 300_000
    out = s.data(N, EVS[1], rtx=1, a=1)
    s.turn(B)
    s.arrives(out, TRIMMED)
    s.sack(out)
    s.nack(out, NackReason.TRIMMED)
    return s


def nack_unasked() -> Story:
    s = answering(one(), tclass=TRIMMED)
    s.nack(s.checker.live[0].sender.sent[N].last, NackReason.TRIMMED, N + 1)
    return s


def nack_missing() -> Story:
    return answering(one(), tclass=TRIMMED)


def amplified() -> Story:
    s = answering(one())
    for _ in range(8):
        s.sack(s.checker.live[0].sender.sent[N].last)
    return s


def response_unasked() -> Story:
    s = one()
    s.turn(B)
    s.response()
    return s


BROKEN: dict[str, Callable[[], Story]] = {
    "ecn-control": ecn_control,
    "sack-psn": _sack(psn=N),
    "sack-hole": sack_hole,
    "sack-lags": sack_lags,
    "sack-retreat": sack_retreat,
    "sack-bitmap": _sack(bitmap=0b11),
    "sack-base": sack_base,
    "sack-trigger": _sack(ack_offset=1),
    "sack-reflects": _sack(entropy=EVS[3]),
    "sack-ooo": _sack(ooo=0),
    "sack-rcvd": _sack(rcvd=7),
    "sack-mpr": sack_mpr,
    "sack-missing": sack_missing,
    "sack-unasked": sack_unasked,
    "probe-missing": probe_missing,
    "probe-unasked": probe_unasked,
    "ack-hole": ack_hole,
    "ack-missing": ack_missing,
    "ack-unasked": ack_unasked,
    "ack-msn": ack_msn,
    "ack-syndrome": ack_syndrome,
    "ack-first": ack_first,
    "nack-trimmed": nack_trimmed,
    "nack-window": nack_window,
    "nack-received": nack_received,
    "nack-unasked": nack_unasked,
    "nack-missing": nack_missing,
    "amplified": amplified,
    "response-unasked": response_unasked,
}
