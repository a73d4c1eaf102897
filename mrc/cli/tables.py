# SPDX-License-Identifier: BSD-2-Clause
"""Single lines and small tables of the text report, each a function of one report record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from mrc.cli.ports import RCVBUF_WANTED, granted_less
from mrc.units import format_bytes, format_rate

_PATH_ROWS_MAX = 64
SWEEP_HEAD = f"{'#bytes':>10} {'#messages':>11} {'BW average':>17} {'MsgRate[/s]':>13} {'Retr':>7}"
SWEEP_LATENCY_HEAD = (
    f"{'#bytes':>10} {'#messages':>11} {'t_min[usec]':>12} {'t_p50[usec]':>12} "
    f"{'t_avg[usec]':>12} {'99%[usec]':>12} {'99.9%[usec]':>12} "
    f"{'t_max[usec]':>12}"
)
_STATE_WORDS = {"GOOD": "good", "SKIP": "skipped", "ASSUMED_BAD": "ASSUMED BAD", "DENIED": "DENIED"}


def connection(connected: dict[str, Any]) -> str:
    """`[  1] local A port B (QP 0x12) connected to C port D (QP 0x13), 16 paths`."""
    c = connected
    return (
        f"[{c['socket']:3}] local {c['local_host']} port {c['local_port']} "
        f"(QP {c['local_qpn']:#x}) connected to {c['remote_host']} port {c['remote_port']} "
        f"(QP {c['remote_qpn']:#x}), {c['paths']} paths, {c['backend']}, MTU {c['mtu']}"
    )


def plan(test: dict[str, Any]) -> str:
    """What will be done, in one line."""
    kind = {"bulk": "writes", "latency": "ping-pong of writes", "file": "files in chunks"}
    words = [f"{kind[test['kind']]} of {format_bytes(test['blksize'])}"]
    if test.get("sweep"):
        low, high = test["sweep"]
        words = [f"{kind[test['kind']]} of {format_bytes(low)} to {format_bytes(high)}"]
    if test["num_streams"] > 1:
        words.append(f"{test['num_streams']} connections")
    if test["bidir"]:
        words.append("both directions")
    if test["kind"] != "latency":  # one message at a time, whatever the ring holds
        words.append(f"depth {test['depth']}")
    if "cc" in test:
        words.append(f"congestion control {test['cc']}")
    words.append("verified" if test["verify"] else "not verified")
    words.append(f"seed {test['seed']}")
    return ", ".join(words)


_SENDING = f"{'Retr':>7}  {'Cwnd':>12}  {'Paths':7}"
_RECEIVING = f"{'OOO':>7}  {'Dup':>6}"


def interval_head(sends: bool, receives: bool) -> str:
    """Column titles for what this end does; where it does both, the rows say TX or RX."""
    first = f"{'Dir':5}{'Interval':17}" if sends and receives else f" {'Interval':21}"
    columns = _SENDING * sends + " " * (sends and receives) + _RECEIVING * receives
    return f"[ ID]{first} {'Transfer':>13} {'Bitrate':>16} {columns}".rstrip()


def interval_line(label: str, flow: dict[str, Any], both: bool) -> str:
    """One line below interval_head; `both`: this end sends and receives."""
    role = ("TX" if flow["sender"] else "RX") if both else ""
    period = f"{flow['start']:7.2f}-{flow['end']:<7.2f} sec"
    line = (
        f"[{label}]{role:2}{period:20} {format_bytes(flow['bytes']):>13} "
        f"{format_rate(flow['bits_per_second']):>16}"
    )
    if flow["sender"]:
        window = format_bytes(flow["snd_cwnd"]) if flow.get("snd_cwnd") else "-"
        paths = f"{flow['paths_up']}/{flow['paths_total']}"
        return f"{line} {flow['retransmits']:7}  {window:>12}  {paths}"
    skip = " " * (len(_SENDING) + 1) if both else ""
    return f"{line} {skip}{flow['out_of_order']:7}  {flow['duplicates']:6}"


def ev_name(ev: int) -> str:
    """A plain source port in decimal, as netstat shows it; a wider value in hexadecimal."""
    return str(ev) if ev <= 0xFFFF else f"{ev:#010x}"


def event_line(event: dict[str, Any]) -> str:
    """`3.214 s  EV 49157 plane 2: good -> ASSUMED BAD (loss)`."""
    return (
        f"      {event['t']:.3f} s  EV {ev_name(event['ev'])} plane {event['plane']}: "
        f"{_STATE_WORDS[event['from']]} -> {_STATE_WORDS[event['to']]} ({event['reason']})"
    )


def fault_line(fault: dict[str, Any]) -> str:
    """`3.001 s  fail p1.t1.2 begins`."""
    return f"      {fault['t']:.3f} s  {fault['what']} {'begins' if fault['on'] else 'is over'}"


def idle_fault_line(idle: dict[str, Any]) -> str:
    """A fault or a heal that was asked for and came to nothing."""
    why = {
        "run_over": "never came, the run was over before",
        "nothing_to_heal": "this run had nothing to heal; mrc-lab heal ends what others did",
    }
    return f"      {idle['what']}: {why[idle['why']]}"


def sweep_line(row: dict[str, Any]) -> str:
    """One row below SWEEP_HEAD or SWEEP_LATENCY_HEAD."""
    if "latency_us" in row:
        us = row["latency_us"]
        return f"{row['bytes']:>10} {us['samples']:>11} " + " ".join(
            f"{us[name]:>12.2f}" for name in ("min", "p50", "mean", "p99", "p999", "max")
        )
    return (
        f"{row['bytes']:>10} {row['messages']:>11} {format_rate(row['bits_per_second']):>17} "
        f"{row['messages_per_second']:>13.1f} {row['retransmits']:>7}"
    )


def latency_line(us: dict[str, Any]) -> str:
    """Percentiles of half the round trip."""
    return (
        f"latency (half of {us['samples']} round trips) min {us['min']:.2f}  "
        f"p50 {us['p50']:.2f}  p99 {us['p99']:.2f}  p99.9 {us['p999']:.2f}  "
        f"max {us['max']:.2f} us"
    )


def fairness_line(fair: dict[str, Any]) -> str:
    """How connections shared."""
    return (
        f"fairness between connections {fair['jain_index']:.4f} (Jain), slowest "
        f"{format_rate(fair['min_bits_per_second'])}, fastest "
        f"{format_rate(fair['max_bits_per_second'])}"
    )


def path_table(paths: Sequence[dict[str, Any]]) -> Iterator[str]:
    """One row a path, or one a plane when there are many; idle tables are left out."""
    sent = sum(path["packets_sent"] for path in paths)
    if not sent:
        return
    yield (
        f"{'EV':>10} {'Plane':>5}  {'State':11} {'Packets':>10} {'Share':>7} {'Lost':>7} "
        f"{'Retr':>7} {'ECN':>6}  RTT min/avg/max us"
    )
    rows = list(paths) if len(paths) <= _PATH_ROWS_MAX else _by_plane(paths)
    mean = sent / len(rows)
    for row in rows:
        rtt = row["rtt_us"]
        times = f"{rtt['min']:.0f}/{rtt['avg']:.0f}/{rtt['max']:.0f}" if rtt["max"] else "-"
        name = row.get("label") or ev_name(row["ev"])
        state = row.get("states") or _STATE_WORDS[row["state"]]
        yield (
            f"{name:>10} {row['plane']:>5}  {state:11} {row['packets_sent']:>10} "
            f"{row['packets_sent'] / mean:>6.2f}x {row['packets_lost']:>7} "
            f"{row['retransmits']:>7} {row['ecn_marks']:>6}  {times}"
        )
    if any(row["packets_lost"] or row["retransmits"] for row in rows):
        yield "  (Lost: taken for lost on this path; Retr: copies it carried of what any path lost)"


def _by_plane(paths: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    planes: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for path in paths:
        planes[path["plane"]].append(path)
    rows = []
    for plane, members in sorted(planes.items()):
        row: dict[str, Any] = {
            name: sum(path[name] for path in members)
            for name in ("packets_sent", "packets_lost", "retransmits", "ecn_marks")
        }
        timed = [path["rtt_us"] for path in members if path["rtt_us"]["max"]]
        good = sum(path["state"] in ("GOOD", "SKIP") for path in members)
        rows.append(
            row
            | {
                "plane": plane,
                "label": f"{len(members)} EVs",
                "states": f"{good} usable",
                "rtt_us": {
                    "min": min((t["min"] for t in timed), default=0),
                    "avg": sum(t["avg"] for t in timed) / len(timed) if timed else 0,
                    "max": max((t["max"] for t in timed), default=0),
                },
            }
        )
    return rows


def counters_lines(mrc: dict[str, Any]) -> Iterator[str]:
    """What the protocol did, each direction with what it was answered."""
    who = "the peer" if mrc.get("spurious_source") == "receiver" else "this end"
    yield (
        f"packets sent {mrc['packets_sent']}, {mrc['packets_retransmitted']} retransmitted "
        f"({mrc['spurious_retransmits']} of them spurious, as {who} saw), {mrc['timeouts']} "
        f"timeouts; answered by {mrc['sacks_received']} SACKs, {mrc['nacks_received']} NACKs"
    )
    yield (
        f"packets received {mrc['packets_received']}, {mrc['duplicates_received']} more came again"
        f", {mrc['ooo_received']} out of order; answered by {mrc['sacks_sent']} SACKs, "
        f"{mrc['nacks_sent']} NACKs"
    )
    if changes := sum(event["from"] != event["to"] for event in mrc["ev_events"]):
        yield f"{changes} path changes"


def gap_line(mrc: dict[str, Any]) -> str:
    """The longest silence, and how exactly it is known: a look that came late may hide its ends."""
    gap, step = mrc["longest_gap_ms"], mrc["longest_gap_resolution_ms"]
    where = f"longest time without new bytes at the {mrc['longest_gap_source']}"
    if step < gap:
        return f"{where} about {gap:.1f} ms (+- {step:.1f})"
    return f"{where} at most {gap + step:.1f} ms (two looks were {step:.1f} ms apart)"


def cpu_line(cpu: dict[str, float]) -> str:
    """Processor time of both ends."""
    line = f"CPU here {cpu['host_total']:.0f} %"
    return f"{line}, peer {cpu['remote_total']:.0f} %" if cpu["remote_total"] else line


def port_lines(ports: Sequence[dict[str, Any]], drops: dict[str, int]) -> Iterator[str]:
    """Only what somebody should act on."""
    for port in ports:
        if port["rx_socket_drops"]:
            capped = granted_less(port["rcvbuf_bytes"], RCVBUF_WANTED)
            why = "raise net.core.rmem_max" if capped else "the receiver did not keep up"
            yield (
                f"the socket of UDP port {port['udp_port']} dropped {port['rx_socket_drops']} "
                f"packets: {why}"
            )
    if drops:
        yield "dropped packets: " + ", ".join(f"{n} {name}" for name, n in sorted(drops.items()))


def verified_line(end: dict[str, Any]) -> str:
    """The verdict."""
    interrupted = "interrupted; " if end["interrupted"] else ""
    if end.get("files"):
        equal = sum(file["verified"] for file in end["files"])
        how = " with equal SHA-256" if equal else ""
        return f"{interrupted}{equal} of {len(end['files'])} files arrived{how}"
    if not end["verified"]:
        return f"{interrupted}not verified"
    if interrupted:
        return "interrupted; every byte of every message sent until then was compared and is equal"
    return "verified: every byte of every message was compared and is equal"
