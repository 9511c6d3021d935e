r"""Small regret and horizon programs, compiled: quotient, Newton's method and certificate.

The program is the one of `program.horizon_at_level`: costs Δ, radii Δ²/level, no bounds. Its targets are its features
times a number, b_j = √(level/Δ_j) a_j. The method is `solvers.newton`, the certificate `compiled_certificate`: both the very same code
that Python runs, in the words of `linear.loops`.

Whatever this cannot take (rank-deficient arms, an information matrix that Cholesky's
factorisation does not survive, a gap that does not close) ends with a code, and the caller takes the ordinary path.

This module needs numba and is loaded when first used, through `allocator.compiled_kernel`. Machine code is kept on disk, in
the folders __pycache__ where these are writable.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numba import config, types

from allocopt.base.compiling import kept_on_disk, on_disk, uncollected
from allocopt.base.machine import available_cores
from allocopt.base.tolerances import LARGEST
from allocopt.certify import compiled_certificate
from allocopt.linear.compiled_quotient import NOTHING, SEVERAL, UNUSUAL, quotient
from allocopt.linear.loops import (
    ENTRY,
    compiled_steps,
    in_loops,
)
from allocopt.solvers import newton, newton_start
from allocopt.solvers.newton_problem import DEFAULT

__all__ = [
    "CERTIFIED",
    "INFO",
    "INVALID",
    "NOTHING",
    "NOT_CONVERGED",
    "REASONS",
    "SEVERAL",
    "SINGULAR",
    "UNUSUAL",
    "compile_beside",
    "quotient",
    "ready",
    "solve_quotient",
]

CERTIFIED = 0
INVALID = 1
SINGULAR = 4
NOT_CONVERGED = 5
REASONS = {
    INVALID: "gaps that are not finite, negative, all zero or out of range",
    NOTHING: "nothing to explore: the free arms span everything",
    UNUSUAL: "arms that are rank-deficient, or nearly so, or out of range",
    SEVERAL: "several arms of gap 0",
    SINGULAR: "a numerically singular information or Newton matrix",
    NOT_CONVERGED: "the compiled method did not reach the tolerance",
}
INFO = 5  # what a solve reports beside its code: lower, upper, rounding, steps, 1 if it was warm-started

_STRICTLY = 1.0 - 2.0**-48  # so that the gap is within tol in exact arithmetic too
_MOST_STEPS = 60  # a dozen is typical; whatever needs more than this is for the ordinary path


def _prepare(quotient_rows: Any, r: Any, gaps: Any, level: Any, warm: Any, alpha_in: Any, lam_in: Any) -> Any:
    """The arms that count, those that a known pair uses first, and the problem of these, in units of about its value.

    Its columns, ratios and the known pair; and once more the columns of the arms in use alone (of all where nothing is known).
    """
    arms = len(gaps)
    which = np.empty(arms, np.int64)
    k = used = 0
    unit = 0.0
    for i in range(arms):
        if not (gaps[i] == 0.0 or 1.0 / LARGEST <= gaps[i] <= LARGEST):
            unit = np.inf
        for c in range(r):
            if gaps[i] != 0.0 and quotient_rows[i, c] != 0.0:
                which[k] = i
                if not warm or alpha_in[i] > 0.0 or lam_in[i] > 0.0:
                    which[k] = which[used]
                    which[used] = i
                    used += 1
                k += 1
                unit += level / gaps[i]
                break
    columns, in_use = np.empty((r, k)), np.empty((r, used))
    ratios, alpha, lam = np.empty(k), np.empty(k), np.empty(k)
    for i in range(k):
        gap = gaps[which[i]]
        ratios[i] = math.sqrt(level / gap / unit)
        root = math.sqrt(unit / gap)
        for c in range(r):
            columns[c, i] = quotient_rows[which[i], c] * root
            if i < used:
                in_use[c, i] = columns[c, i]
        alpha[i] = alpha_in[which[i]] * gap / unit if warm else 0.0
        lam[i] = lam_in[which[i]] / unit if warm else 0.0
    return which[:k], unit, columns, ratios, alpha, lam, in_use


_STEPS = compiled_steps(newton.STEPS)
prepare = kept_on_disk(_prepare, **ENTRY)
cold_allocation = kept_on_disk(in_loops(newton_start.cold_allocation, _STEPS), **ENTRY)
warm_allocation = kept_on_disk(in_loops(newton_start.warm_allocation, _STEPS), **ENTRY)
near_central_path = kept_on_disk(in_loops(newton_start.near_central_path, _STEPS), **ENTRY)
minimise = kept_on_disk(in_loops(newton.minimise, _STEPS), **ENTRY)
certify = kept_on_disk(in_loops(compiled_certificate.certify, compiled_steps(compiled_certificate.STEPS)), **ENTRY)


def solve_quotient(*arguments: Any) -> int:
    """Solve and certify, given what `_solve_quotient` takes; Ctrl-C is a KeyboardInterrupt, which numba makes something else of."""
    try:
        return _solve_quotient(*arguments)
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            cause = cause.__cause__ or cause.__context__
        raise


def _solve_quotient(
    quotient_rows: Any,
    r: Any,
    gaps: Any,
    gap_error: Any,
    level: Any,
    tol: Any,
    warm: Any,
    alpha: Any,
    multipliers: Any,
    info: Any,
) -> int:
    """Solve and certify, given the quotient, into the last three; with ``warm``, they hold the pair to start from. The code.

    ``gap_error`` is the relative error of the gaps: 0 where they are the user's own numbers.
    """
    which, unit, columns, ratios, start, lam, in_use = prepare(quotient_rows, r, gaps, level, warm, alpha, multipliers)
    if not 0.0 < unit < np.inf:
        return INVALID
    if len(which) < r:
        return UNUSUAL
    arms = which, unit, columns, ratios
    code, spent = SINGULAR, 0
    # most often the arms that were in use are the ones that are; the certificate, which looks at all of them, says whether
    for some in (in_use, columns) if r <= in_use.shape[1] < len(which) else (columns,):
        n = some.shape[1]
        problem = some, None, ratios[:n], None, None, 0.0  # `newton.Problem`
        if warm:
            distance, first = warm_allocation(*problem, start[:n], lam[:n], None)
        else:
            distance, first = DEFAULT.cold_distance, cold_allocation(*problem[:5], None, None)
        x, y = near_central_path(*problem[:5], first, lam[:n], warm, distance, None)
        steps, own_gap, found = minimise(problem, x, y, tol, _MOST_STEPS, None, None, None)
        spent += steps
        if not own_gap < np.inf:
            continue
        for tidied in (True, False):  # the second only where the certificate suffers from the first
            certify(arms, found, tidied, gaps, gap_error, alpha, multipliers, info)
            if info[1] - info[0] <= tol * _STRICTLY * info[0]:
                info[3], info[4] = spent, warm
                return CERTIFIED
            if some is in_use:
                break
        code = NOT_CONVERGED
    return code


# Compiling takes seconds: it is done once, and in two processes where there are two cores.

_F, _I, _B, _NONE = types.float64, types.int64, types.boolean, types.none
_VECTOR, _MATRIX, _WHICH = types.float64[::1], types.float64[:, ::1], types.int64[::1]
_PROBLEM = (_MATRIX, _NONE, _VECTOR, _NONE, _NONE, _F)
_tuple_of: Any = types.Tuple
_TOGETHER, _ARMS, _FOUND = _tuple_of(_PROBLEM), _tuple_of((_WHICH, _F, _MATRIX, _VECTOR)), _tuple_of((_VECTOR,) * 4)
_HERE: dict[str, tuple[Any, ...]] = {
    "minimise": (_TOGETHER, _VECTOR, _VECTOR, _F, _I, _NONE, _NONE, _NONE),
    "quotient": (_MATRIX, _VECTOR, _MATRIX),
}
_BESIDE: dict[str, tuple[Any, ...]] = {
    "cold_allocation": (*_PROBLEM[:5], _NONE, _NONE),
    "warm_allocation": (*_PROBLEM, _VECTOR, _VECTOR, _NONE),
    "near_central_path": (*_PROBLEM[:5], _VECTOR, _VECTOR, _B, _F, _NONE),
    "certify": (_ARMS, _FOUND, _B, _VECTOR, _F, _VECTOR, _VECTOR, _VECTOR),
    "prepare": (_MATRIX, _I, _VECTOR, _F, _B, _VECTOR, _VECTOR),
}


def _compile(entries: dict[str, tuple[Any, ...]]) -> None:
    with uncollected():
        for name, signature in entries.items():
            globals()[name].compile(signature)


def compile_beside() -> None:
    """Compile one half, for `ready` in another process."""
    _compile(_BESIDE)


def ready() -> None:
    """Load the machine code, after making what is not on disk yet."""
    if getattr(config, "DISABLE_JIT", 0):  # numba was asked to leave functions as they are
        return
    helper = None
    started = time.perf_counter()
    if not all(on_disk(globals()[name]) for name in (*_HERE, *_BESIDE)):
        if sys.stderr is not None and sys.stderr.isatty():
            print("allocopt: compiling, this once; it takes some seconds", file=sys.stderr)
        helper = _helper()
    try:
        _compile(_HERE)
        if helper is not None:  # it has the smaller half; if it takes much longer something is wrong with it
            with suppress(subprocess.TimeoutExpired):
                helper.wait(timeout=5.0 + time.perf_counter() - started)
    finally:
        if helper is not None:
            helper.kill()
            helper.wait()
    _compile(_BESIDE)


def _helper() -> subprocess.Popen[bytes] | None:
    """A process that runs `compile_beside`; None where one would not help. If it fails this process does its work."""
    if available_cores() < 2 or getattr(sys, "frozen", False) or not sys.executable:
        return None
    package = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    try:
        return subprocess.Popen(
            [sys.executable, "-P", *["-O"] * sys.flags.optimize, "-c", "from allocopt.solving import kernel; kernel.compile_beside()"],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return None
