"""Published optimal designs: c-optimal designs are programs with one target, D-optimal ones G-optimal (Kiefer & Wolfowitz 1960)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from allocopt.base.validation import Array
from allocopt.insight.constants.constant import Constant, Number, Shares
from allocopt.model import programs
from allocopt.model.program import AllocationProgram

__all__ = ["DESIGNS", "PICOS"]

_GROUP = "designs"

PICOS: Array = np.array(
    [
        [[1, 0, 0, 0, 0], [0, 3, 0, 0, 0], [0, 0, 1, 0, 0]], [[0, 0, 2, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0]],
        [[0, 0, 0, 2, 0], [4, 0, 0, 0, 0], [0, 0, 1, 0, 0]], [[1, 0, 0, 0, 0], [0, 0, 2, 0, 0], [0, 0, 0, 0, 4]],
        [[1, 0, 2, 0, 0], [0, 3, 0, 1, 2], [0, 0, 1, 2, 0]], [[0, 1, 1, 1, 0], [0, 3, 0, 1, 0], [0, 0, 2, 2, 0]],
        [[1, 2, 0, 0, 0], [0, 3, 3, 0, 5], [1, 0, 0, 2, 0]], [[1, 0, 3, 0, 1], [0, 3, 2, 0, 0], [1, 0, 0, 2, 0]],
    ],
    dtype=np.float64,
)  # fmt: skip
"""The eight experiments of PICOS' documentation; PICOS[i, j] is column j of its matrix A[i]."""


def one_target(rows: Array, target: Array) -> AllocationProgram:
    """c-optimal design: the least Σα with ||c||²_{M(α)^-1} <= 1, which is the least variance cᵀM(w)^-1 c of a design w."""
    return AllocationProgram(rows, np.ones(len(rows)), target[None], np.ones(1))


def powers(points: Array, degree: int) -> Array:
    """(1, x, …, x^degree) of every point."""
    return np.vander(points, degree + 1, increasing=True)


def on_the_interval(degree: int) -> Array:
    """The extrema of the Chebyshev polynomial on [−1, 1], and 40 other points between them."""
    extrema = np.cos(np.arange(degree + 1) * math.pi / degree)
    extrema[np.abs(extrema) < 1e-15] = 0.0
    if degree == 3:
        extrema[1:3] = 0.5, -0.5
    return np.concatenate([extrema, np.linspace(-0.975, 0.975, 40)])


def leading_coefficient(degree: int) -> AllocationProgram:
    """Estimate the coefficient of x^degree."""
    return one_target(powers(on_the_interval(degree), degree), np.eye(degree + 1)[degree])


def extrapolation(degree: int, point: float) -> AllocationProgram:
    """Predict a polynomial at a point outside the interval."""
    return one_target(powers(on_the_interval(degree), degree), powers(np.array([point]), degree)[0])


def cubic_on_a_grid() -> AllocationProgram:
    """G-optimal design for cubic regression: the printed support, then the 201 points of the vignette's plot."""
    points = np.concatenate([[-1.0, -0.447, 0.447, 1.0], np.linspace(-1, 1, 201)[1:-1]])
    return programs.g_optimal(powers(points, 3))


def quadratic_on_the_square() -> AllocationProgram:
    """G-optimal design for (1, x, y, x², y², xy): corners, middles of edges and centre first, then the others of 21 × 21 points."""
    support = [(x, y) for ends in (2, 1, 0) for x in (-1, 0, 1) for y in (-1, 0, 1) if abs(x) + abs(y) == ends]
    others = [(i / 10, j / 10) for i in range(-10, 11) for j in range(-10, 11) if i % 10 or j % 10]
    x, y = np.array(support + others).T
    return programs.g_optimal(np.column_stack([np.ones_like(x), x, y, x * x, y * y, x * y]))


def quadratic_mixture() -> AllocationProgram:
    """G-optimal design for (x, y, z, xy, xz, yz) on the simplex: vertices, middles of edges, then the other multiples of 1/16."""
    support = [(16, 0, 0), (0, 16, 0), (0, 0, 16), (8, 8, 0), (8, 0, 8), (0, 8, 8)]
    lattice = [(i, j, 16 - i - j) for i in range(17) for j in range(17 - i)]
    x, y, z = np.array(support + [point for point in lattice if point not in support]).T / 16
    return programs.g_optimal(np.column_stack([x, y, z, x * y, x * z, y * z]))


def picos_columns(by_matrix: bool) -> AllocationProgram:
    """The twelve columns of A[4], …, A[7]: matrix after matrix, or first all first columns, then all second ones, …"""
    columns = PICOS[4:] if by_matrix else PICOS[4:].transpose(1, 0, 2)
    return one_target(columns.reshape(12, 5), np.arange(1.0, 6.0))


def sensors() -> AllocationProgram:
    """G-optimal design for the twenty sensors of the book, ten on each of two arcs."""
    angles, radii = (
        np.concatenate([np.linspace(3 * math.pi / 4, math.pi, 10), np.linspace(0, -math.pi / 2, 10)]),
        np.repeat([3.0, 1.5], 10),
    )
    return programs.g_optimal(radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)]))


_PICOS = "PICOS documentation, Examples from Optimal Experimental Design"
_PRINTED = {4: "0.0337", 6: "0.279", 7: "0.118", 8: "0.276", 10: "0.293"}
_STUDDEN = "Kiefer & Wolfowitz, Optimum designs in regression problems (1959); Studden, Optimal designs on Tchebycheff points (1968)"

DESIGNS = (
    *(
        Constant(
            name=f"chebyshev-degree-{n}", group=_GROUP, source=_STUDDEN, place="the coefficient of the highest power",
            quantity="least variance of the estimate", printed=Number(f"{4 ** (n - 1)}", exact=True),
            wording=f"4^(n−1) ({4 ** (n - 1)} for n = {n})",
            instance=f"polynomials of degree {n} on [−1, 1], observed at the extrema of T_{n} and 40 other points",
            program=partial(leading_coefficient, n),
            remark="The polynomial T_n is bounded by 1 and has the leading coefficient 2^(n−1): its square is the bound (Elfving).",
        )
        for n in (2, 3, 4)
    ),
    Constant(
        name="hoel-levine", group=_GROUP,
        source="Hoel & Levine, Optimal spacing and weighting in polynomial prediction (1964)",
        place="the least variance of a prediction at x₀ outside [−1, 1]", quantity="least variance of the prediction",
        printed=Number("676", exact=True), wording="T_n(x₀)² (676 for n = 3, x₀ = 2)",
        instance="cubic polynomials on [−1, 1], predicted at 2", program=partial(extrapolation, 3, 2.0),
        remark="T_3(2) = 4·8 − 3·2 = 26.",
    ),
    Constant(
        name="slsedesign-cubic-d", group=_GROUP, source="SLSEdesign (CRAN), vignette",
        place="D-optimal design, 3rd order polynomial",
        quantity="D-optimal shares, which are G-optimal", printed=Shares(dict.fromkeys(range(4), "0.25")),
        wording="1/4 at −1, −0.447, 0.447, 1",
        instance="cubic polynomials observed at ±1, ±0.447 and the 199 inner points of the plot's grid", program=cubic_on_a_grid,
        remark="±1/√5 = ±0.4472136 are the extrema of a Legendre polynomial (Guest 1958); the least maximal variance is 4.",
    ),
    Constant(
        name="kiefer-mixture", group=_GROUP, source="Kiefer, Optimum designs in regression problems, II (1961)",
        place="quadratic regression on the simplex (Scheffé's model), three components",
        quantity="D-optimal shares, which are G-optimal", printed=Shares(dict.fromkeys(range(6), "0.1666666667")),
        wording="1/6 at the three vertices and the three middles of edges",
        instance="(x, y, z, xy, xz, yz) for x + y + z = 1, observed at all multiples of 1/16", program=quadratic_mixture,
        remark="Six points for six coefficients share equally; the largest variance is 6, and on the simplex it is nowhere above.",
    ),
    Constant(
        name="second-order-square", group=_GROUP,
        source="Atkinson, Donev & Tobias, Optimum Experimental Designs, with SAS (2007), after Box & Draper (1971)",
        place="the D-optimum continuous design of the second-order model in two factors",
        quantity="D-optimal shares, which are G-optimal",
        printed=Shares({i: "0.1458" if i < 4 else "0.0802" if i < 8 else "0.0962" for i in range(9)}),
        wording="0.1458 at each corner, 0.0802 at the middle of each edge, 0.0962 at the centre",
        instance="(1, x, y, x², y², xy) on [−1, 1]², observed at 21 × 21 points", program=quadratic_on_the_square,
        remark="The least maximal variance is the number of coefficients, 6; the shares are 0.145791, 0.080161 and 0.096193.",
    ),
    Constant(
        name="boyd-vandenberghe-d", group=_GROUP, source="Boyd & Vandenberghe, Convex Optimization (2004)",
        place="Section 7.5.2, D-optimal design of the example", quantity="D-optimal shares, which are G-optimal",
        printed=Shares({0: "0.5", 9: "0.5"}), wording="0.5 and 0.5 on the two ends of the arc of radius 3",
        instance="20 sensors in the plane: radius 3 at angles 3π/4, …, π and radius 1.5 at 0, …, −π/2, ten each", program=sensors,
        remark="Two points in the plane share equally; the largest variance of any sensor is 2.",
    ),
    Constant(
        name="picos-c-lp", group=_GROUP, source=_PICOS, place="c-optimality, single-response: LP, the printed vector",
        quantity="c-optimal shares", printed=Shares(_PRINTED),
        wording="3.37e-02, 2.79e-01, 1.18e-01, 2.76e-01, 2.93e-01 at positions 5, 7, 8, 9, 11",
        instance=(
            "the 12 columns of A[4], …, A[7] in the order of the code, [a[:,i] for i in range(3) for a in A[4:]], c = (1, 2, 3, 4, 5)"
        ),
        program=partial(picos_columns, False),
        remark="Column 3 of A[6] and of A[7] are the same vector, so their shares may be split at will.",
    ),
    Constant(
        name="picos-c-lp-as-named", group=_GROUP, source=_PICOS,
        place="c-optimality, single-response: LP, the text above the code",
        quantity="c-optimal shares", printed=Shares(_PRINTED),
        wording="3.37% (2nd column of A[5]), 27.9%, 11.8%, 27.6% (1st to 3rd of A[6]), 29.3% (2nd of A[7])",
        instance="the 12 columns of A[4], …, A[7] in the order of the text, matrix after matrix, c = (1, 2, 3, 4, 5)",
        program=partial(picos_columns, True), belongs_to="picos-c-lp",
        remark=(
            "The text numbers the columns matrix after matrix, the code takes all first columns, then all second ones. By the code "
            "the five experiments are column 2 of A[4], A[6] and A[7], and column 3 of A[4] and A[6]."
        ),
    ),
)  # fmt: skip
"""The rows about optimal designs."""
