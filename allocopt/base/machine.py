"""The machine's cores: how many this process may use, and how to keep BLAS on one of them."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

import threadpoolctl

__all__ = ["available_cores", "single_threaded"]


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _controller(_: bool) -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()  # looks through the loaded libraries, which takes milliseconds: once


def single_threaded() -> Any:
    """A context in which BLAS uses one thread: for small matrices, two threads that wait for each other are slower."""
    # scipy.linalg brings its own BLAS, so look again if it was not there yet the last time
    return _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")
