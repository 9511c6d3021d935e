"""A referee for bounds in doubles: plain linear algebra in rationals, slow and obvious, sharing nothing with the package."""

from fractions import Fraction
from math import isqrt

import numpy as np

U = Fraction(1, 2**53)


def gamma(n):
    """n u/(1 − n u), exactly: what n roundings in a row can do, relatively."""
    return n * U / (1 - n * U)


def rational(x):
    """Doubles, in any nesting of arrays, as the rationals that they are."""
    if isinstance(x, Fraction | int):
        return Fraction(x)
    if np.ndim(x) == 0:
        return Fraction(float(x))
    return [rational(y) for y in x]


def dot(x, y):
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))


def transposed(m):
    return [list(column) for column in zip(*m, strict=True)]


def product(m, n):
    columns = transposed(n)
    return [[dot(row, column) for column in columns] for row in m]


def weighted(rows, weights, width):
    """Σ w x xᵀ."""
    return [
        [sum((w * row[c] * row[e] for row, w in zip(rows, weights, strict=True)), Fraction(0)) for e in range(width)]
        for c in range(width)
    ]


def solved(matrix, right):
    """A^-1 b by elimination; None where A is singular."""
    n = len(matrix)
    work = [[*row, x] for row, x in zip(matrix, right, strict=True)]
    for c in range(n):
        pivot = next((i for i in range(c, n) if work[i][c] != 0), None)
        if pivot is None:
            return None
        work[c], work[pivot] = work[pivot], work[c]
        for i in range(n):
            if i != c and work[i][c] != 0:
                factor = work[i][c] / work[c][c]
                work[i] = [x - factor * y for x, y in zip(work[i], work[c], strict=True)]
    return [work[c][n] / work[c][c] for c in range(n)]


def semidefinite(matrix):
    """Whether a symmetric matrix is positive semidefinite: by LDLᵀ with the largest diagonal entry as the pivot."""
    left = [list(row) for row in matrix]
    while left:
        k = max(range(len(left)), key=lambda i: left[i][i])
        pivot = left[k][k]
        if pivot < 0:
            return False
        if pivot == 0:
            return all(x == 0 for row in left for x in row)
        others = [i for i in range(len(left)) if i != k]
        left = [[left[i][j] - left[i][k] * left[k][j] / pivot for j in others] for i in others]
    return True


def root_up(x):
    """A rational just above √x."""
    shift = 2 * (max(x.denominator.bit_length() - x.numerator.bit_length(), 0) // 2 + 120)
    return Fraction(isqrt(int(x * 2**shift) + 1) + 1, 2 ** (shift // 2))


def root_down(x):
    """A rational just below √x."""
    shift = 2 * (max(x.denominator.bit_length() - x.numerator.bit_length(), 0) // 2 + 120)
    return Fraction(isqrt(int(x * 2**shift)), 2 ** (shift // 2))
