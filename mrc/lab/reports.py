# SPDX-License-Identifier: BSD-2-Clause
"""What the programs of a run reported, as samples and sums of a record. Pure.

Each program reports what each of its intervals brought, in a time of its own. From when the lines
came follows when that began: no line comes before what it tells has happened, so the earliest
counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrc.fabric.measure import Series
from mrc.fabric.record import TOTAL, EvChange, FlowSum, Sample
from mrc.fabric.scenario import Case

from .jobs import FlowOf, Job

__all__ = ["EVENTS_MAX", "Said", "events_of", "samples_of", "sums_of"]

EVENTS_MAX = 2000
_LETTERS = {"GOOD": "g", "SKIP": "s", "ASSUMED_BAD": "b", "DENIED": "d"}
_STEPS = {
    "sent": "packets_sent",
    "retransmitted": "packets_retransmitted",
    "timeouts": "timeouts",
}
_PATH_STEPS = {
    "sent_bytes": "bytes_sent",
    "lost": "packets_lost",
    "marked": "ecn_marks",
    "trimmed": "trims",
}
_COUNTED = (*_STEPS, *_PATH_STEPS, "spurious")


@dataclass
class Said:
    """What one program said, and when each line came (ns of CLOCK_MONOTONIC)."""

    lines: list[tuple[int, bytes]] = field(default_factory=list)
    ready: bool = False
    started_ns: int | None = None
    ended: bool = False
    failed: str = ""

    def take(self, at_ns: int, line: bytes) -> None:
        """A line of `--json-stream`."""
        if line.startswith(b'{"event": "interval"'):
            self.lines.append((at_ns, line))
            return
        try:
            message = json.loads(line)
            event, data = message["event"], message["data"]
        except (ValueError, KeyError, TypeError):
            return
        if event == "start" and self.started_ns is None:
            self.started_ns = at_ns
        elif event == "ready":
            self.ready = True
        elif event == "end":
            self.ended = True
            self.lines.append((at_ns, line))
        elif event == "error":
            self.failed = str(data)


class Track:
    """Counters of one program over time: of its connections, its paths, its protocol."""

    def __init__(self, said: Said) -> None:
        self.begin_ns = 0
        self.times: list[float] = []
        """Seconds of the program's own."""
        self.received: dict[int, list[int]] = {}
        """Bytes placed at this end, by connection; as long as `times`."""
        self.windows: dict[int, list[int | None]] = {}
        self.counts: dict[str, list[int]] = {}
        self.paths: list[tuple[int, int]] = []
        """(EV, plane) in the order of the profile."""
        self.path_bytes: list[tuple[int, ...]] = []
        self.states: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.end: dict[str, Any] = {}
        self.end_ns = 0
        self._sums: Counter[Any] = Counter()
        begins = []
        for at_ns, line in said.lines:
            message = json.loads(line)
            if message["event"] == "end":
                self.end, self.end_ns = message["data"], at_ns
                continue
            self._interval(message["data"])
            begins.append(at_ns - round(self.times[-1] * 1e9))
        self.begin_ns = min(begins, default=said.started_ns or 0)

    def _interval(self, data: Mapping[str, Any]) -> None:
        sums = self._sums
        self.times.append(float(data["sum"]["end"]))
        for one in data["streams"]:
            key = int(one["socket"])
            if one["sender"]:
                self.windows.setdefault(key, []).append(one.get("snd_cwnd") or None)
            else:
                sums["got", key] += one["bytes"]
                self.received.setdefault(key, []).append(sums["got", key])
        mrc, paths = data["mrc"], data["paths"]
        for name, counter in _STEPS.items():
            sums[name] += mrc[counter]
        sums["spurious"] += mrc["duplicates_received"]
        for name, counter in _PATH_STEPS.items():
            sums[name] += sum(path[counter] for path in paths)
        for name in _COUNTED:
            self.counts.setdefault(name, []).append(sums[name])
        self.paths = [(path["ev"], path["plane"]) for path in paths]
        for k, path in enumerate(paths):
            sums["path", k] += path["bytes_sent"]
        self.path_bytes.append(tuple(sums["path", k] for k in range(len(paths))))
        self.states.append("".join(_letter(path) for path in paths))
        self.events += mrc["ev_events"]

    def series(self, values: Sequence[int], zero_ns: int) -> Series:
        """Over the time of the run, whose second 0 is `zero_ns`."""
        shift = (self.begin_ns - zero_ns) / 1e9
        rows = [(shift, 0), *((shift + t, v) for t, v in zip(self.times, values, strict=True))]
        return Series.of(rows)

    def last(self, t_s: float, zero_ns: int) -> int | None:
        """Number of the last interval that had ended by a time of the run."""
        shift = (self.begin_ns - zero_ns) / 1e9
        found = None
        for k, t in enumerate(self.times):
            if t + shift > t_s + 1e-9:
                break
            found = k
        return found


def _letter(path: Mapping[str, Any]) -> str:
    letter = _LETTERS.get(path["state"], "b")
    return letter.upper() if path["backup"] else letter


@dataclass(frozen=True)
class Ends:
    """Both programs of a job."""

    job: Job
    sender: Track
    receiver: Track

    def sending(self, flow: FlowOf) -> Track:
        """The end that sends a flow."""
        return self.sender if flow.forward else self.receiver

    def taking(self, flow: FlowOf) -> Track:
        """The end that receives it."""
        return self.receiver if flow.forward else self.sender


class Story:
    """All programs of a run, on one clock."""

    def __init__(self, case: Case, ends: Iterable[Ends], zero_ns: int, stop_s: float) -> None:
        self.planes = case.shape.planes
        self.ends = list(ends)
        self.zero_ns = zero_ns
        self.stop_s = stop_s
        self._finite = {f.name for e in self.ends if not e.job.work.endless for f in e.job.flows}
        self.delivered = {
            flow.name: self._delivered(e, flow) for e in self.ends for flow in e.job.flows
        }

    def _delivered(self, ends: Ends, flow: FlowOf) -> Series:
        track = ends.taking(flow)
        whole = track.received.get(flow.socket, [])
        if len(whole) != len(track.times) or not whole:
            return Series((0.0,), (0,))
        series = track.series(whole, self.zero_ns)
        total = _final(ends, flow)
        end_s = (track.end_ns - self.zero_ns) / 1e9
        if total > series.count[-1] and end_s > series.t_s[-1]:
            return Series((*series.t_s, end_s), (*series.count, total))
        return series

    def count(self, name: str, t_s: float) -> int:
        """Bytes of a flow delivered since second 0; of messages that are counted, all."""
        series = self.delivered[name]
        before = 0 if name in self._finite else int(series.at(0.0))
        return int(series.at(t_s)) - before


def _final(ends: Ends, flow: FlowOf) -> int:
    """What the end report counts for a flow, where there is one that knows."""
    if not flow.forward:  # told of all connections together only
        back = ends.sender.end.get("sum_received_bidir_reverse", {})
        return int(back.get("bytes", 0)) if ends.job.qps == 1 else 0
    for one in ends.sender.end.get("streams", []):
        got = one.get("receiver", {})  # of a run that failed there is none
        if got.get("socket") == flow.socket and got.get("bytes"):
            return int(got["bytes"])
    return 0


def samples_of(story: Story, step_s: float) -> tuple[Sample, ...]:
    """Of all, of each piece of work where there are several, and of each flow."""
    works: dict[str, list[Ends]] = {}
    for ends in story.ends:
        works.setdefault(ends.job.work.name, []).append(ends)
    groups = [(TOTAL, story.ends), *(works.items() if len(works) > 1 else ())]
    counters = {id(t): _counters(t, story) for e in story.ends for t in (e.sender, e.receiver)}
    found = []
    for t_s in _grid(step_s, story.stop_s):
        for name, some in groups:
            delivered = sum(story.count(f.name, t_s) for e in some for f in e.job.flows)
            each = [_sums(ends, counters, t_s) for ends in some]
            sums: dict[str, Any] = {k: sum(one[k] for one in each) for k in _COUNTED}
            sums["planes"] = _planes(story, [t for e in some for t in _senders(e)], t_s)
            found.append(Sample(t_s=t_s, flow=name, delivered_bytes=delivered, **sums))
        found += [_one(story, e, f, t_s) for e in story.ends for f in e.job.flows]
    return tuple(found)


def _grid(step_s: float, stop_s: float) -> Iterator[float]:
    """0, a step, two, .. and the end."""
    count = int(stop_s / step_s + 1e-6)
    yield from (k * step_s for k in range(count + 1))
    if stop_s - count * step_s > 1e-6:
        yield stop_s


def _senders(ends: Ends) -> list[Track]:
    return [ends.sender, ends.receiver] if ends.job.work.both else [ends.sender]


def _counters(track: Track, story: Story) -> dict[str, Series]:
    return {name: track.series(values, story.zero_ns) for name, values in track.counts.items()}


def _sums(ends: Ends, counters: Mapping[int, Mapping[str, Series]], t_s: float) -> dict[str, int]:
    """Of both directions of a job; what arrived twice is counted where it arrived."""
    found: Counter[str] = Counter()
    tracks = _senders(ends)
    takers = [ends.receiver, ends.sender][: len(tracks)]
    for name in _COUNTED:
        for track in takers if name == "spurious" else tracks:
            series = counters[id(track)].get(name)
            found[name] += 0 if series is None else int(series.at(t_s)) - int(series.at(0.0))
    return dict(found)


def _planes(story: Story, tracks: Iterable[Track], t_s: float) -> tuple[int, ...]:
    found = [0] * story.planes
    for track in tracks:
        for (_, plane), count in zip(track.paths, _path_bytes(story, track, t_s), strict=False):
            found[plane - 1] += count
    return tuple(found)


def _path_bytes(story: Story, track: Track, t_s: float) -> tuple[int, ...]:
    first, now = track.last(0.0, story.zero_ns), track.last(t_s, story.zero_ns)
    if now is None:
        return (0,) * len(track.paths)
    base = (0,) * len(track.paths) if first is None else track.path_bytes[first]
    return tuple(b - a for a, b in zip(base, track.path_bytes[now], strict=True))


def _one(story: Story, ends: Ends, flow: FlowOf, t_s: float) -> Sample:
    """Paths are shared by the connections of a program: they are shown with each of them."""
    track = ends.sending(flow)
    now = track.last(t_s, story.zero_ns)
    windows = track.windows.get(flow.socket, [])
    counts = _path_bytes(story, track, t_s)
    return Sample(
        t_s=t_s,
        flow=flow.name,
        delivered_bytes=story.count(flow.name, t_s),
        cwnd_bytes=windows[now] if now is not None and now < len(windows) else None,
        planes=_planes(story, [track], t_s),
        evs=counts,
        ev_states=track.states[now] if now is not None else "",
    )


def sums_of(story: Story, failed: Mapping[int, str]) -> tuple[FlowSum, ...]:
    """Each flow over the whole run; a job that failed counts as an error of each of its flows."""
    found = []
    for ends in story.ends:
        work = ends.job.work
        for flow in ends.job.flows:
            count = story.count(flow.name, story.stop_s)
            start = max(0.0, (ends.sender.begin_ns - story.zero_ns) / 1e9)
            end = story.stop_s
            if work.stop_ns is not None:
                end = min(end, start + (work.stop_ns - work.start_ns) / 1e9)
            if not work.endless:
                end = _last_byte(story.delivered[flow.name], end)
            found.append(
                FlowSum(
                    flow=flow.name,
                    work=flow.work,
                    src=flow.src + 1,
                    dst=flow.dst + 1,
                    bytes=count,
                    start_s=start,
                    end_s=end,
                    goodput_bps=count * 8 / (end - start) if end > start else 0.0,
                    completions=count // work.bytes,
                    errors=int(ends.job.number in failed),
                )
            )
    return tuple(found)


def _last_byte(series: Series, latest_s: float) -> float:
    """When a flow had all it was to get."""
    last = series.count[-1]
    at = next(t for t, count in zip(series.t_s, series.count, strict=True) if count == last)
    return min(at, latest_s)


def events_of(story: Story) -> tuple[tuple[EvChange, ...], int]:
    """Changes of EVs within the run, and how many more there were."""
    found = []
    for ends in story.ends:
        sides = [(ends.sender, ends.job.src, ends.job.dst)]
        if ends.job.work.both:
            sides.append((ends.receiver, ends.job.dst, ends.job.src))
        for track, host, peer in sides:
            index = {ev: k for k, (ev, _) in enumerate(track.paths)}
            for event in track.events:
                t_s = event["t"] + (track.begin_ns - story.zero_ns) / 1e9
                if 0 <= t_s <= story.stop_s and event["ev"] in index:
                    found.append(_change(event, t_s, host, peer, index[event["ev"]]))
    found.sort(key=lambda change: change.t_s)
    return tuple(found[:EVENTS_MAX]), max(0, len(found) - EVENTS_MAX)


def _change(event: Mapping[str, Any], t_s: float, host: int, peer: int, ev: int) -> EvChange:
    return EvChange(
        t_s=t_s,
        host=host + 1,
        peer=peer + 1,
        ev=ev,
        plane=event["plane"],
        before=event["from"].lower(),
        after=event["to"].lower(),
        reason=event["reason"],
    )
