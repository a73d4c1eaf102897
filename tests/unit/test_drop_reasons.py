# SPDX-License-Identifier: BSD-2-Clause
"""Each reason to drop a packet has a test that makes its counter move, and says which."""

from pathlib import Path

import pytest

from mrc import DropReason
from tools.conformance import csource

TESTS = Path(__file__).resolve().parents[2] / "csrc" / "tests"

# Reason -> a test that names it. A new reason without an entry fails here.
MOVED_BY = {
    "SHORT": "test_hostile.c: hostile__every_packet_cut_at_every_length",
    "TVER": "test_hostile.c: hostile__versions_and_opcodes_that_do_not_exist",
    "OPCODE": "test_hostile.c: hostile__versions_and_opcodes_that_do_not_exist",
    "LENGTH": "test_hostile.c: hostile__pad_that_contradicts_the_length",
    "ICRC": "test_hostile.c: hostile__any_flipped_bit_is_an_icrc_error",
    "UDP_LEN": "test_hostile.c: hostile__udp_length_beside_the_truth",
    "QPN": "test_hostile.c: hostile__queue_pairs_that_are_nobody",
    "QP_STATE": "test_hostile.c: hostile__states_that_take_no_such_packet",
    "PEER": "test_hostile.c: hostile__strangers",
    "PSN_STALE": "test_hostile.c: hostile__data_far_outside_the_window",
    "PSN_WINDOW": "test_hostile.c: hostile__data_just_outside_the_window_is_refused_and_forgotten",
    "PAYLOAD": "test_hostile.c: hostile__payload_that_opcode_or_mtu_forbid",
    "ACCESS": "test_hostile_peer.c: hostile_peer__keys_and_addresses_that_give_no_access",
    "WIMM_LIMIT": "test_hostile_peer.c: hostile_peer__more_immediates_than_agreed",
    "NO_RECV": "test_hostile_peer.c: hostile_peer__an_immediate_nobody_waits_for",
    "SACK_RANGE": "test_hostile.c: hostile__sacks_for_what_was_never_sent",
    "ACK_RANGE": "test_hostile.c: hostile__acks_and_nacks_for_what_was_never_sent",
    "NACK_RANGE": "test_hostile.c: hostile__acks_and_nacks_for_what_was_never_sent",
    "PROBE_RATE": "test_hostile.c: hostile__probes_above_the_rate",
    "EP_UNKNOWN": "test_hostile.c: hostile__queue_pairs_that_are_nobody",
    "TRIM_OFF": "test_hostile.c: hostile__trimmed_packets_for_nobody_or_from_strangers",
    "EP_STALE": "test_ep.c: ep__a_second_answer_and_one_never_asked_for_are_counted",
    "NO_BITMAP": "test_resp_flow.c: resp_flow__no_bitmap",
    "NO_BUFFER": "test_resp_flow.c: resp_flow__no_pkt_buffer",
    "PAUSED": "test_resp_flow.c: resp_flow__no_resource_while_the_application_pauses",
    "RQMSN": "test_resp_imm.c: resp_imm__numbers_must_fit_their_places",
}


def test_every_reason_is_in_the_table():
    assert set(MOVED_BY) == set(DropReason.__members__)


@pytest.mark.parametrize("reason", MOVED_BY)
def test_the_test_names_the_reason(reason):
    file, name = MOVED_BY[reason].split(": ")
    assert name in csource.tests(TESTS / file)
    assert f"MRC_DROP_{reason}" in " ".join(csource.test_text(TESTS / file, name))
