r"""Small programs, compiled: quotient, Newton's method and certificate.

Costs κ, radii ρ, no bounds; a pull of arm i adds x xᵀ/σ_i². With a_i = x_i/√(κ_iσ_i²) there are two *forms*. Form "arms": a target
for every arm that is not free, so that targets are features times a number, b_j = √(κ_jσ_j²/ρ_j) a_j; in the programs of
`programs.horizon_at_level` κ = Δ and ρ = Δ²/level. Form "targets": targets of their own, b_j = t_j/√ρ_j, and no free arms. The method
is `solvers.newton`, the certificate `compiled_certificate`: both the very same code that Python runs, compiled with the functions of
`linear.loops` in place of those of `linear.dense`; each form by itself, when it is first asked for.

What this cannot solve (rank-deficient arms, an information matrix whose Cholesky factorisation fails, a gap that stays above the
tolerance) ends with a code of `linear.kernel_codes`, and the caller takes the ordinary path: `allocopt.solve`.

This module needs numba and is loaded when first used, through `roads.machine_code`. Machine code is kept on disk, in the folders
__pycache__ where these are writable.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from allocopt.base.compiling import garbage_collection_off, kept_on_disk, loaded
from allocopt.base.tolerances import LARGEST
from allocopt.certify import compiled_certificate
from allocopt.linear.loops import (
    ENTRY,
    compiled_steps,
    in_loops,
)
from allocopt.solvers.newton import iteration as newton
from allocopt.solvers.newton import problem as newton_problem
from allocopt.solvers.newton import start as newton_start
from allocopt.solving.compiled_quotient import quotient, units
from allocopt.solving.kernel_codes import (
    CERTIFIED,
    CERTIFIED_BY_FORMULA,
    INVALID,
    NEEDS_DESIGN,
    NEEDS_ORDINARY_PATH,
    NOT_CONVERGED,
    NOTHING_TO_EXPLORE,
    REASONS,
    SEVERAL_FREE_ARMS,
    SINGULAR,
)
from allocopt.solving.roads import compiled_formulas
from allocopt.solving.roads.helper_process import Helper

__all__ = [
    "CERTIFIED",
    "CERTIFIED_BY_FORMULA",
    "FORMS",
    "INFO",
    "INVALID",
    "NEEDS_DESIGN",
    "NEEDS_ORDINARY_PATH",
    "NOTHING_TO_EXPLORE",
    "NOT_CONVERGED",
    "REASONS",
    "SEVERAL_FREE_ARMS",
    "SINGULAR",
    "compile_in_helper",
    "load",
    "make",
    "quotient",
    "solve_quotient",
    "solve_targets",
    "units",
]

INFO = 5  # what a solve reports beside its code: lower, upper, rounding, steps, 1 if it was warm-started

_STRICTLY = 1.0 - 2.0**-48  # so that the gap is within tol in exact arithmetic too
_MOST_STEPS = 60  # a dozen is typical; whatever needs more than this is for the ordinary path


def _prepare(
    quotient_rows: Any,
    r: Any,
    costs: Any,
    variances: Any,
    radii: Any,
    level: Any,
    warm: Any,
    alpha_in: Any,
    lam_in: Any,
) -> Any:
    """The arms that count, those that a known pair uses first, and the problem of these, in units of about its value.

    Its columns, ratios and the known pair; and once more the columns of the arms in use alone (of all where nothing is known).
    Radii are κ²/level where a level is given, whatever ``radii`` are; where it is 0 they are those of the arms.
    """
    arms = len(costs)
    which = np.empty(arms, np.int64)
    k = used = 0
    unit = 0.0
    for i in range(arms):
        if not (costs[i] == 0.0 or 1.0 / LARGEST <= costs[i] <= LARGEST):
            unit = np.inf
        for c in range(r):
            if costs[i] != 0.0 and quotient_rows[i, c] != 0.0:
                which[k] = i
                if not warm or alpha_in[i] > 0.0 or lam_in[i] > 0.0:
                    which[k] = which[used]
                    which[used] = i
                    used += 1
                k += 1
                unit += level * variances[i] / costs[i] if level > 0.0 else costs[i] * variances[i] / radii[i]
                break
    columns, in_use = np.empty((r, k)), np.empty((r, used))
    ratios, alpha, lam = np.empty(k), np.empty(k), np.empty(k)
    for i in range(k):
        cost, variance = costs[which[i]], variances[which[i]]
        alone = (
            level * variance / cost if level > 0.0 else cost * variance / radii[which[i]]
        )  # what its target costs by itself
        ratios[i] = math.sqrt(alone / unit)
        root = math.sqrt(unit / (cost * variance))
        for c in range(r):
            columns[c, i] = quotient_rows[which[i], c] * root
            if i < used:
                in_use[c, i] = columns[c, i]
        alpha[i] = alpha_in[which[i]] * cost / unit if warm else 0.0
        lam[i] = lam_in[which[i]] / unit if warm else 0.0
    return which[:k], unit, columns, ratios, alpha, lam, in_use


_CHOICES = compiled_steps(newton_problem.CHOICES, {}, copied=False)
prepare = kept_on_disk(_prepare, **ENTRY)
_BEGIN = newton_start.begin, compiled_steps(newton_start.STEPS, _CHOICES)
_MINIMISE = newton.minimise, compiled_steps(newton.STEPS, _CHOICES)
_CERTIFY = (
    compiled_certificate.certify,
    compiled_steps(compiled_certificate.STEPS, compiled_steps(compiled_certificate.CHOICES, {}, copied=False)),
)
begin = kept_on_disk(in_loops(*_BEGIN), **ENTRY)
minimise = kept_on_disk(in_loops(*_MINIMISE), **ENTRY)
closed_form = kept_on_disk(compiled_formulas.closed_form, **ENTRY)
certify = kept_on_disk(in_loops(*_CERTIFY), **ENTRY)
begin_targets = kept_on_disk(in_loops(*_BEGIN, "begin_targets"), **ENTRY)
minimise_targets = kept_on_disk(in_loops(*_MINIMISE, "minimise_targets"), **ENTRY)
certify_targets = kept_on_disk(in_loops(*_CERTIFY, "certify_targets"), **ENTRY)


def solve_quotient(*arguments: Any) -> int:
    """`_solve_quotient`, with Ctrl-C as a KeyboardInterrupt."""
    return _interruptible(_solve_quotient, arguments)


def solve_targets(*arguments: Any) -> int:
    """`_solve_targets`, likewise."""
    return _interruptible(_solve_targets, arguments)


def _interruptible(compiled: Callable[..., int], arguments: tuple[Any, ...]) -> int:
    """A call whose KeyboardInterrupt stays one: numba turns it into a SystemError."""
    try:
        return compiled(*arguments)
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            cause = cause.__cause__ or cause.__context__
        raise


def _within(tol: float, info: Any) -> bool:
    """Whether the bounds that were certified are as close as ``tol`` asks."""
    lower, upper = info.item(0), info.item(1)  # Python's numbers, whose arithmetic takes a tenth of the time of numpy's
    return bool(upper - lower <= tol * _STRICTLY * lower)


def _solve_quotient(
    quotient_rows: Any,
    r: Any,
    costs: Any,
    gap_error: Any,
    variances: Any,
    radii: Any,
    level: Any,
    tol: Any,
    warm: Any,
    alpha: Any,
    multipliers: Any,
    info: Any,
    formulas: bool = False,
) -> int:
    """Solve and certify, given the quotient; returns a code, and the results in ``alpha``, ``multipliers`` and ``info``.

    With ``warm``, ``alpha`` and ``multipliers`` hold the pair to start from.

    ``gap_error`` is the relative error of costs and roots of radii: 0 where they are the user's own numbers. ``variances`` are σ² of
    every arm where these differ; otherwise ones, and σ² is part of the level. ``radii`` and ``level``: see `_prepare`. With
    ``formulas``, programs with a closed form are solved by it, or left to the ordinary path.
    """
    which, unit, columns, ratios, start, lam, in_use = prepare(
        quotient_rows, r, costs, variances, radii, level, warm, alpha, multipliers
    )
    if not 0.0 < unit < np.inf:
        return INVALID
    if len(which) < r:
        return NEEDS_ORDINARY_PATH
    arms = which, which, unit, columns, ratios, None
    code, spent = SINGULAR, 0
    if formulas:
        form, found = closed_form(columns, ratios)
        if form == compiled_formulas.EQUAL_RATIOS:
            return NEEDS_DESIGN
        if form == compiled_formulas.DIRECTIONS:
            certify(arms, found, False, costs, gap_error, alpha, multipliers, info)
            info[3], info[4] = 0.0, 0.0
            return CERTIFIED_BY_FORMULA if _within(tol, info) else NOT_CONVERGED
    # try the arms that the known pair uses first: most often they suffice, which the certificate, over all arms, decides
    for some in (in_use, columns) if r <= in_use.shape[1] < len(which) else (columns,):
        n = some.shape[1]
        problem = some, None, ratios[:n], None, None, 0.0, None  # `newton_problem.Problem`
        x, y = begin(problem, start[:n], lam[:n], warm)
        steps, own_gap, found = minimise(problem, x, y, tol, _MOST_STEPS, None, None, None)
        spent += steps
        if not own_gap < np.inf:
            continue
        for tidied in (True, False):  # untidied only where tidying made the certificate worse
            certify(arms, found, tidied, costs, gap_error, alpha, multipliers, info)
            if _within(tol, info):
                info[3], info[4] = spent, warm
                return CERTIFIED
            if some is in_use:
                break
        code = NOT_CONVERGED
    return code


def _solve_targets(
    columns: Any,
    targets: Any,
    unit: Any,
    which: Any,
    asked: Any,
    costs: Any,
    data_error: Any,
    tol: Any,
    alpha: Any,
    multipliers: Any,
    info: Any,
) -> int:
    """The same for targets of their own: solve and certify, given the canonical columns of both; a code, and the results.

    ``which`` are the arms of the columns, ``asked`` the places of the targets among the ``multipliers``; ``unit`` is what a unit of
    the canonical cost is.
    """
    m, k = targets.shape[1], columns.shape[1]
    problem = columns, targets, np.ones(m), None, None, 0.0, None  # `newton_problem.Problem`
    x, y = begin_targets(problem, np.zeros(k), np.zeros(m), False)
    steps, own_gap, found = minimise_targets(problem, x, y, tol, _MOST_STEPS, None, None, None)
    if not own_gap < np.inf:
        return SINGULAR
    for tidied in (True, False):  # untidied only where tidying made the certificate worse
        canonical = which, asked, unit, columns, problem[2], targets
        certify_targets(canonical, found, tidied, costs, data_error, alpha, multipliers, info)
        if _within(tol, info):
            info[3], info[4] = steps, 0.0
            return CERTIFIED
    return NOT_CONVERGED


# Compiling takes seconds: it is done once, for each form when it is first asked for, and in two processes where there are two cores.

_F, _I, _B, _NONE = types.float64, types.int64, types.boolean, types.none
_VECTOR, _MATRIX, _WHICH = types.float64[::1], types.float64[:, ::1], types.int64[::1]
_CONSTANT = types.Array(types.float64, 2, "C", readonly=True)
_tuple_of: Any = types.Tuple
_FOUND = _tuple_of((_VECTOR,) * 4)


def _signatures(targets: Any) -> tuple[tuple[Any, ...], ...]:
    """Those of `begin`, `minimise` and `certify`, where the targets are of this type."""
    problem = _tuple_of((_MATRIX, targets, _VECTOR, _NONE, _NONE, _F, _NONE))
    canonical = _tuple_of((_WHICH, _WHICH, _F, _MATRIX, _VECTOR, targets))
    return (
        (problem, _VECTOR, _VECTOR, _B),
        (problem, _VECTOR, _VECTOR, _F, _I, _NONE, _NONE, _NONE),
        (canonical, _FOUND, _B, _VECTOR, _F, _VECTOR, _VECTOR, _VECTOR),
    )


_ARMS, _TARGETS = _signatures(_NONE), _signatures(_MATRIX)
_THIS_PROCESS: dict[str, dict[str, tuple[Any, ...]]] = {
    "arms": {"minimise": _ARMS[1], "quotient": (_MATRIX, _VECTOR, _MATRIX), "closed_form": (_MATRIX, _VECTOR)},
    "targets": {"minimise_targets": _TARGETS[1]},
}
_HELPER_PROCESS: dict[str, dict[str, tuple[Any, ...]]] = {
    "arms": {
        "begin": _ARMS[0],
        "certify": _ARMS[2],
        "prepare": (_MATRIX, _I, _VECTOR, _VECTOR, _VECTOR, _F, _B, _VECTOR, _VECTOR),
        "units": (_CONSTANT, _MATRIX),
    },
    "targets": {"begin_targets": _TARGETS[0], "certify_targets": _TARGETS[2]},
}
FORMS = tuple(_THIS_PROCESS)


def _compile(entries: dict[str, tuple[Any, ...]]) -> None:
    with garbage_collection_off():
        for name, signature in entries.items():
            globals()[name].compile(signature)


def compile_in_helper(*forms: str) -> None:
    """Compile the functions of `_HELPER_PROCESS`; the process that runs `make` then finds them on disk."""
    for form in forms:
        _compile(_HELPER_PROCESS[form])


def load(form: str) -> bool:
    """Load the machine code of a form from disk; False where something is missing. Nothing is compiled."""
    entries = _THIS_PROCESS[form] | _HELPER_PROCESS[form]
    return all(loaded(globals()[name], signature) for name, signature in entries.items())


def make(helper: Helper | None, *forms: str) -> None:
    """Compile what is not on disk yet, with the help of a process that runs `compile_in_helper`."""
    started = time.perf_counter()
    for form in forms:
        _compile(_THIS_PROCESS[form])
    if helper is not None:  # it has half of the work; if it takes much longer something is wrong with it
        helper.wait(5.0 + time.perf_counter() - started)
    for form in forms:
        _compile(_HELPER_PROCESS[form])
