# SPDX-License-Identifier: BSD-2-Clause
"""Why a command ends: the exit codes that scripts rely on, and how an exception becomes one."""

import enum
import errno
import os
import socket

from mrc.errors import MrcError, MrcResourceError, MrcUsageError, MrcWorkError
from mrc.types import WcStatus


class Exit(enum.IntEnum):
    """Exit codes of mrc-send and mrc-recv."""

    OK = 0
    USAGE = 1
    FAILED = 2
    """Data was lost, differs, or could not be verified."""
    PEER = 3
    """The peer cannot be reached, refused, speaks another version, or vanished."""
    ENVIRONMENT = 4
    """This host lacks something: a capability, a sysctl, a free port, an address."""
    INTERRUPTED = 130


class CliError(Exception):
    """An end with a sentence for the user and an exit code."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code


_UNREACHABLE = {
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.ECONNABORTED,
    errno.EPIPE,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.ETIMEDOUT,
    errno.ENOTCONN,
}


def from_exception(error: BaseException, peer: str) -> CliError | None:
    """What the user is told about `error`; None for one that can only be a fault of ours.

    `peer` names the other side, such as `fd00::2 port 18515`.
    """
    if isinstance(error, CliError):
        return error
    if isinstance(error, MrcWorkError):
        gone = error.wc.status in (WcStatus.RETRY_EXC_ERR, WcStatus.WR_FLUSH_ERR)
        return CliError(Exit.PEER if gone else Exit.FAILED, f"{peer}: {error}")
    if isinstance(error, MrcUsageError):
        return CliError(Exit.USAGE, _way_out(str(error)))
    if isinstance(error, MrcResourceError):
        return CliError(Exit.ENVIRONMENT, str(error))
    if isinstance(error, MrcError):
        return CliError(Exit.PEER, f"{peer}: {_way_out(str(error))}")
    if isinstance(error, socket.gaierror):
        return CliError(Exit.PEER, f"unknown host: {error.strerror}")
    if isinstance(error, TimeoutError) and error.errno is None:
        text = str(error) or "no answer in time"
        return CliError(Exit.PEER, text if peer in text else f"{peer}: {text}")
    if isinstance(error, OSError):
        return _from_os_error(error, peer)
    return None


def _from_os_error(error: OSError, peer: str) -> CliError:
    text = str(error) if error.errno is None else (error.strerror or str(error))
    if error.errno and text.startswith(("Connect call failed", "Multiple exceptions")):
        text = os.strerror(error.errno)  # asyncio puts its own words where the reason should be
    if error.errno in _UNREACHABLE or isinstance(error, ConnectionError):
        return CliError(Exit.PEER, f"{peer}: {text}")
    if error.filename is not None:
        text = f"{error.filename}: {text}"
    return CliError(Exit.ENVIRONMENT, _way_out(text))


def _way_out(text: str) -> str:
    """With what the user can do about it, where we know; here or at the peer it is the same."""
    for symptom, reason, advice in _WAYS_OUT:
        if symptom in text and reason in text and "CAP_" not in text:
            return f"{text} ({advice})"
    return text


_WAYS_OUT = (
    ("cannot send from", "already in use", "choose other source ports: mrc-send --sport-base"),
    ("localhost has no IPv6 address", "", "use ::1"),
    ("listen on", "Permission denied", "ports below 1024 need a privilege: CAP_NET_BIND_SERVICE"),
    ("raw IPv6 socket", "not permitted", "it needs CAP_NET_RAW; --backend udp needs no privilege"),
)
