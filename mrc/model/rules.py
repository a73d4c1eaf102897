# SPDX-License-Identifier: BSD-2-Clause
"""What the specification forbids, one rule each, and how a verdict reads.

The rules are read off the text, not off an implementation. Where the text leaves a choice (which
EV, which packet next, when within what is allowed) there is no rule.
"""

from collections.abc import Callable
from dataclasses import dataclass

# By name: the section, and what is forbidden.
RULES: dict[str, tuple[str, str]] = {
    # what a requestor sends
    "psn-gap": ("B.1", "a first transmission does not have the next PSN"),
    "psn-window": ("B.2.2", "PSN beyond the window"),
    "psn-unposted": ("B.2.1", "data without a work request"),
    "msn": ("B.2.1", "MSN is not that of the message"),
    "rqmsn": ("A.5", "RQMSN is not that of the immediate"),
    "packet-size": ("A.1", "a packet carries more or less than its part of the message"),
    "opcode": ("A.3", "opcode does not fit the packet's place in the message"),
    "address": ("A.5", "RETH does not say where this part of the message goes"),
    "rtx-bit": ("B.2.3", "rtx bit does not say whether the packet left before"),
    "rtx-differs": ("B.2.3", "a retransmission differs in more than EV, timestamp and A"),
    "rtx-acked": ("B.2.5", "retransmission of what a transport ACK covers"),
    "rtx-received": ("B.5.2", "retransmission of what is known received"),
    "rtx-baseless": ("B.9", "retransmission without NACK, timer, or report since it left"),
    "rtx-same-ev": ("B.2.3", "retransmission uses the EV of the NACK although another was usable"),
    "ask-last": ("B.2.4", "last packet of a signalled work request without A"),
    "ask-idle": ("B.2.4", "requestor goes idle without A"),
    "wimm-limit": ("B.8", "more WriteIMMs in flight than agreed"),
    "timestamp": ("A.5", "TSETH missing, not agreed, or not the time of sending"),
    "ecn-data": ("A.13.5", "data that is not ECT(0)"),
    "ev-unknown": ("A.12", "the packet carries an EV that its sender does not have"),
    "ev-bad": ("D.5", "ASSUMED_BAD or DENIED EV carried data"),
    "ev-skip": ("D.6", "an EV just told to skip was used at once although its plane had others"),
    "dead": ("B.14", "data from a QP that has failed"),
    "probe-psn": ("A.4", "a reliability probe has a PSN"),
    # what completes
    "done-early": ("B.6", "work request completed before a transport ACK covered it"),
    "done-order": ("B.13", "work requests completed out of order or twice"),
    "imm-early": ("B.8", "immediate delivered before everything in front of it had arrived"),
    "imm-order": ("B.8", "immediates delivered out of order or twice"),
    # what a responder answers
    "ecn-control": ("A.13.5", "control packet is ECT"),
    "sack-psn": ("A.4", "BTH.psn of a SACK is not its cack_psn"),
    "sack-hole": ("A.7", "cack passed a hole"),
    "sack-lags": ("B.4", "cack is behind what has arrived"),
    "sack-retreat": ("B.3", "cack retreats"),
    "sack-bitmap": ("A.7", "bitmap reports a PSN that never arrived"),
    "sack-base": ("B.4", "bitmap does not begin where it should"),
    "sack-trigger": ("B.4", "ack_psn is no packet that has just arrived"),
    "sack-reflects": ("B.4", "EV, timestamp, mark or rtx are not those of the packet answered"),
    "sack-ooo": ("A.8", "ooo_count is not the number of packets above cack"),
    "sack-rcvd": ("A.8", "rcvd_bytes is not what has arrived"),
    "sack-mpr": ("B.12", "mpr is not what is offered"),
    "sack-missing": ("B.4", "no SACK in the turn of a packet that calls for one"),
    "sack-unasked": ("B.4", "SACK although nothing arrived"),
    "probe-missing": ("B.11", "reliability probe without its answer"),
    "probe-unasked": ("B.11", "answer to a reliability probe that did not arrive"),
    "ack-hole": ("B.6", "transport ACK before all predecessors arrived"),
    "ack-missing": ("B.6", "no transport ACK although cack passed a packet with A"),
    "ack-unasked": ("B.6", "transport ACK that no packet asked for"),
    "ack-msn": ("A.6", "AETH.msn is not the number of messages completed"),
    "ack-syndrome": ("A.6", "syndrome that does not exist"),
    "ack-first": ("H15", "transport ACK before the SACK of the same arrivals"),
    "nack-trimmed": ("B.7", "NACK TRIMMED of what was not trimmed so"),
    "nack-window": ("B.3", "NACK PSN_OOR_WINDOW of what is inside, or far beyond"),
    "nack-received": ("B.7", "NACK of what has arrived"),
    "nack-unasked": ("B.7", "NACK of a packet that did not arrive in any shape"),
    "nack-missing": ("B.7", "no NACK of a packet that was trimmed or outside the window"),
    "amplified": ("F.1", "more answers than packets"),
    "response-unasked": ("F.1", "endpoint response to a request that did not arrive"),
    # paths
    "ev-denied": ("D.5", "DENIED came or went without the controller"),
    "ev-healed": ("D.5", "ASSUMED_BAD ended without an answered probe"),
    "ev-condemned": ("D.5", "ASSUMED_BAD for a reason that did not occur"),
    "ev-floor": ("D.3", "fewer EVs left than ev_min_active"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Something forbidden."""

    rule: str
    now: int  # nanoseconds
    details: str

    def __str__(self) -> str:
        section, text = RULES[self.rule]
        return f"forbidden: {text} ({section}) at {self.now} ns: {self.details}"


Report = Callable[[str, int, str], None]
"""rule, time, details"""
