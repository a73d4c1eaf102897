# SPDX-License-Identifier: BSD-2-Clause
"""mrc-send: connect, run one test or a sweep of them, report."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from mrc.cli import report
from mrc.cli.exits import CliError, Exit
from mrc.cli.link import Link, seen
from mrc.cli.options import SendOptions
from mrc.cli.output import Output
from mrc.cli.parser import version
from mrc.cli.pattern import Pattern
from mrc.cli.protocol import IMM_QUEUE, PROTOCOL, SPARE_WRITES, StreamResult, TestParams
from mrc.cli.run import TestRun
from mrc.cli.stop import Stop
from mrc.cli.stream import Stream
from mrc.cli.verdict import Outcome, client_end, failure, sweep_row
from mrc.cli.waiting import Waiting, outstanding
from mrc.ev import EvProfile
from mrc.units import format_seconds, powers_of_two

if TYPE_CHECKING:
    from mrc.cli.inlab import InlineFaults

SILENCE_S = 30.0
FINISH_TIMEOUT_S = 60.0
STOP_GRACE_S = 3.0

_T = TypeVar("_T")
Connect = Callable[..., Coroutine[Any, Any, Any]]


class Client:
    """One run of mrc-send. `connect` is mrc.connect, or what stands for it in a test."""

    def __init__(self, options: SendOptions, output: Output, connect: Connect) -> None:
        self._options = options
        self._output = output
        self._connect = connect
        self._links: list[Link] = []
        self._outcomes: list[Outcome] = []
        self._faults: InlineFaults | None = None
        if options.faults:
            from mrc.cli.inlab import InlineFaults

            self._faults = InlineFaults(options)

    async def run(self, stop: Stop) -> None:
        """Everything. Returns when all went well, else raises, with the report made either way."""
        try:
            await self._run_tests(stop)
        except CliError as error:
            if self._outcomes and not self._outcomes[-1].finished:
                await self._say_why(error)
            raise
        finally:
            for outcome in self._outcomes:
                outcome.run.stop(aborted=True)
            for file in self._outcomes[-1].files if self._outcomes else ():
                if file["state"] in ("incomplete", "not sent"):
                    self._output.note(f"{file['name']}: {file['state']}")
            if self._outcomes:
                self._output.end(self._end())
            await asyncio.gather(*(link.close() for link in self._links))

    async def _run_tests(self, stop: Stop) -> None:
        limit = format_seconds(self._options.connect_timeout)
        where = f"{self._options.host} port {self._options.common.port}"
        with Waiting(self._output.note, lambda: f"waiting for {where}, {limit} at most"):
            await stop.within(self._open())
        for params in self._tests():
            await self._test(params, stop)
            if self._options.sweep:
                self._output.step(sweep_row(self._outcomes[-1]))
            if stop.requested:
                raise stop.error()
        problem = failure(self._outcomes)
        if problem is not None:
            raise CliError(Exit.FAILED, problem)

    def _end(self) -> dict[str, Any]:
        document = client_end(self._outcomes, self._options)
        if self._faults is not None:
            self._faults.stop()
            document["faults"] = self._faults.events
            document["faults_idle"] = self._faults.idle()
        return document

    # -- set-up ------------------------------------------------------------------------------

    async def _open(self) -> None:
        options = self._options
        session = secrets.token_hex(8)
        for index in range(options.parallel):
            link = Link(await self._dial(), index + 1)
            self._links.append(link)
            link.serve("abort", self._on_abort)
            hello = {
                "protocol": PROTOCOL,
                "version": version(),
                "session": session,
                "stream": link.index,
                "streams": options.parallel,
            }
            await link.call("hello", hello, limit_s=options.connect_timeout)
        self._output.start(
            report.start(
                "mrc-send",
                self._links,
                {"connecting_to": {"host": options.host, "port": options.common.port}},
                report.test_start(options),
                session,
            )
        )

        advice = self._links[0].advice()
        if advice is not None:
            self._output.note(advice)

    async def _dial(self) -> Any:
        options = self._options
        common = options.common
        more: dict[str, Any] = {}
        if common.ev_profile is not None:
            more["ev_profile"] = self._profile(common.ev_profile)
        elif options.evs is not None:
            more["evs"] = options.evs
        if common.udp_port is not None:
            more["udp_port"] = common.udp_port
        if common.bind is not None:
            more["local"] = common.bind
        if self._links:
            more["context"] = self._links[0].conn.context
        return await self._connect(
            options.host,
            common.port,
            sport_base=options.sport_base,
            backend=common.backend,
            mtu=options.mtu,
            depth=options.depth + SPARE_WRITES,
            imm_queue=IMM_QUEUE,
            cc=options.cc,
            window=options.window,
            train=options.train or "auto",
            dynamic_mpr=options.dynamic_mpr,
            timestamps=options.timestamps,
            timeout=options.connect_timeout,
            seed=options.seed,
            start_psn=options.start_psn,
            dscp=common.dscp,
            plane_addresses=common.plane_addresses,
            mode=common.mode,
            pump=common.pump,
            **more,
        )

    def _profile(self, path: str) -> EvProfile:
        """MrcProfileError for one that cannot be used; CliError when -e says otherwise."""
        profile = EvProfile.load(path)
        wanted = self._options.evs
        if wanted is not None and wanted != len(profile):
            raise CliError(Exit.USAGE, f"-e {wanted}, but {path} has {len(profile)} EVs")
        return profile

    async def _on_abort(self, params: dict[str, Any]) -> dict[str, Any]:
        """The receiver gives up: everything ends with its words."""
        code = Exit.PEER if params.get("code") == Exit.PEER else Exit.FAILED
        error = CliError(code, f"peer: {params.get('reason', 'gave the test up')}")
        for link in self._links:
            link.fail(error)
        return {}

    async def _say_why(self, error: CliError) -> None:
        """The receiver should not have to guess why a test ends early."""
        code = Exit.FAILED if error.code == Exit.FAILED else Exit.PEER
        await asyncio.gather(
            *(link.tell("abort", {"reason": str(error), "code": code}) for link in self._links)
        )

    def _tests(self) -> list[TestParams]:
        options = self._options
        sizes = powers_of_two(*options.sweep) if options.sweep else [options.size]
        kind = "latency" if options.latency else "file" if options.files else "bulk"
        return [
            TestParams(
                test=number,
                kind=kind,
                size=size,
                depth=options.depth,
                verify=options.verify,
                imm=options.imm,
                bidir=options.bidir,
                seed=options.seed,
                messages=options.messages or 0,
            )
            for number, size in enumerate(sizes)
        ]

    # -- one test ----------------------------------------------------------------------------

    async def _test(self, params: TestParams, stop: Stop) -> None:
        """Agree, send, settle. The outcome is known to `run` as soon as anything was sent."""
        block = Pattern(params.seed, params.size)
        streams = [Stream(link, params, block, initiator=True) for link in self._links]
        await stop.within(self._agree(streams))
        clock_ns = self._outcomes[0].run.clock_ns if self._outcomes else None
        outcome = Outcome(
            run=TestRun(self._links, params, sends=True, clock_ns=clock_ns),
            engines=self._engines(streams),
            reverse=[stream.bulk_receiver() for stream in streams] if params.bidir else [],
        )
        self._outcomes.append(outcome)
        emit: Callable[[dict[str, Any]], None] = self._output.interval
        if self._faults is not None:
            self._faults.start(outcome.run.clock_ns)
            emit = self._faults.reporting(emit)
        outcome.run.start_intervals(self._options.common.interval, emit)

        if params.bidir:
            await stop.within(self._all("go", {}))
        await stop.within(self._drive(outcome), STOP_GRACE_S, outcome.interrupt)
        if not params.bidir:
            outcome.run.stop()
        await stop.within(self._finish(outcome, streams), STOP_GRACE_S)
        outcome.run.stop()
        await asyncio.gather(*(stream.release() for stream in streams))

    async def _agree(self, streams: list[Stream]) -> None:
        await self._all("start", streams[0].params.as_json())
        await asyncio.gather(*(stream.meet() for stream in streams))

    async def _all(self, method: str, params: dict[str, Any]) -> None:
        await asyncio.gather(*(link.call(method, params) for link in self._links))

    def _engines(self, streams: list[Stream]) -> list[Any]:
        params = streams[0].params
        if params.kind == "latency":
            return [stream.ping() for stream in streams]
        if params.kind == "bulk":
            return [stream.bulk_sender() for stream in streams]
        files = self._options.files
        return [
            stream.file_sender(files[i :: len(streams)], self._file_done)
            for i, stream in enumerate(streams)
        ]

    def _file_done(self, report_: dict[str, Any]) -> None:
        self._output.note(
            f"{report_['name']}: {report_['bytes']} bytes, SHA-256 equal, {_kept(report_)}"
            if report_["verified"]
            else f"{report_['name']}: differs"
        )

    async def _drive(self, outcome: Outcome) -> None:
        """Run all engines; -t asks them to stop."""
        seconds = self._options.seconds
        timer = None
        drain = Waiting(
            self._output.note,
            lambda: f"the time is over: {outstanding(outcome.engines)}",
        )

        def time_over() -> None:
            outcome.stop_engines()
            drain.begin()

        if seconds is not None and not self._options.files and not self._options.messages:
            timer = asyncio.get_running_loop().call_later(seconds, time_over)
        runs = asyncio.gather(
            *(
                link.guard(engine.run())
                for link, engine in zip(self._links, outcome.engines, strict=True)
            )
        )
        try:
            await _watched(outcome.run, runs)
        finally:
            drain.end()
            if timer is not None:
                timer.cancel()

    async def _finish(self, outcome: Outcome, streams: list[Stream]) -> None:
        """Ask what arrived; with --bidir also wait for what the other side sent."""
        # with -n and --bidir the other side may have much left to send: then progress decides
        limit_s = None if outcome.reverse else FINISH_TIMEOUT_S
        answers = asyncio.gather(
            *(
                link.call("finish", outcome.finish_params(engine, grown), limit_s)
                for link, engine, grown in zip(
                    self._links, outcome.engines, outcome.run.grown(), strict=True
                )
            )
        )
        replies = await (_watched(outcome.run, answers) if outcome.reverse else answers)
        try:
            outcome.results = [StreamResult.from_json(reply.get("stream")) for reply in replies]
            outcome.remote = report.remote_figures(replies[0])
            if outcome.reverse:
                sent = [StreamResult.from_json(reply.get("reverse")) for reply in replies]
                outcome.reverse_sent = sent
                for link, receiver, theirs, stream in zip(
                    self._links, outcome.reverse, sent, streams, strict=True
                ):
                    result = await link.guard(receiver.finish(theirs.messages))
                    result.bytes = stream.bytes_received
                    outcome.reverse_results.append(result)
        except ValueError as error:
            raise CliError(Exit.PEER, f"the peer's report makes no sense: {error}") from None
        outcome.finished = True


def _kept(file: dict[str, Any]) -> str:
    """What the receiver did with a file that arrived."""
    if file["stored_as"] is None:
        return "not kept (mrc-recv without -o)"
    return "stored" if file["stored_as"] == file["name"] else f"stored as {file['stored_as']}"


async def _watched(run: TestRun, work: asyncio.Future[_T]) -> _T:
    """The result of `work`, unless nothing moves for SILENCE_S while nobody notices anything."""
    work.add_done_callback(seen)
    try:
        while not work.done():
            left = SILENCE_S - run.progress.idle_seconds
            if left <= 0:
                raise CliError(Exit.PEER, f"no progress for {format_seconds(SILENCE_S)}")
            await asyncio.wait({work}, timeout=left)
        return work.result()
    finally:
        work.cancel()
        await asyncio.wait({work})
