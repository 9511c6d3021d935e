"""The formulas of the theorem (docs/certificates.md), so that no factor of them goes missing where another one would hide it."""

from fractions import Fraction

import numpy as np
import pytest
from exactly import U, dot, gamma, rational, root_down
from margins import best_gain, bounds_of, framed, instance, instances, made, normalised, whole_instances

from allocopt.certify import frame as frames
from allocopt.certify.certificate import evaluate
from allocopt.linear import floating

SLIP = (
    40 * U
)  # what evaluating a formula in doubles may do to it, far less than any of its margins for sums of 120 terms


def pad(r):
    return 1 + gamma(4 * r + 64)


def squared(images):
    return np.einsum("ij,ij->i", images, images)


def formulas():
    yield from instances()
    for rho, doubt in ((0.0, 0.0), (0.02, 0.01)):
        yield instance(1, 1, 3, 2, rho, doubt, base=2)
        yield instance(3, 2, 400, 3, rho / 40, doubt)
        yield instance(4, 2, 3, 400, rho / 40, doubt)
        yield instance(2, 8, 20, 5, rho / 40, doubt, base=3)


def test_drift_and_cost_are_those_of_the_theorem():
    for problem, alpha, lam in formulas():
        frame, r = framed(problem, alpha, lam), problem.rank
        rows = np.concatenate([problem.features, problem.base])
        weights = np.concatenate([alpha, np.ones(len(problem.base))])
        images, n, doubt = rows @ frame.basis, len(rows), rational(problem.bound_error)
        gram = (images * weights[:, None]).T @ images - np.eye(r)
        spread = dot(rational(weights), rational(squared(images)))
        left = root_down(sum(x * x for row in rational(gram) for x in row)) + gamma(n + 4) * (1 + spread)
        errors = rational(frame.errors(rows, squared(images)))
        wrong = root_down(sum(w * e * e for w, e in zip(rational(weights), errors, strict=True)))
        drift = left + wrong * (2 * root_down(1 + left) + wrong)
        drift = (drift + (doubt + 8 * U) * (1 + drift)) * pad(r) * (1 + gamma(n))
        assert drift * (1 - SLIP) <= rational(frame.drift) <= drift * (1 + SLIP)
        cost = rational(float(alpha.sum())) * (1 + gamma(len(alpha)) + doubt) * pad(r)
        assert cost * (1 - SLIP / 4) <= rational(frame.cost) <= cost * (1 + SLIP / 4)


def test_the_numbers_of_the_dual_are_those_of_the_theorem():
    for problem, alpha, lam in formulas():
        frame, r = framed(problem, alpha, lam), problem.rank
        assert frame.unit == floating.gamma(r + 2) + problem.error
        images, weights, n = problem.targets @ frame.basis, rational(normalised(lam)), len(lam)
        errors = rational(frame.errors(problem.targets, squared(images)))
        least = [
            max(root_down(x) / pad(r) - e, Fraction(0)) for x, e in zip(rational(squared(images)), errors, strict=True)
        ]
        strength = sum(w * x * x for w, x in zip(weights, least, strict=True)) / pad(r)
        strength *= (1 - gamma(n + 8)) / (1 + rational(frame.drift))
        assert strength * (1 - SLIP) <= rational(frame.strength) <= strength * (1 + SLIP)
        target_error = root_down(sum(w * e * e for w, e in zip(weights, errors, strict=True))) * pad(r) * (1 + gamma(n))
        assert target_error * (1 - SLIP) <= rational(frame.target_error) <= target_error * (1 + SLIP)
        spectrum = diagonal(images, normalised(lam))
        for value, exact in zip(rational(frame.spectrum), spectrum, strict=True):
            assert exact * (1 - SLIP) <= value


def diagonal(images, lam):
    """size (1 + γ) pad + pad weight Σ off/weight, with off = |matrix| + γ pad root rootᵀ and weights of 1e-4 at least."""
    n, r = images.shape
    matrix = rational(np.abs((images * lam[:, None]).T @ images))
    size = rational((images * images * lam[:, None]).sum(axis=0))
    root = [root_down(x) for x in size]
    weight = [max(x, rational(frames._LEAST_WEIGHT) * max(root)) or Fraction(1) for x in root]
    result = []
    for c in range(r):
        off = sum((matrix[c][e] + gamma(n + 4) * pad(r) * root[c] * root[e]) / weight[e] for e in range(r) if e != c)
        result.append(size[c] * (1 + gamma(n + 4)) * pad(r) + pad(r) * weight[c] * off)
    return result


def test_diagonals_are_those_of_the_theorem():
    rng = np.random.default_rng(0)
    for n, r in ((1, 1), (3, 2), (200, 1), (200, 3), (5, 6)):
        images, lam = rng.normal(size=(n, r)), rng.uniform(size=n)
        images[:, -1] *= 1e-6
        for value, exact in zip(rational(frames._dominating_diagonal(images, lam)), diagonal(images, lam), strict=True):
            assert exact * (1 - SLIP) <= value <= exact * (1 + SLIP)
    images, lam = np.kron(np.eye(2), np.ones((1, 12))) + 0.0, np.ones(2)  # exact sums: only the margins are left
    for value, exact in zip(rational(frames._dominating_diagonal(images, lam)), diagonal(images, lam), strict=True):
        assert exact * (1 - SLIP / 4) <= value


@pytest.mark.parametrize("r", [1, 10, 100])
def test_constraints_and_prices_are_those_of_the_theorem(r):
    rng = np.random.default_rng(r)
    for drift in (0.0, 0.09):
        frame = made(r, drift, target_error=0.3, spectrum=0.7)
        norm2 = rng.uniform(0.5, 2.0, size=20)
        prices, errors = norm2 * rng.uniform(0.1, 0.7, size=20), 0.2 * rng.uniform(size=20)
        most_g, most_p = frame.most_constraint(norm2, errors), frame.most_price(prices, norm2, errors)
        d = rational(drift)
        for n2, p, e, g_bound, p_bound in zip(*map(rational, (norm2, prices, errors, most_g, most_p)), strict=True):
            length = root_down(n2) * pad(r) + e
            g = length * length * pad(r) / (1 - d)
            assert g * (1 - SLIP / 2) <= g_bound <= g * (1 + SLIP / 2)
            shift = e + d / (1 - d) * pad(r) * length
            root = root_down(p) * pad(r) + root_down(rational(0.7)) * pad(r) * shift + rational(0.3) * (length + shift)
            assert root * root * pad(r) * (1 - SLIP / 2) <= p_bound <= root * root * pad(r) * (1 + SLIP / 2)


def test_both_bounds_are_those_of_the_theorem():
    """From the frame's numbers: slope, what is known, outer bounds and the cost of what is fixed, each with its margin."""
    for problem, alpha, lam in whole_instances():
        bounds, frame, r = evaluate(problem, alpha, lam), framed(problem, alpha, lam), problem.rank
        doubt, fixed, k = rational(problem.bound_error), rational(problem.offset), len(alpha)
        padded = rational(frame.most_price(*[frames.images(frame, problem.features)[i] for i in (1, 0, 2)]))
        known = Fraction(0)
        if len(problem.base):
            norm2, prices, errors = frames.images(frame, problem.base)
            known = sum(rational(frame.most_price(prices, norm2, errors))) * (1 + gamma(len(problem.base))) * pad(r)
        outer = [
            None if u is None else u * (1 + 4 * doubt) * pad(r) for u in bounds_of(problem.upper, len(problem.features))
        ]
        slope = rational(frame.strength) ** 2 / pad(r) - known
        lower = best_gain(slope, padded, outer) / pad(r) if slope > 0 else Fraction(0)
        least = fixed * (1 - 2 * doubt - gamma(k + 4)) / pad(r)
        assert rational(bounds.lower) <= max(lower, Fraction(0)) + least + SLIP / 4 * (lower + least)
        most = (sum(rational(bounds.alpha)) + fixed * (1 + gamma(k + 4))) * (1 + doubt) * pad(r)
        assert rational(bounds.upper) >= most * (1 - SLIP / 4)
        if problem.scalable:
            worst = rational(float(np.max(bounds.alpha / alpha)))
            assert rational(bounds.upper) >= rational(frame.cost) * worst * (1 + doubt) * pad(r) * (1 - SLIP / 4)
