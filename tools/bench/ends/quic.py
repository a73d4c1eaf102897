# SPDX-License-Identifier: BSD-2-Clause
"""Bytes by QUIC through aioquic: one connection, one stream.

    quic.py recv ADDRESS PORT        quic.py send ADDRESS PORT

As the other ends: ``ready``, work until SIGTERM, one JSON object. The receiver makes a certificate
of its own; the sender does not ask whose it is.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
import sys
import tempfile
from pathlib import Path

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent, StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tools.scorecard.ends.common import STEP_NS, Samples, Stop, ready, report

ALPN = ["bench"]
BLOCK = bytes(1 << 16)
WINDOW = 1 << 24
DATAGRAM = 8000
"""Of a jumbo link; smaller ones are slower."""


def _certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    cert, private = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert, private


def _configuration(*, client: bool) -> QuicConfiguration:
    return QuicConfiguration(
        is_client=client,
        alpn_protocols=ALPN,
        max_data=WINDOW,
        max_stream_data=WINDOW,
        max_datagram_size=DATAGRAM,
    )


class _Sink(QuicConnectionProtocol):  # type: ignore[misc]  # Any: aioquic need not be here
    total = 0

    def quic_event_received(self, event: QuicEvent) -> None:
        """Count what arrived in order."""
        if isinstance(event, StreamDataReceived):
            _Sink.total += len(event.data)


async def _until(stop: Stop, samples: Samples | None) -> None:
    while not stop.set:
        if samples is not None:
            samples.due(lambda: (_Sink.total,))
        await asyncio.sleep(STEP_NS / 1e9)


async def _receive(address: str, port: int) -> None:
    stop, samples = Stop(), Samples("delivered")
    configuration = _configuration(client=False)
    with tempfile.TemporaryDirectory(prefix="mrc-bench-") as folder:
        configuration.load_cert_chain(*_certificate(Path(folder)))
    server = await serve(address, port, configuration=configuration, create_protocol=_Sink)
    ready()
    await _until(stop, samples)
    server.close()
    report(samples)


async def _send(address: str, port: int) -> None:
    stop = Stop()
    configuration = _configuration(client=True)
    configuration.verify_mode = ssl.CERT_NONE
    async with connect(address, port, configuration=configuration) as client:
        ready()
        _, writer = await client.create_stream()
        while not stop.set:
            writer.write(BLOCK)
            await writer.drain()
            # drain() never waits in aioquic: what has not left yet is looked at here.
            while _waiting(client, writer.get_extra_info("stream_id")) > WINDOW // 4:
                await asyncio.sleep(0.001)
                if stop.set:
                    break
        report()
        sys.stdout.flush()
        client.close()


def _waiting(client: QuicConnectionProtocol, stream_id: int) -> int:
    """Bytes written and not sent for the first time."""
    sender = client._quic._streams[stream_id].sender  # noqa: SLF001 - it has no public name
    return int(sender._buffer_stop - sender._buffer_start)  # noqa: SLF001


def main(argv: list[str]) -> int:
    """The command line above."""
    role, address, port = argv
    asyncio.run({"recv": _receive, "send": _send}[role](address, int(port)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
