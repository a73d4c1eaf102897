# SPDX-License-Identifier: BSD-2-Clause
"""EV profiles: the TOML files that tell the programs which EVs exist, how each travels. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import partial

from .plan import FabricSpec, Path, host_address, paths_between


class Mode(StrEnum):
    """How a sender names a path; each mode is one profile file per pair of hosts."""

    UDP = "udp"
    """By UDP source port; the kernel's routes add the carrier."""
    SRV6 = "srv6"
    """Outer header by the sender: a uSID carrier. Received raw, as are the next two."""
    SRV6_SRH = "srv6-srh"
    """uSID carrier that ends at the spine, SRH entry for the rest (MRC A.13.2, 'extend')."""
    SRV6_SRH_COPY = "srv6-srh-copy"
    """Whole carrier in the destination and again in the SRH, Segments Left 0 ('debug copy')."""


_FORMAT = {
    Mode.UDP: "udp",
    Mode.SRV6: "srv6",
    Mode.SRV6_SRH: "srv6-srh",
    Mode.SRV6_SRH_COPY: "srv6-srh",
}


def ev_profile(spec: FabricSpec, src: int, dst: int, mode: Mode) -> str:
    """The profile for host ``src`` (0-based) to reach host ``dst`` over all paths."""
    parts = [f'format = "{_FORMAT[mode]}"\n']
    paths = paths_between(spec, src, dst)
    parts += [ev_entry(path, mode) for path in paths]
    return "\n".join([*parts, *plane_entries(paths)])


def answering_profile(spec: FabricSpec, src: int, rows: str) -> str:
    """The profile by which a host answers whoever asks, with headers of its own (D.9).

    ``rows``: the name of a file beside it, with what `answering_rows` says.
    """
    peer = max((h for h in range(spec.hosts) if h != src), key=partial(_ways, spec, src))
    paths = paths_between(spec, src, peer)
    parts = [f'format = "srv6"\n\n[template]\nrows = "{rows}"\n']
    parts += [f"[[ev]]\nvalue = 0x{path.ev:08x}\nport = {path.plane}\n" for path in paths]
    return "\n".join([*parts, *plane_entries(paths)])


def answering_rows(spec: FabricSpec, src: int) -> str:
    """A row for each other host; plane, T1 and the host's number are filled in for each path."""
    rows = []
    for dst in range(spec.hosts):
        if dst != src:
            path = paths_between(spec, src, dst)[0]
            uplink = 1 if path.spine else -1
            rows.append(
                f'[[row]]\nprefix = "{host_address(dst)}/128"\n'
                f'template = "{path.raw_carrier}"\nuplink = {uplink}\n'
            )
    return "\n".join(rows)


def _ways(spec: FabricSpec, src: int, dst: int) -> int:
    return spec.shape.path_count(src, dst)


def plane_entries(paths: Iterable[Path]) -> list[str]:
    """What carries each of their planes: with its interface goes the plane (D.7)."""
    return [
        f'[[plane]]\nnumber = {plane}\ninterface = "plane{plane}"\n'
        for plane in sorted({path.plane for path in paths})
    ]


def ev_entry(path: Path, mode: Mode) -> str:
    """A path as an entry of a profile."""
    lines = [
        f"# path {path.index}: plane {path.plane}, spine {path.spine}",
        "[[ev]]",
        f"value = {path.sport if mode is Mode.UDP else f'0x{path.ev:08x}'}",
        f"port = {path.plane}",
    ]
    match mode:
        case Mode.UDP:
            pass
        case Mode.SRV6:
            lines.append(f'dst = "{path.raw_carrier}"')
        case Mode.SRV6_SRH:
            lines += [f'dst = "{path.srh_carrier}"', f'srh = "{path.srh_raw_entry}"']
        case Mode.SRV6_SRH_COPY:
            lines += [f'dst = "{path.raw_carrier}"', f'srh = "{path.raw_carrier}"']
    return "\n".join(lines) + "\n"
