"""Linear constraints: both bounds with every margin and no more, on numbers that are exact in doubles."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from exactly import U, dot, gamma, rational
from limited import limits

from allocopt.certify import frame as frames
from allocopt.certify.canonical import Canonical
from allocopt.certify.certificate import evaluate
from allocopt.certify.limits import evaluation

INF = float("inf")


def formula(problem, alpha, mu, strength):
    """What `evaluate_within` must return for the frame of `framed`, in rationals: lower and upper bound."""
    pad = 1 + gamma(4 * problem.rank + 64)
    given, k = problem.limits, problem.n_variables
    costs = [Fraction(1)] * k if problem.costs is None else rational(problem.costs)
    by_row = [dot(row, row) * pad**3 for row in rational(problem.features)]
    owners = list(range(k)) if problem.owners is None else problem.owners.tolist()
    prices = [
        sum(p for p, i in zip(by_row, owners, strict=True) if i == n) * (1 + gamma(problem.most_rows)) for n in range(k)
    ]
    known = sum((dot(row, row) * pad**3 for row in rational(problem.base)), Fraction(0))
    slope = rational(strength) ** 2 / pad
    slope -= known * (1 + gamma(len(problem.base))) * pad if len(problem.base) else 0
    error, size, rows = rational(problem.bound_error), len(given.values), len(given.room)
    charges, rent, rent_terms = list(costs), Fraction(0), Fraction(0)
    terms = list(costs)
    for row, i, value in zip(given.places, given.variables, rational(given.values), strict=True):
        charges[i] += value * rational(mu[row])
        terms[i] += abs(value) * rational(mu[row])
    margin = (rational(given.error) + gamma(size + 8)) * (1 + gamma(8))
    charges = [c - margin * t if t > own else c for c, t, own in zip(charges, terms, costs, strict=True)]
    for m, room, total in zip(*(rational(x) for x in (mu, given.room, given.sizes)), strict=True):
        rent, rent_terms = rent + m * room, rent_terms + m * (abs(room) + total)
    rent += gamma(size + rows + 16) * rent_terms
    upper = (
        [None] * k
        if problem.upper is None
        else [None if np.isinf(u) else rational(u) * (1 + 4 * error) * pad for u in problem.upper]
    )
    cap = min((c / p for c, p, u in zip(charges, prices, upper, strict=True) if u is None), default=None)
    cap = None if cap is None else cap * (1 - 4 * U)
    candidates = [c / p for c, p in zip(charges, prices, strict=True) if cap is None or c / p <= cap]
    gains = []
    for q in [*candidates, *([] if cap is None else [cap])]:
        over = sum(
            u * max(q * p * (1 + 4 * U) - c, 0) for c, p, u in zip(charges, prices, upper, strict=True) if u is not None
        )
        gains.append(q * slope * (1 - 4 * U) - over * (1 + gamma(sum(u is not None for u in upper) + 8)))
    lower = max(gains) - rent - 8 * U * (abs(max(gains)) + abs(rent))
    offset, sums = rational(problem.offset), gamma(len(problem.features) + 4)
    least = offset * (1 - 2 * error - sums) / pad
    lower = (lower / pad if lower > 0 else lower * pad) + least
    spent = dot(costs, rational(alpha)) * (1 + gamma(k + 4))
    return max(lower - 4 * U * abs(lower), least), (spent + offset * (1 + sums)) * (1 + error) * pad


def framed(monkeypatch, strength):
    """Make every frame one whose basis is I, without errors: then nothing but margins is left."""

    def made(problem, alpha, multipliers):
        r = problem.rank
        return frames.Frame(np.eye(r), np.ones(r), strength, 0.0, 0.0, 0.0, float(alpha.sum()), np.ones(r))

    monkeypatch.setattr(evaluation, "frame_of", made)


EXACT = {
    "plain": {},
    "errors": {"bound_error": 2.0**-44, "offset": 0.5},
    "mostly fixed": {"offset": 1024.0},
    "costless": {"costs": np.array([1.0, 0.0, 1.0])},
    "bounded": {"upper": np.array([2.0, INF, 0.25]), "bound_error": 2.0**-44},
    "all bounded": {"upper": np.array([8.0, 4.0, 16.0]), "offset": 0.25},
    "known": {"base": np.full((4, 1), 0.5)},
    "several rows": {"features": np.array([[1.0], [0.5], [0.25], [0.25], [0.25], [0.25]]), "owners": np.array([0, 1, 2, 2, 2, 2])},
    "floor": {"room": [8.0, -128.0]},
    "rent": {"room": [4096.0, 1.0], "offset": 2048.0},
    "expensive": {"mu": np.array([0.5, 1.5])},
    "two columns": {"features": np.array([[1.0, 0.0], [0.0, 0.5], [0.5, 0.5]]), "targets": np.eye(2) / 2, "base": np.zeros((0, 2))},
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("error", [0.0, 2.0**-44])
def test_both_bounds_have_every_margin_and_no_more(name, error, monkeypatch):
    framed(monkeypatch, 2.0)
    changes = dict(EXACT[name])
    mu = changes.pop("mu", np.array([0.25, 0.5]))
    given = {"features": np.array([[1.0], [0.5], [0.25]]), "targets": np.array([[0.5]]), "base": np.zeros((0, 1))}
    room = changes.pop("room", [8.0, 1.0])
    problem = Canonical(**{**given, **changes}, limits=limits([[1, 2, 0], [0, 1, -0.5]], room, [16.0, 2.0], error))
    alpha = np.array([2.0, 1.0, 0.25])
    bounds = evaluate(problem, alpha, np.ones(len(problem.targets)), mu)
    lower, upper = formula(problem, alpha, mu, 2.0)
    if room[1] < 0:
        assert bounds.upper == INF
    else:
        assert abs(rational(bounds.upper) - upper) <= 3 * U * upper
    assert abs(rational(bounds.lower) - lower) <= 24 * U + 3 * U * abs(lower)


def test_every_row_must_hold_and_rows_of_nothing_do():
    problem = Canonical(np.array([[1.0], [1.0]]), np.array([[0.5]]), np.zeros((0, 1)))
    for rows, room, holds in (
        ([[1, 0]], [0.0], True), ([[1, 0], [0, 1]], [0.0, 2.0], True), ([[1, 0], [0, 1]], [0.0, 0.5], False),
        ([[0, 1], [1, 0]], [0.5, 0.0], False), ([[0, 1], [0, 1]], [2.0, 3.0], True),
    ):  # fmt: skip
        limited = dataclasses.replace(problem, limits=limits(rows, room))
        found = evaluate(limited, np.array([0.0, 1.0]), np.ones(1), np.zeros(len(room)))
        assert np.isfinite(found.upper) == holds


def test_multipliers_are_returned_in_the_scale_in_which_they_are_dual_feasible():
    """Σ λ (bᵀy)·q·…: at the optimum of the unconstrained problem they sum to the value."""
    problem = Canonical(np.eye(2), np.diag([1.0, 2.0]), np.zeros((0, 2)), limits=limits([[1, 1]], [90.0]))
    found = evaluate(problem, np.array([1.0 + 1e-9, 4.0 + 1e-9]), np.array([3.0, 12.0]), np.zeros(1))
    assert found.multipliers == pytest.approx([1.0, 4.0], rel=1e-6)
    assert found.gap < 1e-8 and found.rounding < 1e-12
    doubled = evaluate(
        problem, np.array([2.0, 8.0]), np.array([3.0, 12.0]), np.zeros(1)
    )  # g = 1/2 does not change that
    assert doubled.multipliers == pytest.approx([1.0, 4.0], rel=1e-9)
    nothing = evaluate(problem, np.array([1.0 + 1e-9, 4.0 + 1e-9]), np.zeros(2), np.zeros(1))
    assert nothing.lower == 0.0 and nothing.multipliers.tolist() == [0.0, 0.0] and nothing.prices.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("error", [0.0, 2.0**-44])
def test_margins_stand_alone_where_everything_else_cancels(error):
    given = limits([[1, -2, 0], [-2, 4, 1]], [3, -6], sizes=[4, 2], error=error)
    mu = np.array([2.0, 1.0])
    charges = rational(evaluation.least_charges(given, np.zeros(3), mu))
    margin = (rational(error) + gamma(5 + 8)) * (1 + gamma(8))
    for found, terms in zip(charges[:2], (4, 8), strict=True):
        assert abs(found + margin * terms) <= 16 * U * margin * terms
    rent = gamma(5 + 2 + 16) * (2 * (3 + 4) + (6 + 2))
    assert abs(rational(evaluation.most_rent(given, mu)) - rent) <= 16 * U * rent
    excess = gamma(5 + 16) * (3 + 4)
    assert abs(rational(evaluation.most_excess(given, np.array([3.0, 0.0, 0.0]))[0]) - excess) <= 16 * U * excess


def test_what_is_over_the_bounds_is_paid_with_its_margins():
    """Where q·slope is 0 nothing but what is over is left: u (q p (1 + 4u) − charge)_+ (1 + γ_{n+8})."""
    gain = evaluation.best_multiple(0.0, np.ones(3), np.array([1.0, 2.0, 4.0]), np.array([1.0, -3.0, -0.5]))[1]
    exact = (2 * 3 + 4 * Fraction(1, 2)) * (1 + gamma(11))
    assert abs(rational(gain) + exact) <= 2 * U * exact


def test_what_may_underflow_is_made_up_for_wherever_a_multiplier_is_positive():
    given = limits([[1, 0], [0, 1]], [0.0, 0.0])
    assert evaluation.most_rent(given, np.array([1.0, 0.0])) == evaluation.TINY > 0
    assert evaluation.most_rent(given, np.zeros(2)) == 0.0


def test_margins_are_taken_of_losses_too(monkeypatch):
    """A floor whose multiplier pays for more than the arm costs: u (c − μ) < 0 is the gain, −μ·floor the rent."""
    framed(monkeypatch, 0.0)
    floor = limits([[-1]], [-2.0], sizes=[2.0])
    problem = Canonical(np.ones((1, 1)), np.full((1, 1), 0.5), np.zeros((0, 1)), upper=np.array([2.0]), limits=floor)
    found = evaluate(problem, np.array([2.0]), np.ones(1), np.array([3.0])).lower
    pad = 1 + gamma(4 + 64)
    charge = 1 - 3 - gamma(1 + 8) * (1 + gamma(8)) * (1 + 3)
    gain, rent = 2 * pad * charge * (1 + gamma(1 + 8)), -6 + gamma(1 + 1 + 16) * 3 * (2 + 2)
    lower = (gain - rent - 8 * U * (abs(gain) + abs(rent))) / pad
    assert abs(rational(found) - lower * (1 - 4 * U)) <= 24 * U
    assert rational(found) <= 2  # which is what playing twice costs


def test_sums_of_known_rows_have_a_margin_of_their_own(monkeypatch):
    framed(monkeypatch, 2.0)
    n = 4000
    problem = Canonical(np.array([[1.0]]), np.array([[0.5]]), np.full((n, 1), 2.0**-7), limits=limits([[1]], [9.0]))
    lower, _ = formula(problem, np.array([2.0]), np.zeros(1), 2.0)
    found = evaluate(problem, np.array([2.0]), np.ones(1), np.zeros(1)).lower
    assert abs(rational(found) - lower) <= gamma(60) * lower  # γ_4000 is what it is about
