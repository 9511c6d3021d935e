"""One BLAS thread for small matrices: two threads that wait for each other cost more than the arithmetic."""

from __future__ import annotations

from functools import cache
from typing import Any

import threadpoolctl

__all__ = ["single_threaded"]


@cache
def _controller(_: int) -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()  # looks through the loaded libraries, which takes milliseconds: once


def single_threaded() -> Any:
    """A context in which BLAS uses one thread."""
    import sys

    # scipy.linalg brings its own BLAS, so look again if it was not there yet the last time
    return _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")
