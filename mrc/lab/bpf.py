# SPDX-License-Identifier: BSD-2-Clause
"""Loads csrc/bpf/mrc_fabric.bpf.c and writes its maps: marks, trims, damage.

By the system call itself: what iproute2 can load depends on how it was built, and bpftool is not
everywhere. A program is loaded once for each port, with its number patched in; three maps hold the
settings and counts of all ports.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import FabricUnavailableError

OBJECT = Path(__file__).with_name("mrc_fabric.bpf.o")
MAPS = ("configs", "states", "counters")
COUNTS = ("marked", "trimmed", "corrupted")
PORTS_MAX = 4096

_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_MAP_CREATE, _MAP_LOOKUP, _MAP_UPDATE, _PROG_LOAD = 0, 1, 2, 5
_SCHED_CLS, _ARRAY = 3, 2
_LOAD_64, _PSEUDO_MAP_FD = 0x18, 1
_MAGIC = 0x4D52435F534C4F54
_RELOCATIONS = 9  # SHT_REL
_LOG_BYTES = 1 << 16

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class PortConfig:
    """What is done at one port; struct config of the program."""

    rate_bytes: int = 0
    mark_lo: int = 0
    mark_hi: int = 0
    limit: int = 0
    corrupt_ppm: int = 0
    trim_ppm: int = 0
    trimmed_dscp: int = 12
    trimmable_dscp: tuple[int, int] = (4, 8)

    def packed(self) -> bytes:
        """As the program reads it."""
        upto = (min(ppm * 2**32 // 10**6, 2**32 - 1) for ppm in (self.corrupt_ppm, self.trim_ppm))
        numbers = (self.rate_bytes, self.mark_lo, self.mark_hi, self.limit, *upto)
        return struct.pack("=QIIIII4B", *numbers, self.trimmed_dscp, *self.trimmable_dscp, 0)


@dataclass(frozen=True, slots=True)
class Program:
    """Code out of the object file, and where it names maps."""

    code: bytes
    maps: Mapping[int, str]
    """Byte offsets of instructions that load the address of a map."""


def read_object(data: bytes) -> dict[str, Program]:
    """The programs of an ELF file by section. ValueError: it is none for BPF. Pure."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (at,) = struct.unpack_from("<Q", data, 40)
    size, count, names_at = struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(count)]

    def body(index: int) -> bytes:
        return data[heads[index][4] : heads[index][4] + heads[index][5]]

    def text(table: bytes, offset: int) -> str:
        return table[offset : table.index(b"\0", offset)].decode()

    names = [text(body(names_at), h[0]) for h in heads]
    programs = {n: Program(body(i), {}) for i, n in enumerate(names) if n in ("queue", "wire")}
    for index, head in enumerate(heads):
        if head[1] == _RELOCATIONS and names[head[7]] in programs:
            symbols, strings = body(head[6]), body(heads[head[6]][6])
            found = {}
            for offset, info in struct.iter_unpack("<QQ", body(index)):
                (name,) = struct.unpack_from("<I", symbols, (info >> 32) * 24)
                found[offset] = text(strings, name)
            programs[names[head[7]]] = Program(programs[names[head[7]]].code, found)
    return programs


def patched(program: Program, maps: Mapping[str, int], port: int) -> bytes:
    """The code with descriptors of maps and the number of the port in it. Pure."""
    code = bytearray(program.code)
    for offset, name in program.maps.items():
        code[offset + 1] = code[offset + 1] & 0x0F | _PSEUDO_MAP_FD << 4
        struct.pack_into("<I", code, offset + 4, maps[name])
    for offset in range(0, len(code) - 15, 8):
        low, high = (struct.unpack_from("<I", code, offset + x)[0] for x in (4, 12))
        if code[offset] == _LOAD_64 and high << 32 | low == _MAGIC:
            struct.pack_into("<I", code, offset + 4, port)
            struct.pack_into("<I", code, offset + 12, 0)
    return bytes(code)


class Bpf:
    """The maps, open as long as this is, and programs loaded as they are asked for."""

    def __init__(self) -> None:
        """FabricUnavailableError: not compiled, or not allowed."""
        if not OBJECT.exists():
            raise FabricUnavailableError(
                "the tc program for marks, trims and damage is not compiled",
                "Debian and Ubuntu: apt install clang; then make, or install the package anew",
            )
        self._programs = read_object(OBJECT.read_bytes())
        values = (len(PortConfig().packed()), 16, 8 * len(COUNTS))
        self._maps: dict[str, int] = {}
        for name, size in zip(MAPS, values, strict=True):
            attributes = struct.pack("=IIIII", _ARRAY, 4, size, PORTS_MAX, 0)
            self._maps[name] = _call(_MAP_CREATE, attributes)

    def load(self, name: str, port: int) -> int:
        """A descriptor of the program `queue` or `wire` for a port, for the caller to close."""
        code = ctypes.create_string_buffer(patched(self._programs[name], self._maps, port))
        license_ = ctypes.create_string_buffer(b"BSD")
        log = ctypes.create_string_buffer(_LOG_BYTES)
        count = (len(code) - 1) // 8
        where = ctypes.addressof(code), ctypes.addressof(license_)
        try:
            return _call(_PROG_LOAD, _load_attributes(count, where, (0, 0, 0)))
        except FabricUnavailableError:
            raise
        except OSError as error:  # once more, for the reason
            room = 1, _LOG_BYTES, ctypes.addressof(log)
            try:
                return _call(_PROG_LOAD, _load_attributes(count, where, room))
            except OSError:
                said = log.value.decode(errors="replace").strip().splitlines()[-3:]
                reason = f"{name}: {error.strerror}: {said}"
                raise OSError(error.errno, reason) from None

    def configure(self, port: int, config: PortConfig) -> None:
        """From the next packet on."""
        self._element(_MAP_UPDATE, "configs", port, ctypes.create_string_buffer(config.packed()))

    def counts(self, port: int) -> dict[str, int]:
        """What was done at a port so far."""
        value = ctypes.create_string_buffer(8 * len(COUNTS))
        self._element(_MAP_LOOKUP, "counters", port, value)
        return dict(zip(COUNTS, struct.unpack(f"={len(COUNTS)}Q", value.raw), strict=True))

    def close(self) -> None:
        """Close the maps; programs that are attached keep them."""
        for fd in self._maps.values():
            os.close(fd)
        self._maps.clear()

    def _element(self, verb: int, name: str, port: int, value: ctypes.Array[ctypes.c_char]) -> None:
        key = ctypes.c_uint32(port)
        places = ctypes.addressof(key), ctypes.addressof(value)
        _call(verb, struct.pack("=IIQQQ", self._maps[name], 0, *places, 0))


def _call(verb: int, attributes: bytes) -> int:
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise FabricUnavailableError(f"the number of the bpf call on {platform.machine()}")
    # the kernel wants what it does not know of to be zero
    block = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    result = int(_libc.syscall(number, verb, block, 128))
    if result < 0:
        code = ctypes.get_errno()
        if code == 1:
            raise FabricUnavailableError(
                "eBPF may not be loaded here: no marks, trims or damage", "it needs root"
            )
        raise OSError(code, os.strerror(code))
    return result


def _load_attributes(count: int, where: tuple[int, int], log: tuple[int, int, int]) -> bytes:
    return struct.pack("=IIQQIIQII", _SCHED_CLS, count, *where, *log, 0, 0)
