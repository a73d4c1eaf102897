# SPDX-License-Identifier: BSD-2-Clause
"""Files: names, contents, and what is left behind when something goes wrong."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os

import pytest

from mrc.cli import tables
from mrc.cli.exits import Exit
from mrc.cli.sink import FileSink, safe_name


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.bin").write_bytes(os.urandom(300_001))
    (folder / "empty").write_bytes(b"")
    (folder / "exact").write_bytes(os.urandom(64 << 10))
    return folder


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/shadow",
        "a/b\\c",
        "..",
        ".",
        "",
        ".bashrc",
        "x\x00y\n\x1b[31m",
        "\u202e",
        "n" * 5000,
        "   ",
    ],
)
def test_any_name_becomes_a_plain_file_name(name):
    safe = safe_name(name)
    assert safe
    assert not set(safe) & set("/\\\x00\n\x1b")
    assert not safe.startswith(".")
    assert len(safe.encode()) <= 255 - len(".9999.part")
    assert safe.isprintable()


async def test_files_arrive_equal(pair, source, target):
    await pair.run(
        f"-s 64k -i 0 --file {source}/a.bin {source}/empty {source}/exact", f"-1 -i 0 -o {target}"
    )
    assert pair.send.code == Exit.OK, pair.send.json
    assert pair.send.end["verified"] is True
    assert names(target) == ["a.bin", "empty", "exact"]
    for name in names(target):
        assert (target / name).read_bytes() == (source / name).read_bytes()
    digest = hashlib.sha256((source / "a.bin").read_bytes()).hexdigest()
    assert pair.send.end["files"][0]["received_sha256"] == digest
    assert [f["verified"] for f in pair.recv.end["files"]] == [True] * 3


async def test_files_are_spread_over_connections(pair, source, target):
    await pair.run(
        f"-P 2 -s 64k -i 0 --file {source}/a.bin {source}/empty {source}/exact",
        f"-1 -i 0 -o {target}",
    )
    assert pair.send.code == Exit.OK
    assert names(target) == ["a.bin", "empty", "exact"]


async def test_without_directory_files_are_hashed_and_dropped(pair, source):
    await pair.run(f"-i 0 --file {source}/a.bin")
    assert pair.send.code == Exit.OK
    assert pair.recv.end["files"][0]["stored"] is False


async def test_an_existing_file_is_never_replaced(pair, source, target, capsys):
    (target / "a.bin").write_text("mine")
    (target / "exact").symlink_to(source / "a.bin")
    before = (source / "a.bin").read_bytes()
    await pair.run(f"-i 0 --file {source}/a.bin {source}/exact", f"-1 -i 0 -o {target}")
    assert (target / "a.bin").read_text() == "mine"
    assert (target / "a.bin.1").read_bytes() == before
    assert (source / "a.bin").read_bytes() == before
    assert [f["stored_as"] for f in pair.send.end["files"]] == ["a.bin.1", "exact.1"]
    said = capsys.readouterr().err
    assert "a.bin: 300001 bytes, SHA-256 equal, stored as a.bin.1\n" in said
    assert "exact: 65536 bytes, SHA-256 equal, stored as exact.1\n" in said


async def test_a_file_that_is_not_kept_has_no_name(pair, source, capsys):
    await pair.run(f"-s 64k -i 0 --file {source}/exact")
    assert pair.send.end["files"][0]["stored_as"] is None
    assert "SHA-256 equal, not kept" in capsys.readouterr().err


async def test_the_part_left_by_a_killed_receiver_is_in_nobodys_way(pair, source, target):
    (target / "exact.part").write_bytes(b"left behind")
    await pair.run(f"-s 64k -i 0 --file {source}/exact", f"-1 -i 0 -o {target}")
    assert names(target) == ["exact", "exact.part"]
    assert (target / "exact").read_bytes() == (source / "exact").read_bytes()
    assert (target / "exact.part").read_bytes() == b"left behind"


async def test_a_changed_byte_leaves_no_file(pair, source, target):
    pair.net.corrupt_write = 2
    await pair.run(f"-s 64k -i 0 --file {source}/a.bin", f"-1 -i 0 -o {target}")
    assert (pair.send.code, pair.recv.code) == (Exit.FAILED, Exit.FAILED)
    assert "differ" in pair.send.json["error"]
    assert pair.send.end["verified"] is False
    assert names(target) == []


async def test_a_vanished_sender_leaves_no_file(pair, source, target, wait_for):
    pair.net.stall_at = 2

    async def during():
        await wait_for(lambda: bool(pair.net.stalled))
        assert names(target) == ["a.bin.part"]
        pair.net.clients[0].lose()
        pair.net.clients[0].other.lose()

    await pair.run(f"-s 64k -i 0 --file {source}/a.bin", f"-1 -i 0 -o {target}", during)
    assert (pair.send.code, pair.recv.code) == (Exit.PEER, Exit.PEER)
    assert names(target) == []


async def test_an_interrupted_sender_leaves_no_partial_file(pair, source, target, wait_for):
    pair.net.delay_s = 0.02

    async def during():
        await wait_for(lambda: bool(names(target)))
        pair.send.stop.request("interrupted by SIGINT")

    await pair.run(f"-s 1k -i 0 --file {source}/a.bin", f"-1 -i 0 -o {target}", during)
    assert pair.send.code == Exit.INTERRUPTED
    assert names(target) == []
    for side in (pair.send, pair.recv):
        file = side.end["files"][0]
        assert (side.end["verified"], side.end["interrupted"]) == (False, True)
        assert (file["name"], file["state"], file["verified"]) == ("a.bin", "incomplete", False)
        assert tables.verified_line(side.end) == "interrupted; 0 of 1 files arrived"
    assert pair.recv.code == Exit.FAILED
    assert "a.bin" in pair.recv.json["error"]
    assert pair.recv.end["files"][0]["received_bytes"] == pair.recv.end["sum_received"]["bytes"]


@pytest.mark.parametrize("gone", ["sender", "receiver"])
async def test_a_file_cut_short_is_named_at_both_ends(pair, source, wait_for, gone):
    """And one whose turn never came, at the sender."""
    pair.net.stall_at = 2

    async def during():
        await wait_for(lambda: bool(pair.net.stalled))
        await wait_for(lambda: pair.net.clients[0].counters["bytes_acked"] == 128 << 10)
        if gone == "receiver":
            pair.recv.stop.request("interrupted by SIGINT")
        else:
            pair.net.clients[0].lose()
            pair.net.clients[0].other.lose()

    await pair.run(f"-s 64k -i 0 --file {source}/a.bin {source}/exact", during=during)
    files = {f["name"]: f["state"] for f in pair.send.end["files"]}
    assert files == {"a.bin": "incomplete", "exact": "not sent"}
    assert [f["state"] for f in pair.recv.end["files"]] == ["incomplete"]
    for end in (pair.send.end, pair.recv.end):
        assert (end["verified"], end["interrupted"]) == (False, True)
    assert pair.send.end["sum_sent"]["bytes"] == 128 << 10  # acknowledged, not merely posted


async def test_a_full_disk_is_reported_at_both_ends(pair, source, target, monkeypatch):
    def full(fd, chunk):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("mrc.cli.sink.os.write", full)
    await pair.run(f"-s 64k -i 0 --file {source}/a.bin", f"-1 -i 0 -o {target}")
    assert (pair.send.code, pair.recv.code) == (Exit.FAILED, Exit.FAILED)
    assert "No space left" in pair.send.json["error"]
    assert names(target) == []


async def test_a_file_that_shrinks_is_an_error(pair, source, wait_for):
    pair.net.stall_at = 1

    async def during():
        await wait_for(lambda: bool(pair.net.stalled))
        os.truncate(source / "a.bin", 1000)
        pair.net.release()

    await pair.run(f"-s 64k --depth 1 -i 0 --file {source}/a.bin", during=during)
    assert pair.send.code == Exit.FAILED
    assert "shrank" in pair.send.json["error"]


async def test_two_sinks_of_one_name_do_not_meet(target):
    sinks = [FileSink(str(target), "x", 1) for _ in range(2)]
    for sink in sinks:
        sink.open()
    for i, sink in enumerate(sinks):
        data = bytes([i])
        sink.write(memoryview(data))
        assert sink.finish(hashlib.sha256(data).hexdigest()) == hashlib.sha256(data).hexdigest()
    assert names(target) == ["x", "x.1"]
    await asyncio.sleep(0)
