# SPDX-License-Identifier: BSD-2-Clause
"""Hand-made IPv6-in-IPv6 packets, and captured ones. Bytes only, no library."""

import struct
from collections.abc import Iterator
from pathlib import Path as FilePath

from mrc.lab import Path, Role, carrier, host_address, usid

UDP_PORT = 4791
ETHERNET = 14


def ipv6(next_header: int, source: bytes, destination: bytes, payload: bytes) -> bytes:
    head = struct.pack("!IHBB", 6 << 28, len(payload), next_header, 64)
    return head + source + destination + payload


def srh(entry: bytes, segments_left: int) -> bytes:
    """One entry, next header IPv6 (RFC 8754; MRC A.13.2)."""
    return struct.pack("!BBBBBBH", 41, 2, 4, segments_left, 0, 0, 0) + entry


def udp_in_ipv6(path: Path, payload: bytes) -> bytes:
    source, destination = host_address(path.src).packed, host_address(path.dst).packed
    length = 8 + len(payload)
    head = struct.pack("!HHH", path.sport, UDP_PORT, length)
    pseudo = source + destination + struct.pack("!II", length, 17)
    data = head + struct.pack("!H", checksum(pseudo + head + b"\0\0" + payload)) + payload
    return ipv6(17, source, destination, data)


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(word for (word,) in struct.iter_unpack("!H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF or 0xFFFF


def outer_source(path: Path) -> bytes:
    """The address of the sender's port in the path's plane."""
    return carrier(usid(Role.HOST_RAW, path.plane, path.src + 1)).packed


def captured_packets(file: FilePath) -> Iterator[bytes]:
    """The IP packets of a file that Capture wrote."""
    data, at = file.read_bytes(), 24
    while at < len(data):
        length = struct.unpack_from("!I", data, at + 8)[0]
        yield data[at + 16 + ETHERNET : at + 16 + length]
        at += 16 + length
