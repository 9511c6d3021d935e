r"""Small regret and horizon programs, compiled: quotient, Newton's method and certificate without a single numpy call.

The program is the one of `program.horizon_at_level`: costs Δ, radii Δ²/level, no bounds. Its targets are its features
times a number, b_j = √(level/Δ_j) a_j, so one matrix K = a M^-1 aᵀ holds everything that Newton's method asks for.
The method is that of `solvers.interior_point`, the certificate that of `canonical.evaluate` with its allowances.

Nothing is forced: whatever is out of the ordinary (rank-deficient arms, an information matrix that Cholesky's
factorisation does not survive, a gap that does not close) ends with a code, and the caller takes the ordinary path.

This module needs numba and is loaded when first used. Machine code is kept on disk, beside this file where that is
writable. It holds the tolerances as they were when it was compiled, and numba only watches this file: after a change of
tolerances.py, change this file too (or delete __pycache__).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from allocopt.tolerances import DATA, EPS, LARGEST, RANK, SUPPORT, ZERO_ROW

__all__ = [
    "CERTIFIED",
    "INFO",
    "INVALID",
    "NOTHING",
    "NOT_CONVERGED",
    "REASONS",
    "SINGULAR",
    "UNUSUAL",
    "quotient",
    "solve_quotient",
]

CERTIFIED = 0
INVALID = 1
NOTHING = 2
UNUSUAL = 3
SINGULAR = 4
NOT_CONVERGED = 5
REASONS = {
    INVALID: "gaps that are not finite, negative, all zero or out of range",
    NOTHING: "nothing to explore: the free arms span everything",
    UNUSUAL: "arms that are rank-deficient, or nearly so",
    SINGULAR: "a numerically singular information or Newton matrix",
    NOT_CONVERGED: "the compiled method did not reach the tolerance",
}
INFO = 5  # what a solve reports beside its code: lower, upper, rounding, steps, 1 if it was warm-started

_LEAST_PIVOT = 1e-7  # of equilibrated rows: below it, rank is a matter of judgement, which is `reduction.reduce`'s
_LEAST_DIAGONAL = 1e-6  # of the scaled Cholesky factor of M: below it M has lost twelve digits
_NEAR_IDENTITY = 0.1  # distance from I after the first change of basis that the second one removes safely
_DIAGONAL_SHIFT = 1e-14  # these and the next are from solvers.interior_point, where their reasons are
_BOUNDARY = 0.995
_STALLED = 6  # less patient than there: what does not converge at once is for the ordinary path
_LEAST_CENTRE = 0.01
_ENOUGH = 0.25
_COUNTS = 0.1
_GROWTH = 2.0
_MUCH = 100.0
_ROOM = 0.8
_MOST_STEPS = 60  # a dozen is typical; whatever needs more than this is for the ordinary path
_LEAST_LIFT = 1e-3  # a warm start closer to the boundary than this is a trap
_TOO_FAR = 0.3  # relative gap of the last solution for the new gaps above which a cold start is as quick
_SPLITTER = 134217729.0  # 2^27 + 1, see allocopt.precise

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _compiled(function: _Function) -> _Function:
    """`numba.njit` with a type, for functions that only compiled ones call: no wrappers, no file of its own."""
    options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(_Function, numba.njit(nogil=True, error_model="numpy", **options)(function))


def _entry(function: _Function) -> _Function:
    """`numba.njit` with a type, for functions called from Python; kept on disk wherever a folder is writable."""
    try:
        return cast(_Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # "cannot cache function: no locator available"
        return cast(_Function, numba.njit(nogil=True, error_model="numpy")(function))


# Double-double numbers, as in allocopt.precise: no fused multiply-add is assumed, and none is allowed to appear


@_compiled
def _product(a: Any, b: Any) -> Any:
    """a·b as an unevaluated sum."""
    p = a * b
    ah = _SPLITTER * a
    ah = ah - (ah - a)
    al = a - ah
    bh = _SPLITTER * b
    bh = bh - (bh - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


@_compiled
def _minus_multiple(x: Any, xl: Any, f: Any, fl: Any, y: Any, yl: Any) -> Any:
    """x − f·y for double-doubles."""
    p, e = _product(f, y)
    e += f * yl + fl * y
    s = x - p
    t = s - x
    e = ((x - (s - t)) + (-p - t)) + (xl - e)
    high = s + e
    return high, e - (high - s)


@_compiled
def _ratio(x: Any, xl: Any, y: Any, yl: Any) -> Any:
    """x/y for double-doubles."""
    q = x / y
    rest, _ = _minus_multiple(x, xl, q, 0.0, y, yl)
    low = rest / y
    high = q + low
    return high, low - (high - q)


@_compiled
def _pivot(work: Any, least: Any) -> Any:
    """One step of elimination with complete pivoting: the place i·width + j of the pivot, −1 if there is none left.

    −2 where the pivot is neither clearly zero nor clearly not.
    """
    height, width = work.shape
    top = 0.0
    bi = bj = 0
    for i in range(height):
        for c in range(width):
            if abs(work[i, c]) > top:
                top = abs(work[i, c])
                bi = i
                bj = c
    if top <= least:
        return -1
    if not top >= _LEAST_PIVOT:
        return -2
    for i in range(height):
        f = work[i, bj] / work[bi, bj]
        if i != bi and f != 0.0:
            for c in range(width):
                work[i, c] -= f * work[bi, c]
            work[i, bj] = 0.0
    for c in range(width):
        work[bi, c] = 0.0
    return bi * width + bj


@_compiled
def _equilibrated_rows(rows: Any, width: Any) -> Any:
    """The first ``width`` columns, every row divided by its largest entry."""
    height = len(rows)
    result = np.empty((height, width))
    for i in range(height):
        top = 1e-300
        for c in range(width):
            top = max(top, abs(rows[i, c]))
        for c in range(width):
            result[i, c] = rows[i, c] / top
    return result


@_entry
def quotient(arms: Any, gaps: Any, rows: Any) -> Any:
    """Arms modulo those of gap 0, in double-double, into the first r columns of ``rows``; r, or minus a code.

    Columns are brought to about 1 by powers of two; rows of gap 0 and multiples of free directions become zero.
    """
    k, d = arms.shape
    # which free arms span all of them, and the column that each eliminates
    work = _equilibrated_rows(arms, d)
    for i in range(k):
        if gaps[i] != 0.0:
            for c in range(d):
                work[i, c] = 0.0
    pivot_arm = np.empty(d, np.int64)
    pivot_column = np.empty(d, np.int64)
    kept = np.empty(d, np.bool_)
    for c in range(d):
        kept[c] = True
    found = 0
    while found < d:
        place = _pivot(work, RANK)
        if place == -2:
            return -UNUSUAL
        if place == -1:
            break
        pivot_arm[found] = place // d
        pivot_column[found] = place % d
        kept[place % d] = False
        found += 1
    r = d - found
    if r == 0:
        return -NOTHING
    high = np.empty((found + 1, d))
    low = np.empty((found + 1, d))
    something = False
    for n in range(found + k):
        i = pivot_arm[n] if n < found else n - found
        at = min(n, found)
        size = 0.0
        for c in range(d):
            high[at, c] = arms[i, c]
            low[at, c] = 0.0
            size = max(size, abs(arms[i, c]))
        for p in range(at):
            column = pivot_column[p]
            f, fl = _ratio(high[at, column], low[at, column], high[p, column], low[p, column])
            for c in range(d):
                high[at, c], low[at, c] = _minus_multiple(high[at, c], low[at, c], f, fl, high[p, c], low[p, c])
            high[at, column] = 0.0
            low[at, column] = 0.0
        if n >= found:
            left = 0.0
            out = 0
            for c in range(d):
                if kept[c]:
                    rows[i, out] = high[at, c]
                    left = max(left, abs(high[at, c]))
                    out += 1
            if left <= ZERO_ROW * size or gaps[i] == 0.0:
                for c in range(r):
                    rows[i, c] = 0.0
            else:
                something = True
    if not something:
        return -NOTHING
    for c in range(r):
        top = 0.0
        for i in range(k):
            top = max(top, abs(rows[i, c]))
        if not 0.0 < top < np.inf:
            return -UNUSUAL
        factor = math.ldexp(1.0, -math.frexp(top)[1])
        for i in range(k):
            rows[i, c] *= factor
    work = _equilibrated_rows(rows, r)
    for _ in range(r):
        if _pivot(work, 0.0) < 0:
            return -UNUSUAL
    return r


# Small dense linear algebra. Matrices of rows are held transposed (r × k), so that inner loops run over the arms.


@_compiled
def _whitener(rows: Any, alpha: Any, basis: Any, work: Any) -> Any:
    """Upper triangular ``basis`` with basisᵀ M(α) basis = I up to rounding; False where M is nearly singular."""
    r, k = rows.shape
    lower, inverse = work[0], work[1]
    for c in range(r):
        for e in range(c + 1):
            total = 0.0
            for i in range(k):
                total += alpha[i] * rows[c, i] * rows[e, i]
            lower[c, e] = total
    for c in range(r):
        if not (lower[c, c] > 0.0 and lower[c, c] < 1e300):
            return False
        basis[c, c] = 1.0 / math.sqrt(lower[c, c])
    for c in range(r):  # Cholesky of the matrix scaled to a diagonal of ones
        for e in range(c):
            total = lower[c, e] * basis[c, c] * basis[e, e]
            for f in range(e):
                total -= lower[c, f] * lower[e, f]
            lower[c, e] = total / lower[e, e]
        total = 1.0
        for f in range(c):
            total -= lower[c, f] * lower[c, f]
        if not total > _LEAST_DIAGONAL * _LEAST_DIAGONAL:
            return False
        lower[c, c] = math.sqrt(total)
    for c in range(r):
        inverse[c, c] = 1.0 / lower[c, c]
        for e in range(c):
            total = 0.0
            for f in range(e, c):
                total += lower[c, f] * inverse[f, e]
            inverse[c, e] = -total * inverse[c, c]
    for c in range(r - 1, -1, -1):
        scale = basis[c, c]
        for e in range(c, r):
            basis[c, e] = scale * inverse[e, c]
        for e in range(c):
            basis[c, e] = 0.0
    return True


@_compiled
def _whiten(rows: Any, alpha: Any, white: Any, norms: Any, basis: Any, work: Any) -> Any:
    """``white``: the rows in a basis in which M(α) = I, and their squared lengths; False where M is nearly singular."""
    if not _whitener(rows, alpha, basis, work):
        return False
    r, k = rows.shape
    for i in range(k):
        norms[i] = 0.0
    for c in range(r):
        for i in range(k):
            total = 0.0
            for e in range(c + 1):
                total += basis[e, c] * rows[e, i]
            white[c, i] = total
            norms[i] += total * total
    return True


@_compiled
def _priced(white: Any, weight: Any, lam: Any, prices: Any) -> Any:
    """p_i = Σ_j λ_j (a_i·b_j)² in the basis in which M = I; their maximum."""
    r, k = white.shape
    top = 0.0
    for i in range(k):
        price = 0.0
        for n in range(k):
            if lam[n] > 0.0:
                product = 0.0
                for c in range(r):
                    product += white[c, i] * white[c, n]
                price += lam[n] * weight[n] * product * product
        prices[i] = price
        top = max(top, price)
    return top


@_compiled
def _factorised(matrix: Any, scale: Any, factor: Any) -> Any:
    """Cholesky of the symmetrically scaled Newton matrix (its lower triangle); False if it is not definite."""
    k = len(scale)
    for i in range(k):
        scale[i] = 1.0 / math.sqrt(max(matrix[i, i], 1e-300))
    shift = _DIAGONAL_SHIFT
    while shift < 1.0:
        for i in range(k):
            for n in range(i):
                factor[i, n] = matrix[i, n] * scale[i] * scale[n]
            factor[i, i] = 1.0 + shift
        good = True
        for i in range(k):
            for n in range(i):
                total = factor[i, n]
                for c in range(n):
                    total -= factor[i, c] * factor[n, c]
                factor[i, n] = total * factor[n, n]  # the diagonal holds its inverse
            total = factor[i, i]
            for c in range(i):
                total -= factor[i, c] * factor[i, c]
            if not total > 0.0:
                good = False
                break
            factor[i, i] = 1.0 / math.sqrt(total)
        if good:
            return True
        shift *= 100.0
    return False


@_compiled
def _applied(factor: Any, scale: Any, right: Any, out: Any) -> Any:
    k = len(scale)
    for i in range(k):
        total = right[i] * scale[i]
        for c in range(i):
            total -= factor[i, c] * out[c]
        out[i] = total * factor[i, i]
    for i in range(k - 1, -1, -1):
        value = out[i] * factor[i, i]
        out[i] = value
        for c in range(i):
            out[c] -= factor[i, c] * value
    for i in range(k):
        out[i] *= scale[i]


@_compiled
def _solved(matrix: Any, factor: Any, scale: Any, right: Any, out: Any, rest: Any, correction: Any) -> Any:
    """The Newton step for one right-hand side, with one step of iterative refinement."""
    k = len(scale)
    _applied(factor, scale, right, out)
    for i in range(k):
        rest[i] = right[i]
    for i in range(k):  # only the lower triangle of the matrix is there
        total = matrix[i, i] * out[i]
        x = out[i]
        for c in range(i):
            total += matrix[i, c] * out[c]
            rest[c] -= matrix[i, c] * x
        rest[i] -= total
    _applied(factor, scale, rest, correction)
    for i in range(k):
        out[i] += correction[i]


@_compiled
def _certificate(
    rows: Any, weight: Any, alpha: Any, lam: Any, info: Any, basis: Any, work: Any, first: Any, white: Any, vectors: Any
) -> Any:
    """Both bounds of `canonical.evaluate`, into ``info``; scales α to feasibility and λ to the dual's scale."""
    r, k = rows.shape
    norms, errors, prices = vectors[0], vectors[1], vectors[2]
    info[0], info[1], info[2] = 0.0, np.inf, np.inf
    if not _whiten(rows, alpha, first, norms, basis, work):
        return
    # rounding: a row x becomes xB with an error of a few eps·|x||B| entry by entry, and again in the second change of basis
    for i in range(k):
        size = 0.0
        for c in range(r):
            entry = 0.0
            for e in range(c + 1):
                entry += abs(rows[e, i] * basis[e, c])
            size += entry * entry
        errors[i] = EPS * (4.0 * math.sqrt(r) + r) * math.sqrt(size)
    # a second, nearly orthogonal, change of basis removes what the first one left
    if not _whiten(first, alpha, white, norms, basis, work):
        return
    for c in range(r):
        for e in range(c, r):
            if not abs(basis[c, e] - (1.0 if c == e else 0.0)) <= _NEAR_IDENTITY / r:
                return
    drift = 4.0 * EPS * r
    strength = total = dual_drift = cost = 0.0
    for i in range(k):
        error = errors[i] / math.sqrt(norms[i])
        errors[i] = error
        g = weight[i] * norms[i]
        drift += 2.0 * alpha[i] * norms[i] * error
        strength += lam[i] * g
        dual_drift += 2.0 * lam[i] * g * error
        total += lam[i]
        cost += alpha[i]
    if not (drift <= 0.1 and 0.0 < strength < np.inf):
        return
    dual_drift = dual_drift / strength + 2.0 * drift
    _priced(white, weight, lam, prices)
    worst = top = 0.0
    for i in range(k):
        worst = max(worst, weight[i] * norms[i] * (1.0 + 2.0 * errors[i] + drift))
        # the second term is the rounding of the scalar products themselves, by Cauchy and Schwarz
        padded = prices[i] * (1.0 + min(2.0 * errors[i] + dual_drift, 1e3))
        top = max(top, padded + 4.0 * r * EPS * math.sqrt(prices[i] * norms[i] * strength))
    if not (0.0 < top < np.inf and worst < np.inf):
        return
    # with λ as it is: value >= strength²/(total·top)
    scale = strength * strength / (total * top)
    for i in range(k):
        alpha[i] *= worst
        lam[i] *= scale / total
    info[0] = scale * (1.0 - min(2.0 * dual_drift, 1.0)) * (1.0 - DATA)
    info[1] = cost * worst * (1.0 + DATA)
    info[2] = max(drift, dual_drift) + 2.0 * DATA


@_compiled
def _start(
    rows: Any, weight: Any, alpha: Any, lam: Any, warm: Any, basis: Any, work: Any, white: Any, vectors: Any
) -> Any:
    """An interior α, with ``white`` to match; how far from optimal it is taken to be (0.5 if cold), −1 if singular.

    Cold: every arm alike in the metric of Σ b bᵀ, cut down where that makes a great difference. Warm: the known pair,
    moved into the interior by as much as it is away from optimal.
    """
    k = len(alpha)
    norms, alike = vectors[0], vectors[1]
    cost = total = strength = top = 0.0
    first = best = middle = cap = chosen = np.inf
    near = 0.5
    attempt = 0 if warm else 2
    while attempt < 7:
        # 0: the old pair; 1: the same, lifted; 2: the metric; 3, 4, 5: three caps; 6: the best of them
        if attempt == 2:
            for i in range(k):
                alpha[i] = weight[i]
        elif attempt > 2:
            if attempt == 4:
                cap = middle
            elif attempt == 5:
                cap = top
            elif attempt == 6:
                cap = np.inf if first <= _MUCH * best else chosen
            for i in range(k):
                alpha[i] = min(alike[i], cap)
        else:
            cost = 0.0
            for i in range(k):
                cost += alpha[i]
            for i in range(k):
                alpha[i] += (1e-9 if attempt == 0 else near) * cost / k
        worst = cost = 0.0
        good = _whiten(rows, alpha, white, norms, basis, work)
        for i in range(k):
            worst = max(worst, weight[i] * norms[i])
            cost += alpha[i]
        if not (good and worst < np.inf):
            worst = np.inf
        if attempt == 0:
            for i in range(k):
                strength += lam[i] * weight[i] * norms[i]
                total += lam[i]
            near = cost * worst * total * _priced(white, weight, lam, alike) / (strength * strength) - 1.0
            attempt = 1 if near < _TOO_FAR else 2
            near = max(near, _LEAST_LIFT) if attempt == 1 else 0.5
            continue
        if attempt == 2:
            if not good:
                return -1.0
            middle = 0.0
            top = np.inf
            for i in range(k):
                alike[i] = 1.0 / norms[i]
                middle += math.log(alike[i])
                top = min(top, alike[i])
            middle = math.exp(middle / k)
        elif attempt == 3:
            first = best = cost * worst
        elif cost * worst < best:
            best = cost * worst
            chosen = cap
        if attempt == 1 or attempt == 6:
            if not worst < np.inf:
                return -1.0
            for i in range(k):
                alpha[i] *= worst * (1.0 + near if attempt == 1 else 1.0 / _ROOM)
            break
        attempt += 1
    return near if attempt == 1 else 0.5


@_compiled
def _system(
    white: Any,
    weight: Any,
    g: Any,
    nu: Any,
    z: Any,
    s: Any,
    alpha: Any,
    gram: Any,
    jacobian: Any,
    matrix: Any,
    image: Any,
    inner: Any,
) -> Any:
    """Newton's matrix, its lower triangle: 2 K∘(a P aᵀ) + Jᵀ diag(ν/s − 2νg) J + diag(z/α)."""
    r, k = white.shape
    for c in range(r):
        for e in range(c + 1):
            total = 0.0
            for i in range(k):
                total += nu[i] / (g[i] * g[i]) * weight[i] * white[c, i] * white[e, i]
            inner[c, e] = total
            inner[e, c] = total
    for i in range(k):
        for c in range(r):
            total = 0.0
            for e in range(r):
                total += inner[c, e] * white[e, i]
            image[c] = 2.0 * total
        for n in range(i + 1):
            total = 0.0
            for c in range(r):
                total += image[c] * white[c, n]
            matrix[i, n] = total * gram[i, n]
        matrix[i, i] += z[i] / alpha[i]
    for j in range(k):
        weight_j = nu[j] / s[j] - 2.0 * nu[j] * g[j]
        for i in range(k):
            x = weight_j * jacobian[j, i]
            for n in range(i + 1):
                matrix[i, n] += x * jacobian[j, n]


@_compiled
def _derivatives(white: Any, weight: Any, g: Any, gram: Any, jacobian: Any) -> Any:
    """K, ∂h/∂α, and g from the squared lengths that it holds; the largest g."""
    r, k = white.shape
    worst = 0.0
    for i in range(k):
        x = 1.0 / (math.sqrt(weight[i]) * g[i])
        for n in range(k):
            total = 0.0
            for c in range(r):
                total += white[c, i] * white[c, n]
            gram[i, n] = total
            jacobian[i, n] = (x * total) * (x * total)
        g[i] *= weight[i]
        worst = max(worst, g[i])
    return worst


@_compiled
def _own_gap(g: Any, nu: Any, jacobian: Any, worst: Any, prices: Any, kept: Any, dropped: Any) -> Any:
    """Prices of all arms, λ without the constraints of tiny g, and the factor that makes Σα·max g a gap."""
    k = len(g)
    for n in range(k):
        prices[n] = 0.0
        dropped[n] = 0.0
    strength = total = 0.0
    for i in range(k):
        x = nu[i]
        for n in range(k):
            prices[n] += x * jacobian[i, n]
        if g[i] > _COUNTS * worst:
            kept[i] = x / (g[i] * g[i])
            strength += kept[i] * g[i]
            total += kept[i]
        else:
            kept[i] = 0.0
            for n in range(k):
                dropped[n] += x * jacobian[i, n]  # what the dual is better off without
    top = 0.0
    for n in range(k):
        top = max(top, prices[n] - dropped[n])
    return worst * total * top / (strength * strength)


@_compiled
def _direction(
    jacobian: Any,
    at: Any,
    s: Any,
    nu: Any,
    z: Any,
    to_s: Any,
    to_z: Any,
    primal_residual: Any,
    right: Any,
    d_alpha: Any,
    d_s: Any,
    d_nu: Any,
    d_z: Any,
    solver: Any,
) -> Any:
    """The step that changes the products (ν s, z α) by −to, to first order; how fast the boundaries come near."""
    k = len(at)
    matrix, factor, scale, rest, correction = solver
    for j in range(k):
        x = (nu[j] * primal_residual[j] - to_s[j]) / s[j]
        right[j] -= to_z[j] / at[j]
        d_s[j] = x
    for j in range(k):
        x = d_s[j]
        for i in range(k):
            right[i] += x * jacobian[j, i]
    _solved(matrix, factor, scale, right, d_alpha, rest, correction)
    primal = dual = growth = 0.0
    for j in range(k):
        x = -primal_residual[j]
        for i in range(k):
            x += jacobian[j, i] * d_alpha[i]
        d_s[j] = x
        d_nu[j] = -(to_s[j] + nu[j] * x) / s[j]
        d_z[j] = -(to_z[j] + z[j] * d_alpha[j]) / at[j]
        primal = max(primal, -d_alpha[j] / at[j], -x / s[j])
        dual = max(dual, -d_nu[j] / nu[j], -d_z[j] / z[j])
        growth += d_alpha[j]
    return primal, dual, growth


@_compiled
def _newton(
    rows: Any,
    weight: Any,
    alpha: Any,
    lam: Any,
    near: Any,
    tol: Any,
    basis: Any,
    work: Any,
    white: Any,
    vectors: Any,
    squares: Any,
) -> Any:
    """Mehrotra's predictor-corrector from ``alpha`` (of cost 1, and M = I); leaves the best pair there. Steps, or −1."""
    k = len(alpha)
    g, s, nu, z = vectors[0], vectors[1], vectors[2], vectors[3]
    d_alpha, d_s, d_nu, d_z = vectors[4], vectors[5], vectors[6], vectors[7]
    to_s, to_z, right, prices = vectors[8], vectors[9], vectors[10], vectors[11]
    primal_residual, at, kept, scale = vectors[12], vectors[13], vectors[14], vectors[15]
    matrix, factor, jacobian, gram = squares[0], squares[1], squares[2], squares[3]
    solver = (matrix, factor, scale, vectors[16], vectors[17])
    for i in range(k):
        at[i] = alpha[i]
    pairs = 2.0 * k
    best_gap = least_distance = np.inf
    since_better = steps = 0
    while _whiten(rows, at, white, g, basis, work):
        worst = _derivatives(white, weight, g, gram, jacobian)
        if steps == 0:
            for i in range(k):
                s[i] = max(1.0 / g[i] - 1.0, min(near, 0.1))
                nu[i] = near / pairs / s[i]
                z[i] = near / pairs / at[i]
                if near < 0.5:
                    nu[i] = max(nu[i], lam[i] * g[i] * g[i])
        gap = _own_gap(g, nu, jacobian, worst, prices, kept, right)
        cost = mu = distance = 0.0
        for i in range(k):
            if near < 0.5 and steps == 0:
                z[i] = max(z[i], 1.0 - prices[i])
            primal_residual[i] = s[i] - 1.0 / g[i] + 1.0
            to_s[i] = nu[i] * s[i]
            to_z[i] = z[i] * at[i]
            mu += to_s[i] + to_z[i]
            cost += at[i]
            distance += abs(1.0 - prices[i] - z[i]) * at[i] + abs(primal_residual[i]) * nu[i]
        distance += mu
        mu /= pairs
        gap = cost * gap - 1.0
        if not abs(gap) < np.inf:
            break
        since_better += 1
        if gap < 0.5 * best_gap or distance < 0.5 * least_distance:
            since_better = 0
        least_distance = min(least_distance, distance)
        if gap < best_gap:
            best_gap = gap
            for i in range(k):
                alpha[i] = at[i]
                lam[i] = kept[i]
        if gap <= _ENOUGH * tol or since_better >= (_STALLED if best_gap < 1e-3 else 5 * _STALLED):
            break
        if steps == _MOST_STEPS:
            break
        _system(white, weight, g, nu, z, s, at, gram, jacobian, matrix, vectors[18], work[0])
        if not _factorised(matrix, scale, factor):
            break
        primal = dual = 0.0
        for phase in range(2):
            for i in range(k):
                right[i] = prices[i] + z[i] - 1.0
            primal, dual, growth = _direction(
                jacobian, at, s, nu, z, to_s, to_z, primal_residual, right, d_alpha, d_s, d_nu, d_z, solver
            )
            limit = _BOUNDARY if phase else 1.0
            primal = min(1.0, limit / max(primal, 1e-300))
            dual = min(1.0, limit / max(dual, 1e-300))
            if phase:
                primal = min(primal, _GROWTH * cost / max(growth, 1e-300))
                break
            after = 0.0
            for i in range(k):
                after += (nu[i] + dual * d_nu[i]) * (s[i] + primal * d_s[i])
                after += (z[i] + dual * d_z[i]) * (at[i] + primal * d_alpha[i])
            after = max(after, 0.0) / (pairs * mu)
            sigma = min(max(after * after * after, 0.3 if since_better >= 3 else 1e-6), 1.0)
            centre = max(sigma * mu, _LEAST_CENTRE * tol * cost / pairs)
            share = min(primal, dual)
            for i in range(k):
                to_s[i] += share * d_s[i] * d_nu[i] - centre
                to_z[i] += share * d_alpha[i] * d_z[i] - centre
        for i in range(k):
            at[i] += primal * d_alpha[i]
            s[i] += primal * d_s[i]
            nu[i] += dual * d_nu[i]
            z[i] += dual * d_z[i]
        steps += 1
    return steps if best_gap < np.inf else -1


@_entry
def solve_quotient(
    quotient_rows: Any, r: Any, gaps: Any, level: Any, tol: Any, warm: Any, alpha_out: Any, lam_out: Any, info: Any
) -> Any:
    """Solve and certify, given the quotient; with ``warm``, ``alpha_out`` and ``lam_out`` hold a start. The code."""
    arms = len(gaps)
    which = np.empty(arms, np.int64)
    k = 0
    something = False
    for i in range(arms):
        if gaps[i] != 0.0:
            if not 1.0 / LARGEST <= gaps[i] <= LARGEST:
                return INVALID
            something = True
            size = 0.0
            for c in range(r):
                size = max(size, abs(quotient_rows[i, c]))
            if size > 0.0:
                which[k] = i
                k += 1
    if not something:
        return INVALID
    if k < r:
        return UNUSUAL
    triple = np.empty((4, r, k))
    rows, scaled, white, images = triple[0], triple[1], triple[2], triple[3]
    basis = np.empty((r, r))
    work = np.empty((2, r, r))
    vectors = np.empty((20, k))
    own = np.empty((5, k))
    alpha, lam, weight, best_alpha, best_lam = own[0], own[1], own[2], own[3], own[4]
    for i in range(k):
        gap = gaps[which[i]]
        weight[i] = level / gap  # β², where b_j = β_j a_j
        root = 1.0 / math.sqrt(gap)
        for c in range(r):
            rows[c, i] = quotient_rows[which[i], c] * root
        alpha[i] = alpha_out[which[i]] * gap
        lam[i] = lam_out[which[i]]
    near = _start(rows, weight, alpha, lam, warm, basis, work, white, vectors)
    if near < 0.0:
        return SINGULAR
    warmed = near < 0.5
    # units in which the start costs 1, and the basis in which its M is I; b_j = β_j a_j/√unit there
    unit = trace = 0.0
    for i in range(k):
        unit += alpha[i]
        trace += alpha[i] * vectors[0, i]
    for i in range(k):
        for c in range(r):
            scaled[c, i] = white[c, i] * math.sqrt(unit * r / trace)  # `white` belongs to a multiple of this α
        alpha[i] /= unit
        weight[i] /= unit
        lam[i] /= unit
    steps = _newton(scaled, weight, alpha, lam, near, tol, basis, work, white, vectors, np.empty((4, k, k)))
    if steps < 0:
        return SINGULAR
    info[3] = steps
    info[4] = 1.0 if warmed else 0.0
    # first with what complementarity says is zero set to zero; without that if the certificate suffers from it
    g, prices = vectors[0], vectors[11]
    top_alpha = top_lam = top_g = 0.0
    for i in range(k):
        weight[i] *= unit
        best_alpha[i] = alpha[i] = alpha[i] * unit
        best_lam[i] = lam[i] = lam[i] * unit
        top_alpha = max(top_alpha, alpha[i])
        top_lam = max(top_lam, lam[i])
        top_g = max(top_g, g[i])
    for i in range(k):
        if alpha[i] < SUPPORT * top_alpha and prices[i] < 1.0 - SUPPORT:
            alpha[i] = 0.0
        if lam[i] < SUPPORT * top_lam and g[i] < (1.0 - SUPPORT) * top_g:
            lam[i] = 0.0
    done = False
    for attempt in range(2):
        if attempt == 1:
            for i in range(k):
                alpha[i] = best_alpha[i]
                lam[i] = best_lam[i]
        _certificate(rows, weight, alpha, lam, info, basis, work, images, white, vectors)
        done = info[1] - info[0] <= tol * info[0]
        if done:
            break
    for i in range(arms):
        alpha_out[i] = np.inf if gaps[i] == 0.0 else 0.0
        lam_out[i] = 0.0
    for i in range(k):
        alpha_out[which[i]] = alpha[i] / gaps[which[i]]
        lam_out[which[i]] = lam[i]
    return CERTIFIED if done else NOT_CONVERGED
