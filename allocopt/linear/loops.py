"""`dense` once more, as loops for numba: loading this module lets compiled code call those functions.

Plain textbook loops, each held against its numpy twin by the tests. Only Cholesky's factorisation is less patient than its
twin: compiled code gives up on what has lost twelve digits, and its caller takes the ordinary path.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

from allocopt.linear import dense
from allocopt.linear.dense import DIAGONAL_SHIFT

__all__ = ["ENTRY", "compiled_steps", "copied", "in_loops", "inside"]

ENTRY: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""numba's options for functions that Python calls."""
# a quarter less to compile without a wrapper; and what is not said here a function would inherit from its first caller
_INSIDE = {**ENTRY, "no_cpython_wrapper": True, "forceinline": False, "fastmath": False}
_SUMS = {
    **_INSIDE,
    "fastmath": {"reassoc"},
}  # several partial sums at a time, in an order that depends on the length alone

_LARGEST_SHIFT = 0.005  # of the diagonal, from which no larger one is tried: the matrix is not definite
_LEAST_PIVOT = 1e-12  # of M, scaled to a diagonal of ones: below it M has lost twelve digits


_Function = TypeVar("_Function", bound=Callable[..., Any])


def inside(function: _Function) -> _Function:
    """Compile a function that only compiled ones call."""
    return cast(_Function, njit(**_INSIDE)(function))


def copied(function: _Function) -> _Function:
    """`inside`, for functions with one caller that mostly call others: numba copies their text into it (see `compiled_steps`)."""
    return cast(_Function, njit(**_INSIDE, inline="always")(function))


def _sums(function: _Function) -> _Function:
    """`inside`, for functions that are mostly sums of products: four times as fast in any order (for which all bounds hold)."""
    return cast(_Function, njit(**_SUMS)(function))


def in_loops(
    function: Callable[..., Any], steps: Mapping[str, Callable[..., Any]], name: str | None = None
) -> Callable[..., Any]:
    """A function written in the words of `dense`, ready to be compiled: the same code, with the words of this module.

    Why: the method is written once, for numpy and for numba, and which road it takes must not show in it. How: when Python runs
    ``cross(a, b)`` it looks the name ``cross`` up in the dictionary of the function's module (``function.__globals__``), and so
    does numba when it compiles. A Python function is little more than its bytecode and that dictionary. So we make a second
    function of the same bytecode and a copy of the dictionary, in which the names of `dense` stand for the loops below and those
    of ``steps`` for functions that are compiled already; everything else (numpy, constants, named tuples) stays what it was. The
    first function is not touched. Since it is bytecode that is shared, not text, both roads cannot drift apart.

    ``name``: another name than the function's own, under which its machine code is kept.
    """
    words = {name: globals()[name] for name in dense.__all__ if name in globals()}
    twin = FunctionType(function.__code__, {**function.__globals__, **words, **steps}, function.__name__)
    twin.__module__, twin.__qualname__ = function.__module__, name or function.__qualname__
    return twin


def compiled_steps(
    functions: Iterable[Callable[..., Any]], known: Mapping[str, Callable[..., Any]], copied: bool = True
) -> dict[str, Callable[..., Any]]:
    """Functions in the words of `dense`, for numba, by their names, and the ``known`` ones; each may call those before it.

    ``copied``: numba copies their text into whoever calls them, and compiles that. Compiled by itself and then called, a function is
    optimised by LLVM twice and made into machine code twice, which is most of the time that compiling takes.
    """
    steps: dict[str, Callable[..., Any]] = dict(known)
    for function in functions:
        steps[function.__name__] = njit(**_INSIDE, inline="always" if copied else "never")(in_loops(function, steps))
    return steps


@inside
def _zeros(height: Any, width: Any) -> Any:
    result = np.empty((height, width))  # np.zeros takes three times as long to compile
    for i in range(height):
        for n in range(width):
            result[i, n] = 0.0
    return result


@inside
def lanes(n: Any) -> Any:
    # unsigned: numba then adds no code for negative indices, and LLVM sees that entries are neighbours
    return range(np.uint64(n))


@inside
def larger(x: Any, y: Any) -> Any:
    return x if x > y else y


@inside
def smaller(x: Any, y: Any) -> Any:
    return x if x < y else y


@inside
def choose(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


@_sums
def total(x: Any) -> Any:
    result = 0.0
    for i in range(len(x)):
        result += x[i]
    return result


@_sums
def dot(x: Any, y: Any) -> Any:
    result = 0.0
    for i in range(len(x)):
        result += x[i] * y[i]
    return result


@_sums
def magnitude(x: Any, weights: Any) -> Any:
    result = 0.0
    for i in range(len(x)):
        result += abs(x[i]) * weights[i]
    return result


@inside
def largest(x: Any) -> Any:
    result = x[0]
    for i in range(len(x)):
        if x[i] > result or x[i] != x[i]:  # what is not a number stays
            result = x[i]
    return result


@inside
def smallest(x: Any) -> Any:
    result = x[0]
    for i in range(len(x)):
        if x[i] < result or x[i] != x[i]:
            result = x[i]
    return result


@inside
def geometric_mean(x: Any) -> Any:
    result = 0.0
    for i in range(len(x)):
        result += math.log(x[i])
    return math.exp(result / len(x))


@inside
def fastest(change: Any, value: Any) -> Any:
    result = 0.0
    for i in range(len(value)):
        rate = -change[i] / value[i]
        if rate > result or rate != rate:
            result = rate
    return result


@inside
def cross(left: Any, right: Any) -> Any:
    r, height, width = left.shape[0], left.shape[1], right.shape[1]
    result = _zeros(height, width)
    even = height - height % 2
    for c in range(
        0, r, 4
    ):  # four rows of each at a time, and two of the result: entries are loaded and stored less often
        d, e, f = min(c + 1, r - 1), min(c + 2, r - 1), min(c + 3, r - 1)
        in_d, in_e, in_f = 1.0 if c + 1 < r else 0.0, 1.0 if c + 2 < r else 0.0, 1.0 if c + 3 < r else 0.0
        for i in range(0, even, 2):
            w, x, y, z = left[c, i], in_d * left[d, i], in_e * left[e, i], in_f * left[f, i]
            t, u, v, o = left[c, i + 1], in_d * left[d, i + 1], in_e * left[e, i + 1], in_f * left[f, i + 1]
            for n in range(width):
                p, q, g, h = right[c, n], right[d, n], right[e, n], right[f, n]
                result[i, n] += (w * p + x * q) + (y * g + z * h)
                result[i + 1, n] += (t * p + u * q) + (v * g + o * h)
        for i in range(even, height):
            w, x, y, z = left[c, i], in_d * left[d, i], in_e * left[e, i], in_f * left[f, i]
            for n in range(width):
                result[i, n] += (w * right[c, n] + x * right[d, n]) + (y * right[e, n] + z * right[f, n])
    return result


@_sums
def weighted(columns: Any, weights: Any) -> Any:
    r, k = columns.shape
    result = np.empty((r, r))
    for c in range(r):
        for e in range(c + 1):
            entry = 0.0
            for i in range(k):
                entry += weights[i] * columns[c, i] * columns[e, i]
            result[c, e] = entry
            result[e, c] = entry
    return result


@copied
def gram(rows: Any, weights: Any) -> Any:
    scaled = np.empty(rows.shape)
    for j in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            scaled[j, i] = weights[j] * rows[j, i]
    return cross(scaled, rows)


@_sums
def times(matrix: Any, x: Any) -> Any:
    result = np.empty(matrix.shape[0])
    for i in range(len(result)):
        entry = 0.0
        for n in range(len(x)):
            entry += matrix[i, n] * x[n]
        result[i] = entry
    return result


@inside
def back(matrix: Any, x: Any) -> Any:
    result = np.empty(matrix.shape[1])
    for n in range(len(result)):
        result[n] = 0.0
    for i in range(len(x)):
        for n in range(len(result)):
            result[n] += x[i] * matrix[i, n]
    return result


@copied
def scaled_columns(matrix: Any, scale: Any) -> Any:
    result = np.empty(matrix.shape)
    for i in range(matrix.shape[0]):
        for n in range(matrix.shape[1]):
            result[i, n] = matrix[i, n] * scale[n]
    return result


@inside
def squared_ratios(matrix: Any, by: Any) -> Any:
    for i in range(matrix.shape[0]):
        inverse = 1.0 / by[i]
        for n in range(matrix.shape[1]):
            ratio = matrix[i, n] * inverse
            matrix[i, n] = ratio * ratio
    return matrix


@inside
def squared_lengths(columns: Any) -> Any:
    result = np.empty(columns.shape[1])
    for i in range(len(result)):
        result[i] = 0.0
    for c in range(columns.shape[0]):
        for i in range(len(result)):
            result[i] += columns[c, i] * columns[c, i]
    return result


@copied
def add_products(matrix: Any, factor: Any, left: Any, right: Any) -> Any:
    for i in range(matrix.shape[0]):
        for n in range(matrix.shape[1]):
            matrix[i, n] += factor * left[i, n] * right[i, n]


@copied
def add_diagonal(matrix: Any, diagonal: Any) -> Any:
    for i in range(len(diagonal)):
        matrix[i, i] += diagonal[i]


@inside
def _cholesky(matrix: Any, shift: Any) -> Any:
    """Upper triangular R with RᵀR = A, its diagonal inverted, and before it the least pivot.

    A is first scaled to a diagonal of 1 + shift, and the pivots are those of the scaled matrix; 0 where it is not definite.
    """
    k = len(matrix)
    work, scale = np.empty((k, k)), np.empty(k)
    for i in range(k):
        scale[i] = math.sqrt(matrix[i, i])
    for i in range(k):
        for n in range(k):
            work[i, n] = matrix[i, n] / (scale[i] * scale[n])
        work[i, i] = 1.0 + shift
    least = 1.0
    for c in range(0, k, 2):  # Gauss's elimination by two rows at a time
        d = min(c + 1, k - 1)
        first = 1.0 / work[c, c]
        if d > c:
            x = work[c, d] * first
            for n in range(d, k):
                work[d, n] -= x * work[c, n]
        second = 1.0 / work[d, d]
        least = min(least, min(work[c, c], work[d, d]))
        if not (0.0 < first * scale[c] < np.inf and 0.0 < second * scale[d] < np.inf):
            return 0.0, work
        for i in range(d + 1, k - 1, 2):  # of two rows each (below the diagonal, what is written is never read)
            w, x = work[c, i] * first, work[c, i + 1] * first
            y, z = work[d, i] * second, work[d, i + 1] * second
            for n in range(i, k):
                in_c, in_d = work[c, n], work[d, n]
                work[i, n] -= w * in_c + y * in_d
                work[i + 1, n] -= x * in_c + z * in_d
        if (k - d) % 2 == 0:
            work[k - 1, k - 1] -= work[c, k - 1] * first * work[c, k - 1] + work[d, k - 1] * second * work[d, k - 1]
    for c in range(k):
        root = 1.0 / math.sqrt(work[c, c])
        for n in range(c, k):
            work[c, n] *= root * scale[n]
        work[c, c] = 1.0 / work[c, c]
    return least, work


@copied
def factorised(matrix: Any) -> Any:
    shift = DIAGONAL_SHIFT
    least, factor = _cholesky(matrix, shift)
    while least == 0.0 and shift < _LARGEST_SHIFT:
        shift *= 100.0
        least, factor = _cholesky(matrix, shift)
    return least > 0.0, factor


@_sums
def _substituted(factor: Any, x: Any) -> Any:
    """Divide x by RᵀR, two entries at a time (the last one alone where their number is odd)."""
    k = len(x)
    even = k - k % 2
    for c in range(0, even, 2):
        y = x[c] * factor[c, c]
        z = (x[c + 1] - y * factor[c, c + 1]) * factor[c + 1, c + 1]
        for n in range(c + 2, k):
            x[n] -= y * factor[c, n] + z * factor[c + 1, n]
        x[c], x[c + 1] = y, z
    if even < k:
        x[even] *= factor[even, even] * factor[even, even]
    for c in range(even - 2, -1, -2):
        y, z = x[c], x[c + 1]
        for n in range(c + 2, k):
            y -= factor[c, n] * x[n]
            z -= factor[c + 1, n] * x[n]
        x[c + 1] = z * factor[c + 1, c + 1]
        x[c] = (y - factor[c, c + 1] * x[c + 1]) * factor[c, c]


@copied
def solved(matrix: Any, factor: Any, right: Any) -> Any:
    solution = right.copy()
    _substituted(factor, solution)
    rest = back(matrix, solution)  # it is symmetric
    for i in range(len(rest)):
        rest[i] = right[i] - rest[i]
    _substituted(factor, rest)
    for i in range(len(rest)):
        solution[i] += rest[i]
    return solution


@inside
def whitener(columns: Any, alpha: Any, base: Any) -> Any:
    least, factor = _cholesky(weighted(columns, alpha), 0.0)
    r = len(factor)
    basis = _zeros(r, r)
    for c in range(r - 1, -1, -1):  # the inverse of R, from the last row up
        basis[c, c] = factor[c, c]
        for e in range(c + 1, r):
            x = factor[c, e] * factor[c, c]
            for n in range(e, r):
                basis[c, n] -= x * basis[e, n]
    return least > _LEAST_PIVOT, basis
