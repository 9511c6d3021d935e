"""Commands that run in this process leave it as it was."""

import signal
import sys

import pytest


@pytest.fixture(autouse=True)
def handlers_restored():
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    yield
    signal.signal(signal.SIGINT, before[0])
    sys.unraisablehook = before[1]
