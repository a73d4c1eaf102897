# SPDX-License-Identifier: BSD-2-Clause
"""What tests of all folders may ask for."""

from __future__ import annotations

import contextlib
import gc
import signal
import warnings

import pytest


def pytest_configure() -> None:
    """Signals are heeded, whoever runs the tests: what a shell or nohup ignores is inherited."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            heeded = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, heeded)


@pytest.fixture
def no_leaks():
    """Fails the test when an object of ours was left unclosed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    unclosed = [str(w.message) for w in caught if "unclosed" in str(w.message)]
    assert unclosed == []


@pytest.fixture
def raises_with():
    """raises_with(Error, "words"): the error must come, and say each of the words."""

    @contextlib.contextmanager
    def expect(error, *words):
        with pytest.raises(error) as caught:
            yield caught
        for word in words:
            assert word in str(caught.value)

    return expect
