"""Every margin of a frame against rationals, and that each of these checks sees a margin that is missing.

Two kinds of referee. *Truth*: the rows behind the canonical ones are wrong by exactly ρ, and weights and bounds by their own error,
in the worst direction, and everything is computed again from them exactly. *Worst case*: what the theorem needs if every single
rounding is as bad as IEEE arithmetic allows, which real rounding hardly ever is, so that truth alone would not see it.
"""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from exactly import U, dot, gamma, product, rational, root_down, root_up, semidefinite, solved, transposed, weighted
from margins import framed, in_both, information, instance, instances, made, moved, normalised

from allocopt.certify import frame as frames
from allocopt.certify.certificate import evaluate
from allocopt.certify.frame import frame_of
from allocopt.linear import floating


def worst_errors(frame, problem, rows):
    """(γ_r + ρ) ‖|a| |B|‖ of every row, just above."""
    unit = gamma(problem.rank) + rational(problem.error)
    sizes = product(rational(np.abs(rows)), rational(np.abs(frame.basis)))
    return [unit * root_up(dot(s, s)) for s in sizes]


def errors_hold(problem, alpha, lam):
    frame = framed(problem, alpha, lam)
    rows = np.concatenate([problem.features, problem.targets])
    images = rows @ frame.basis
    bounds = rational(frame.errors(rows, np.einsum("ij,ij->i", images, images)))
    if any(b < e for b, e in zip(bounds, worst_errors(frame, problem, rows), strict=True)):
        return False
    rho, basis = rational(problem.error), rational(frame.basis)
    for row, image, bound in zip(rows, rational(images), bounds, strict=True):
        for c in range(problem.rank):  # the direction that hurts column c most
            signs = np.sign(row * frame.basis[:, c])
            true = product([[x * (1 + rho * rational(s)) for x, s in zip(rational(row), signs, strict=True)]], basis)[0]
            off = [x - y for x, y in zip(true, image, strict=True)]
            if dot(off, off) > bound * bound:
                return False
    return True


def drift_holds(problem, alpha, lam):
    frame = framed(problem, alpha, lam)
    basis, delta = rational(frame.basis), rational(frame.drift)
    r = problem.rank
    identity = [[Fraction(int(c == e)) for e in range(r)] for c in range(r)]
    rho, doubt = rational(problem.error), rational(problem.bound_error)
    for sign in (1, -1):
        matrix = information(problem, alpha, sign * rho, sign * doubt)
        image = product(product(transposed(basis), matrix), basis)
        for way in (1, -1):
            rest = [[delta * identity[c][e] - way * (image[c][e] - identity[c][e]) for e in range(r)] for c in range(r)]
            if not semidefinite(rest):
                return False
    # worst case: rounding of the images, of the n products and sums, and of the weights' own errors
    rows = np.concatenate([problem.features, problem.base])
    weights = [*rational(alpha), *[Fraction(1)] * len(problem.base)]
    images = rational(rows @ frame.basis)
    n = len(rows)
    spread = sum((w * dot(x, x) for w, x in zip(weights, images, strict=True)), Fraction(0))
    errors = worst_errors(frame, problem, rows)
    wrong = root_down(sum((w * e * e for w, e in zip(weights, errors, strict=True)), Fraction(0)))
    need = gamma(n + 1) * spread + wrong * (2 * root_down(1 - gamma(n + 1) * spread) + wrong) + doubt
    return delta >= need


def strength_holds(problem, alpha, lam):
    frame = framed(problem, alpha, lam)
    basis, weights = rational(frame.basis), rational(normalised(lam))
    rho, doubt, strength = (rational(x) for x in (problem.error, problem.bound_error, frame.strength))
    matrix = information(problem, alpha, rho, doubt)
    targets = moved(problem.targets, -rho)
    if strength > sum((w * dot(b, solved(matrix, b)) for w, b in zip(weights, targets, strict=True)), Fraction(0)):
        return False
    images = product(rational(problem.targets), basis)
    least = [
        max(root_up(dot(z, z)) - e, Fraction(0))
        for z, e in zip(images, worst_errors(frame, problem, problem.targets), strict=True)
    ]
    whole = sum((w * x * x for w, x in zip(weights, least, strict=True)), Fraction(0))
    return strength * (1 + rational(frame.drift)) * (1 + gamma(len(weights))) <= whole


def target_error_holds(problem, alpha, lam):
    frame = framed(problem, alpha, lam)
    errors = worst_errors(frame, problem, problem.targets)
    need = sum((w * e * e for w, e in zip(rational(normalised(lam)), errors, strict=True)), Fraction(0))
    return rational(frame.target_error) ** 2 >= need * (1 + gamma(len(errors)))


def cost_holds(problem, alpha, lam):
    frame = framed(problem, alpha, lam)
    need = sum(rational(alpha)) * (1 + rational(problem.bound_error)) * (1 + gamma(len(alpha) - 1))
    return rational(frame.cost) >= need


def spectrum_holds(problem, alpha, lam):
    frame = framed(problem, alpha, lam)
    return dominates(frame.spectrum, problem.targets[lam > 0] @ frame.basis, normalised(lam))


def dominates(diagonal, images, lam):
    """D − Σ λ z zᵀ is psd, also when every product and sum of the n terms was rounded as badly as can be."""
    r = images.shape[1]
    rows, weights = rational(images), rational(lam)
    exact = weighted(rows, weights, r)
    sizes = weighted(rational(np.abs(images)), weights, r)
    for factor in (Fraction(0), gamma(len(images) + 1)):
        rest = [[-x - factor * s for x, s in zip(*pair, strict=True)] for pair in zip(exact, sizes, strict=True)]
        for c in range(r):
            rest[c][c] += rational(diagonal[c])
        if not semidefinite(rest):
            return False
    return True


def constraints_hold(problem, alpha, lam):
    frame = framed(problem, alpha, lam)
    images = problem.targets @ frame.basis
    norm2 = np.einsum("ij,ij->i", images, images)
    bounds = rational(frame.most_constraint(norm2, frame.errors(problem.targets, norm2)))
    rho, doubt = rational(problem.error), rational(problem.bound_error)
    matrix = information(problem, alpha, -rho, -doubt)
    return all(dot(b, solved(matrix, b)) <= g for b, g in zip(moved(problem.targets, rho), bounds, strict=True))


def prices_hold(problem, alpha, lam):
    frame = framed(problem, alpha, lam)
    norm2, prices, errors = frames.images(frame, problem.features)
    bounds = rational(frame.most_price(prices, norm2, errors))
    rho, doubt = rational(problem.error), rational(problem.bound_error)
    matrix = information(problem, alpha, -rho, -doubt)
    weights = rational(normalised(lam))
    directions = [solved(matrix, b) for b in moved(problem.targets, rho)]
    for a, most in zip(moved(problem.features, rho), bounds, strict=True):
        if sum((w * dot(a, y) ** 2 for w, y in zip(weights, directions, strict=True)), Fraction(0)) > most:
            return False
    return True


CHECKS = {
    check.__name__: check
    for check in (
        errors_hold,
        drift_holds,
        strength_holds,
        target_error_holds,
        cost_holds,
        spectrum_holds,
        constraints_hold,
        prices_hold,
    )
}


def test_the_numbers_of_rounding():
    assert Fraction(floating.UNIT) == U == Fraction(np.finfo(float).eps) / 2
    assert floating.ENTRY_ERROR == 2.0**-47
    assert floating.GAP_ERROR == 2.0**-46
    assert floating.PAIR_ERROR == 2.0**-98
    assert floating.TINY == 2.0**-1000
    assert floating.NOISE == 2.0**-42


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 64, 1000, 10**6, 10**9, 10**12])
def test_gamma_is_rounded_up(n):
    exact = gamma(n)
    assert exact <= Fraction(floating.gamma(n)) <= exact * (1 + 8 * U)


@pytest.mark.parametrize("r", [1, 2, 5, 10, 50, 200, 1000])
def test_padding_covers_sums_of_squares_and_two_dozen_operations(r):
    """|ŵ|² is r products and r − 1 sums, its root and what is done with it are operations of their own."""
    needed = gamma(2 * r + 32)
    assert 1 + needed <= Fraction(frames.padding(r)) <= 1 + 4 * needed


@pytest.mark.parametrize("r", [1, 7, 60])
@pytest.mark.parametrize("drift", [0.0, 1e-13, 1e-3, 0.09])
def test_constraints_and_prices_in_the_worst_case(r, drift):
    """From |ŵ|² and prices that were rounded down as far as they can be, errors and drift of any size."""
    rng = np.random.default_rng(r)
    norm2 = np.exp(4.0 * rng.normal(size=50))
    for size in (0.0, 1e-13, 1e-3):
        errors = size * np.sqrt(norm2) * rng.uniform(size=50)
        for target_error, spectrum in ((0.0, 1.0), (1e-3, 1.0), (1e-3, 4.0), (0.5, 1e-4)):
            prices = norm2 * rng.uniform(0.01, 1.0, size=50) * spectrum
            frame = made(r, drift, target_error, spectrum)
            most_g = rational(frame.most_constraint(norm2, errors))
            most_p = rational(frame.most_price(prices, norm2, errors))
            d, w, s = rational(drift), rational(target_error), rational(spectrum)
            grown = 1 + gamma(r)
            for n2, p, e, g_bound, p_bound in zip(*map(rational, (norm2, prices, errors)), most_g, most_p, strict=True):
                length = root_down(n2 * grown) + e
                assert g_bound >= length * length / (1 - d)
                assert g_bound <= length * length / (1 - d) * (1 + gamma(40 * r + 400))
                shift = e + d / (1 - d) * length
                root = root_down(p * (1 + gamma(r + 1))) + root_down(s) * shift + w * (length + shift)
                assert p_bound >= root * root
                assert p_bound <= root * root * (1 + gamma(60 * r + 600))


def test_slope_is_rounded_down():
    for strength in np.random.default_rng(0).uniform(0.5, 2.0, size=200):
        frame = made(3, strength=float(strength))
        exact = rational(strength) ** 2
        assert exact * (1 - gamma(200)) <= rational(frame.slope) <= exact / (1 + gamma(12))
    assert made(2, spectrum=3.0).largest_weight == 3.0


def test_a_drift_beyond_a_tenth_proves_nothing(monkeypatch):
    problem, alpha, lam = instance(0, 1, 1, 1, rho=0.03)
    assert 0.05 < framed(problem, alpha, lam).drift < 0.1
    assert frame_of(dataclasses.replace(problem, error=0.06), alpha, lam) is None
    failed = evaluate(dataclasses.replace(problem, error=0.06, offset=2.0, bound_error=0.25), alpha, lam)
    assert failed.upper == failed.rounding == np.inf
    assert 0.99 <= failed.lower <= 2.0 * (1 - 0.25)
    assert np.isinf(failed.constraints).all()
    assert failed.gap == np.inf


@pytest.mark.parametrize("n", [1, 3, 150])
@pytest.mark.parametrize("r", [1, 2, 4])
def test_the_diagonal_dominates(r, n):
    rng = np.random.default_rng([r, n])
    for images in (
        rng.normal(size=(n, r)),
        np.exp(5.0 * rng.normal(size=(n, r))),
        np.ones((n, r)) + 1e-9 * rng.normal(size=(n, r)),
        np.repeat(rng.normal(size=(n, 1)), r, axis=1) * 2.0 ** np.arange(0, 20 * r, 20)[:r],
        np.outer(rng.normal(size=n), [1.0, *[0.0] * (r - 1)]),
    ):
        lam = rng.uniform(size=n)
        assert dominates(frames._dominating_diagonal(images, lam), images, lam)
    assert frames._dominating_diagonal(np.zeros((0, r)), np.zeros(0)).tolist() == [0.0] * r


def test_a_diagonal_without_its_margins_is_seen(monkeypatch):
    images, lam = np.ones((400, 4)), np.full(400, 0.1)
    images[:, 1] = -1.0
    assert dominates(frames._dominating_diagonal(images, lam), images, lam)
    orthogonal = np.kron(np.array([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]), np.ones((100, 1)))
    diagonal = frames._dominating_diagonal(orthogonal, lam)
    assert dominates(diagonal, orthogonal, lam)
    assert diagonal.max() <= 40.0 * (1 + 1e-12)  # and it is as small as it can be, but for rounding
    in_both(monkeypatch, "gamma", lambda n: 0.0)
    assert not dominates(frames._dominating_diagonal(orthogonal, lam), orthogonal, lam)


@pytest.mark.parametrize("name", CHECKS)
def test_the_numbers_of_a_frame_are_bounds(name):
    for seed, case in enumerate(instances()):
        assert CHECKS[name](*case), seed
    for seed, case in enumerate(instances(base=2)):
        if seed % 3 == 0 and name != "strength_holds":
            assert CHECKS[name](*case), seed


def without(patch, **fields):
    """What `frame_of` makes, with some of its numbers changed."""

    def changed(problem, alpha, lam):
        frame = frame_of(problem, alpha, lam)
        return dataclasses.replace(frame, **{name: change(frame, problem) for name, change in fields.items()})

    patch.setitem(globals(), "framed", changed)


MISSING = {
    "γ": (
        ("gamma", lambda n: 0.0),
        ("errors_hold", "drift_holds", "strength_holds", "target_error_holds", "cost_holds", "spectrum_holds"),
    ),
    "ρ": ({"unit": lambda frame, problem: floating.gamma(problem.rank + 2)}, ("errors_hold", "constraints_hold", "prices_hold")),
    "γ of the images": ({"unit": lambda frame, problem: problem.error}, ("errors_hold",)),
    "drift": ({"drift": lambda frame, problem: 0.0}, ("drift_holds", "constraints_hold", "prices_hold")),
    "half the drift": ({"drift": lambda frame, problem: 0.5 * frame.drift}, ("drift_holds", "constraints_hold", "prices_hold")),
    "target_error": ({"target_error": lambda frame, problem: 0.0}, ("target_error_holds", "prices_hold")),
    "strength": ({"strength": lambda frame, problem: frame.strength * (1 + 2.0**-30)}, ("strength_holds",)),
    "cost": ({"cost": lambda frame, problem: frame.cost * (1 - 2.0**-22)}, ("cost_holds",)),
}  # fmt: skip


@pytest.mark.parametrize("margin", MISSING)
def test_a_missing_margin_is_seen(margin, monkeypatch):
    change, seen_by = MISSING[margin]
    if isinstance(change, dict):
        without(monkeypatch, **change)
    else:
        in_both(monkeypatch, *change)
    for name in seen_by:
        assert not all(CHECKS[name](*case) for case in instances()), name
