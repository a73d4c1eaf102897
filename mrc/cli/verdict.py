# SPDX-License-Identifier: BSD-2-Clause
"""What a test came to: was everything received and equal, and the `end` document that says so."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from mrc.cli import report
from mrc.cli.bulk import BulkReceiver
from mrc.cli.histogram import LatencyHistogram
from mrc.cli.options import SendOptions
from mrc.cli.protocol import StreamResult
from mrc.cli.run import TestRun
from mrc.telemetry import Snapshot
from mrc.units import powers_of_two, rate


@dataclasses.dataclass(slots=True)
class Outcome:
    """One test at the sender; complete once `finished`."""

    run: TestRun
    engines: list[Any]
    """BulkSender, Ping or FileSender, one a connection."""
    reverse: list[BulkReceiver]
    finished: bool = False
    interrupted: bool = False
    """Stopped before the time or count agreed on."""
    results: list[StreamResult] = dataclasses.field(default_factory=list)
    remote: dict[str, Any] = dataclasses.field(default_factory=dict)
    reverse_sent: list[StreamResult] = dataclasses.field(default_factory=list)
    reverse_results: list[StreamResult] = dataclasses.field(default_factory=list)

    def stop_engines(self) -> None:
        """Nothing more is posted."""
        for engine in self.engines:
            engine.stop()

    def interrupt(self) -> None:
        """Stop before the planned end."""
        self.interrupted = True
        self.stop_engines()

    def finish_params(self, engine: Any, grown: Snapshot) -> dict[str, Any]:
        """What the receiver is told of a connection when it is asked for its figures."""
        return {
            "messages": engine.messages,
            "bytes": engine.bytes,
            "interrupted": self.interrupted,
            "duplicates": grown.qp.duplicates_received,
        }

    @property
    def files(self) -> list[dict[str, Any]]:
        """One record a file, whatever became of it."""
        return [f for engine in self.engines for f in getattr(engine, "files", [])]

    @property
    def sent_bytes(self) -> int:
        """Bytes whose arrival the transport acknowledged."""
        return sum(engine.bytes for engine in self.engines)

    @property
    def sent_messages(self) -> int:
        """Messages whose arrival the transport acknowledged."""
        return sum(engine.messages for engine in self.engines)

    @property
    def received_bytes(self) -> int:
        """As the receiver counted; before it has answered, what was acknowledged."""
        return sum(r.bytes for r in self.results) if self.finished else self.sent_bytes

    @property
    def seconds(self) -> float:
        """From the first write to the last completion."""
        ends = [engine.end_ns for engine in self.engines]
        return (max(ends) - self.run.start_ns) / 1e9 if all(ends) else self.run.seconds

    def problems(self) -> list[str]:
        """In words, everything that was lost or differs; empty is what we want."""
        words: list[str] = []
        for engine, result in zip(self.engines, self.results, strict=False):
            words += compare(engine.messages, engine.bytes, result, "the receiver")
            words += getattr(engine, "result", StreamResult()).errors
        for sent, result in zip(self.reverse_sent, self.reverse_results, strict=False):
            words += compare(sent.messages, sent.bytes, result, "this end")
        return words

    @property
    def verified(self) -> bool:
        """Every byte of every message, both directions, was compared and equal.

        Of an interrupted test: of those that were sent. Files must be whole.
        """
        if not self.run.params.verify or not self.finished or self.problems():
            return False
        if self.run.params.kind == "file":
            return all(f["verified"] for f in self.files)
        checked = [*self.results, *self.reverse_results]
        checked += [e.result for e in self.engines if hasattr(e, "result")]
        return self.sent_messages > 0 and all(r.checked == r.messages for r in checked)


def compare(messages: int, byte_count: int, result: StreamResult, who: str) -> list[str]:
    """In words, how `result` falls short of what was sent."""
    words = list(result.errors)
    if result.error_count > len(result.errors):
        words.append(f"{result.error_count - len(result.errors)} more differences")
    if result.messages != messages:
        words.append(f"{messages} messages sent, {who} has {result.messages}")
    if result.bytes != byte_count:
        words.append(f"{byte_count} bytes sent, {who} has {result.bytes}")
    return words


def failure(outcomes: Sequence[Outcome]) -> str | None:
    """Why the run failed, in a sentence; None when everything arrived (and was verified)."""
    for outcome in outcomes:
        problems = outcome.problems()
        if problems:
            return "data lost or different: " + "; ".join(problems)
        if outcome.run.params.verify and not outcome.verified:
            return "the data could not be verified"
    return None


def client_end(outcomes: Sequence[Outcome], options: SendOptions) -> dict[str, Any]:
    """The `end` document of mrc-send, of as much as there is."""
    last = outcomes[-1]
    begin = (outcomes[0].run.start_ns - outcomes[0].run.clock_ns) / 1e9
    runs = [o.run for o in outcomes]
    retransmits = sum(g.qp.packets_retransmitted for g in report.total(runs))
    end: dict[str, Any] = {"streams": _streams(last)}
    seconds = sum(o.seconds for o in outcomes)
    end["sum_sent"] = report.flow(
        begin,
        begin + seconds,
        sum(o.sent_bytes for o in outcomes),
        sender=True,
        retransmits=retransmits,
        messages=sum(o.sent_messages for o in outcomes),
    )
    end["sum_received"] = report.flow(
        begin,
        begin + sum(_received_seconds(o) for o in outcomes),
        sum(o.received_bytes for o in outcomes),
        sender=False,
        source="receiver" if last.finished else "acknowledged",
    )
    if last.reverse:
        end |= _reverse(last, begin)
    end["cpu_utilization_percent"] = report.cpu(
        last.run.cpu_percent, last.remote.get("cpu", (0.0, 0.0, 0.0))
    )
    end["verified"] = all(o.verified for o in outcomes)
    planned = len(powers_of_two(*options.sweep)) if options.sweep else 1
    complete = all(o.finished and not o.interrupted for o in outcomes)
    end["interrupted"] = not complete or len(outcomes) < planned
    end["errors"] = [text for o in outcomes for text in o.problems()]
    end |= report.common_end(runs)
    end["mrc"] |= _spurious([o.remote.get("duplicates") for o in outcomes], retransmits)
    end["mrc"] |= last.remote.get("gap") or report.gap(last.run) | {"longest_gap_source": "sender"}
    if options.parallel > 1 and not options.files:
        end["fairness"] = report.fairness([rate(e.bytes, last.seconds) for e in last.engines])
    if options.latency:
        end["latency_us"] = _histogram(outcomes).as_json()
    if options.files:
        end["files"] = last.files
    if options.sweep:
        end["sweep"] = [sweep_row(o) for o in outcomes]
    return end


def _spurious(told: Sequence[int | None], retransmits: int) -> dict[str, Any]:
    """Retransmissions that were in vain: what came twice, where the peer has told.

    A copy that the network made is not ours, hence never more than were sent again.
    """
    if None in told:
        return {"spurious_source": "sender"}
    return {
        "spurious_retransmits": min(sum(filter(None, told)), retransmits),
        "spurious_source": "receiver",
    }


def _received_seconds(outcome: Outcome) -> float:
    """From first to last byte at the receiver; the sender's time if that is too short to tell."""
    seconds = float(outcome.remote.get("seconds", 0.0))
    return seconds if 0 < seconds <= outcome.seconds else outcome.seconds


def _streams(outcome: Outcome) -> list[dict[str, Any]]:
    begin = (outcome.run.start_ns - outcome.run.clock_ns) / 1e9
    streams = []
    for i, (engine, grown) in enumerate(zip(outcome.engines, outcome.run.grown(), strict=True)):
        link = outcome.run.links[i]
        ended = (
            (engine.end_ns - outcome.run.clock_ns) / 1e9
            if engine.end_ns
            else (begin + outcome.run.seconds)
        )
        entry = {
            "sender": report.flow(
                begin,
                ended,
                engine.bytes,
                socket=link.index,
                sender=True,
                messages=engine.messages,
                retransmits=grown.qp.packets_retransmitted,
                snd_cwnd=report.cwnd(grown),
            )
        }
        if outcome.finished:
            result = outcome.results[i]
            entry["receiver"] = report.flow(
                begin,
                begin + _received_seconds(outcome),
                result.bytes,
                socket=link.index,
                sender=False,
                messages=result.messages,
                checked=result.checked,
                errors=result.error_count,
            )
        streams.append(entry)
    return streams


def _reverse(outcome: Outcome, begin: float) -> dict[str, Any]:
    """What came back with --bidir."""
    until = begin + outcome.seconds
    received = sum(r.bytes for r in outcome.reverse_results)
    if not outcome.finished:
        received = sum(g.qp.bytes_received for g in outcome.run.grown())
    sent = sum(r.bytes for r in outcome.reverse_sent) if outcome.finished else received
    source = "sender" if outcome.finished else "unknown"
    return {
        "sum_sent_bidir_reverse": report.flow(begin, until, sent, sender=True, source=source),
        "sum_received_bidir_reverse": report.flow(begin, until, received, sender=False),
    }


def _histogram(outcomes: Sequence[Outcome]) -> LatencyHistogram:
    merged = LatencyHistogram()
    for outcome in outcomes:
        for engine in outcome.engines:
            merged.merge(engine.histogram)
    return merged


def sweep_row(outcome: Outcome) -> dict[str, Any]:
    """One size of a sweep."""
    seconds = outcome.seconds
    row: dict[str, Any] = {
        "bytes": outcome.run.params.size,
        "messages": outcome.sent_messages,
        "seconds": round(seconds, 6),
        "bits_per_second": round(rate(outcome.sent_bytes, seconds), 1),
        "messages_per_second": round(outcome.sent_messages / seconds, 1) if seconds > 0 else 0.0,
        "retransmits": sum(g.qp.packets_retransmitted for g in outcome.run.grown()),
        "verified": outcome.verified,
    }
    if outcome.run.params.kind == "latency":
        row["latency_us"] = _histogram([outcome]).as_json()
    return row


def server_end(
    run: TestRun,
    results: Sequence[StreamResult],
    problems: Sequence[str],
    files: Sequence[dict[str, Any]],
    came_twice: Sequence[int | None],
    *,
    complete: bool,
    interrupted: bool,
) -> dict[str, Any]:
    """The `end` document of mrc-recv, of as much as there is.

    `came_twice`: what the client got twice, by connection; None: it has not told.
    """
    begin = (run.start_ns - run.clock_ns) / 1e9
    grown = run.grown()
    seconds = run.progress.seconds if run.progress.seconds > 0 else run.seconds
    placed = [g.qp.bytes_received for g in grown]
    messages = [r.messages for r in results]
    streams = [
        {
            "receiver": report.flow(
                begin,
                begin + seconds,
                byte_count,
                socket=link.index,
                sender=False,
                messages=result.messages,
                checked=result.checked,
                errors=result.error_count,
            )
        }
        for link, byte_count, result in zip(run.links, placed, results, strict=True)
    ]
    end: dict[str, Any] = {
        "streams": streams,
        "sum_received": report.flow(
            begin,
            begin + seconds,
            sum(placed),
            sender=False,
            messages=sum(messages),
            source="receiver",
        ),
    }
    if run.params.bidir:
        sent = sum(g.qp.bytes_acked for g in grown)
        end["sum_sent"] = report.flow(begin, begin + run.seconds, sent, sender=True)
    end["cpu_utilization_percent"] = report.cpu(run.cpu_percent, (0.0, 0.0, 0.0))
    whole = complete and run.params.verify and not problems
    if run.params.kind == "file":
        end["verified"] = whole and all(f["verified"] for f in files)
        end["files"] = list(files)
    else:
        checked = [r.checked for r in results]
        end["verified"] = whole and sum(messages) > 0 and checked == messages
    end["interrupted"] = interrupted or not complete
    end["errors"] = list(problems)
    end |= report.common_end([run])
    end["mrc"] |= _spurious(came_twice, sum(g.qp.packets_retransmitted for g in grown))
    end["mrc"] |= report.gap(run) | {"longest_gap_source": "receiver"}
    return end
