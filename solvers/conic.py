r"""Conic back end: the canonical program as a semidefinite program, handed to Clarabel, SCS or MOSEK through cvxpy.

An independent check on the package's own solvers, and the program that a user would write in cvxpy. Two formulations
of  min Σα  s.t.  b_jᵀ M(α)^-1 b_j <= 1,  0 <= α <= u,  with M(α) = BᵀB + Σ α_i a_i a_iᵀ:

- compact:  [[M(α), V], [Vᵀ, S]] ⪰ 0,  c_jᵀ S c_j <= 1 for all j, where b_j = V c_j and V is an orthonormal basis of the
  targets' span (V = I when they span): one cone of order at most 2r and m scalar rows, whose duals are λ;
- lmi:  [[M(α), b_j], [b_jᵀ, 1]] ⪰ 0 for each j: m cones of order r + 1. With a dual matrix λ [[y yᵀ, −y], [−yᵀ, 1]] the
  Lagrangian becomes the lower bound of docs/math.md section 4, so λ_j is its last entry.

Conic solvers stop at absolute residuals, so units decide how good their answer is: the data are written in units in
which the value is about 1 and in the basis in which M(α) = I at the best α known; then the answer gives the next basis.
A solver's own status proves nothing: the monitor certifies every answer.
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from allocopt.base.errors import LicenseMissing, MethodUnavailable, SolverFailed
from allocopt.base.validation import Array
from allocopt.certify.canonical import Canonical, whitener
from allocopt.solvers.interior_point import starting_point
from allocopt.solvers.monitor import Monitor, OutOfTime
from allocopt.solvers.newton import limited
from allocopt.solvers.newton.within_limits import moved_inside
from allocopt.solvers.settings import ConicSettings

__all__ = ["mosek_status", "solve"]

_ROUNDING_ROOM = 1e-12  # relative, so that what is at most a cost stays so with the margins of the certificate
_MOSEK_LICENCE_HELP = (
    "put mosek.lic in the folder 'mosek' of your home directory or point MOSEKLM_LICENSE_FILE to it "
    "(trial and free academic licences: https://www.mosek.com/products/trial), or use solver='CLARABEL'"
)


def solve(
    problem: Canonical,
    monitor: Monitor,
    settings: ConicSettings = ConicSettings(),  # noqa: B008  # it is frozen
) -> dict[str, float | str]:
    """Solve a few times, each in the basis that the answer before it suggests; every answer goes to ``monitor``."""
    name = settings.solver
    cp = _cvxpy()
    _require(cp, name)

    limits = problem.limits
    first = best = starting_point(problem) if limits is None else limited.starting_point(problem)
    gap = monitor.report(first, np.ones(len(problem.targets)), 0).gap
    iterations, rounds, status = 0, 0, "not started"
    while rounds < settings.max_rounds and not monitor.done:
        monitor.tick()
        try:
            model = _model(cp, problem, (1.0 - settings.mix) * best + settings.mix * first, settings)
            answer = _solve_model(model, problem, settings, monitor)
        except SolverFailed:
            monitor.tick()  # a solver that ran out of time is not a failure
            if rounds:
                break
            raise
        rounds += 1
        iterations += answer.iterations
        status = answer.status
        bounds = monitor.report(answer.alpha, answer.multipliers, iterations, answer.row_multipliers)
        if limits is not None and answer.row_multipliers is not None and not np.isfinite(bounds.upper):
            pair = answer.multipliers, answer.row_multipliers
            inside = moved_inside(problem, monitor, limited.Triple(answer.alpha, *pair, bounds.gap, iterations))
            bounds = bounds if inside is None else monitor.report(inside, pair[0], iterations, pair[1])
        if not bounds.gap < settings.worthwhile * gap:
            break
        best, gap = bounds.alpha, bounds.gap
    return {"iterations": iterations, "rounds": rounds, "solver": name, "solver_status": status}


def mosek_status() -> str | None:
    """None when MOSEK can be used, else why not: "not installed" or "no licence".

    cvxpy lists MOSEK as installed without a licence and then fails with an error that is not its own, so this asks
    MOSEK itself to solve an empty task.
    """
    try:
        mosek = importlib.import_module("mosek")
    except ImportError:
        return "not installed"
    try:
        with mosek.Env() as environment, environment.Task(0, 0) as task:
            task.optimize()
    except mosek.Error:
        return "no licence"
    return None


def _cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError:
        raise MethodUnavailable("method 'conic' needs cvxpy: pip install cvxpy clarabel") from None
    return cvxpy


def _require(cp: Any, name: str) -> None:
    """Raise, with what to do about it, when a solver cannot be used here."""
    if name == "MOSEK":
        reason = mosek_status()
        if reason == "not installed":
            raise MethodUnavailable(
                "solver 'MOSEK' is not installed: pip install 'allocopt[mosek]', or solver='CLARABEL'"
            )
        if reason is not None:
            raise LicenseMissing(f"solver 'MOSEK' is installed but has no licence: {_MOSEK_LICENCE_HELP}")
    elif name not in cp.installed_solvers():
        raise MethodUnavailable(f"solver {name!r} is not installed: pip install {name.lower()}")


@dataclass(frozen=True, eq=False)
class _Answer:
    alpha: Array
    multipliers: Array
    iterations: int
    status: str
    row_multipliers: Array | None = None


@dataclass(frozen=True, eq=False)
class _Model:
    """A cvxpy problem, its variable (α in ``unit``) and the constraints whose duals are λ."""

    problem: Any
    variable: Any
    targets: list[Any]
    unit: float
    rows: Any = None
    """The linear constraints, each divided by its ``sizes``."""
    sizes: Array | None = None


def _model(cp: Any, problem: Canonical, alpha: Array, settings: ConicSettings) -> _Model:
    """The program in units in which ``alpha`` costs 1 and in the basis in which M(alpha) = I."""
    linear_program = not len(problem.targets)  # the free arms show all that is asked: no basis matters
    basis = np.eye(problem.rank) if linear_program else whitener(problem, alpha)
    if basis is None:
        raise SolverFailed("the information matrix is numerically singular")
    unit = float(alpha.sum()) or 1.0
    features = problem.features @ basis * np.sqrt(unit)
    base = problem.compact_base @ basis
    targets = problem.targets @ basis
    r = problem.rank

    x = cp.Variable(problem.n_variables)
    # all of Σ x_i a_i a_iᵀ as one constant matrix times x: a sum of k terms would take cvxpy longer than the solve
    information = cp.reshape(_matrices(problem, features).T @ x + (base.T @ base).ravel(), (r, r), order="C")
    bounds = [x >= 0]
    if problem.upper is not None:
        finite = np.flatnonzero(np.isfinite(problem.upper))
        bounds.append(x[finite] <= problem.upper[finite] / unit)
    linear, sizes = None, None
    if problem.limits is not None:
        matrix = problem.limits.dense() * unit
        sizes = np.maximum(np.abs(matrix).max(axis=1), np.abs(problem.limits.room))
        sizes[sizes == 0.0] = 1.0
        linear = (matrix / sizes[:, None]) @ x <= problem.limits.room / sizes
        bounds.append(linear)
    if linear_program:
        rows, constraints = [], bounds
    elif settings.formulation == "compact":
        span = _span(targets, settings.span)
        q = span.shape[1]
        bound = cp.Variable((q, q), symmetric=True)
        cone = cp.bmat([[information, span], [span.T, bound]]) >> 0
        rows = [_squares(targets @ span) @ cp.reshape(bound, (q * q,), order="C") <= 1]
        constraints = [*bounds, cone, *rows]
    else:
        one = np.ones((1, 1))
        rows = [cp.bmat([[information, b[:, None]], [b[None, :], one]]) >> 0 for b in targets]
        constraints = [*bounds, *rows]
    cost = cp.sum(x) if problem.costs is None else problem.costs @ x
    return _Model(cp.Problem(cp.Minimize(cost), constraints), x, rows, unit, linear, sizes)


def _matrices(problem: Canonical, rows: Array) -> Array:
    """Row i is the matrix that variable i adds, Σ v vᵀ over its rows v of ``rows``, flattened."""
    squares = _squares(rows)
    return squares if problem.owners is None else np.add.reduceat(squares, problem.starts, axis=0)


def _squares(rows: Array) -> Array:
    """Row i is the matrix v vᵀ of row v = rows[i], flattened."""
    result: Array = np.einsum("ij,il->ijl", rows, rows).reshape(len(rows), -1)
    return result


def _span(targets: Array, least: float) -> Array:
    """An orthonormal basis (columns) of the targets' span; outside it S would have to be infinite."""
    _, values, vectors = np.linalg.svd(targets, full_matrices=False)
    inside = values > least * values[0]
    if len(values) == targets.shape[1] and inside.all():
        return np.eye(targets.shape[1])
    result: Array = vectors[inside].T
    return result


def _solve_model(model: _Model, problem: Canonical, settings: ConicSettings, monitor: Monitor) -> _Answer:
    """One conic solve; `SolverFailed` with the solver's own reason where it returns no answer."""
    name = settings.solver
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the certificate says how inaccurate
        try:
            model.problem.get_problem_data(name)  # cvxpy keeps the result; its time must not count as the solver's
            monitor.tick()
            model.problem.solve(solver=name, verbose=False, **_options(settings, monitor))
        except (OutOfTime, KeyboardInterrupt, SystemExit):
            raise
        except (
            BaseException
        ) as error:  # each solver has exceptions of its own; a panic of Clarabel's Rust is no Exception
            raise SolverFailed(f"{name}: {str(error).strip() or type(error).__name__}") from error
    status = str(model.problem.status)
    alpha, duals = model.variable.value, [row.dual_value for row in model.targets]
    if alpha is None or any(dual is None for dual in duals):
        raise SolverFailed(f"{name} ended without an answer, with status {status!r}")
    # one vector of scalar duals (compact), or one matrix for each target whose last entry is λ_j (lmi); none without targets
    scalar = len(duals) == 1 and np.ndim(duals[0]) == 1
    multipliers = np.asarray(duals[0]) if scalar else np.array([dual[-1, -1] for dual in duals])
    if not (np.all(np.isfinite(alpha)) and np.all(np.isfinite(multipliers))):
        raise SolverFailed(f"{name} ended with numbers that are not finite, with status {status!r}")
    alpha = np.maximum(alpha, 0.0) * model.unit
    if problem.upper is not None:
        alpha = np.minimum(alpha, problem.upper)
    steps = int(model.problem.solver_stats.num_iters or 0)
    mu = None
    if model.rows is not None and model.rows.dual_value is not None:
        mu = _payable(problem, np.maximum(np.asarray(model.rows.dual_value), 0.0) * model.unit / model.sizes)
    return _Answer(alpha, np.maximum(multipliers, 0.0) * model.unit, steps, status, mu)


def _payable(problem: Canonical, mu: Array) -> Array:
    """μ, or so little less of it that no arm without upper bound earns more by the rows than it costs: such a μ proves nothing."""
    assert problem.limits is not None
    costs = np.ones(problem.n_variables) if problem.costs is None else problem.costs
    earned = -problem.limits.charged(mu)
    dear = earned > 0 if problem.upper is None else (earned > 0) & np.isinf(problem.upper)
    share = float((costs[dear] / earned[dear]).min(initial=np.inf))
    result: Array = mu * (share * (1.0 - _ROUNDING_ROOM)) if share < 1.0 + _ROUNDING_ROOM else mu
    return result


def _options(settings: ConicSettings, monitor: Monitor) -> dict[str, Any]:
    """Tolerances from the gap that is asked for, and the time that is left, under each solver's own option names."""
    name = settings.solver
    tol = min(max(settings.tol_fraction * monitor.tol, settings.tightest), settings.loosest)
    seconds = monitor.seconds_left
    limited = np.isfinite(seconds)
    if name == "CLARABEL":
        options = {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol, "tol_ktratio": tol, "accept_unknown": True}
        return {**options, "time_limit": seconds} if limited else options
    if name == "SCS":
        eps = max(tol, settings.scs_tightest)
        options = {"eps_abs": eps, "eps_rel": eps, "max_iters": settings.scs_iterations}
        return {**options, "time_limit_secs": seconds} if limited else options
    parameters = {f"MSK_DPAR_INTPNT_CO_TOL_{kind}": tol for kind in ("PFEAS", "DFEAS", "REL_GAP", "MU_RED")}
    if limited:
        parameters["MSK_DPAR_OPTIMIZER_MAX_TIME"] = seconds
    return {"mosek_params": parameters, "accept_unknown": True}
