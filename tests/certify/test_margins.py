"""Every margin of the certificate in doubles against rationals, and that each of these checks sees a margin that is missing.

Two kinds of referee. *Truth*: the rows behind the canonical ones are wrong by exactly ρ, and weights and bounds by their own error,
in the worst direction, and everything is computed again from them exactly. *Worst case*: what the theorem needs if every single
rounding is as bad as IEEE arithmetic allows, which real rounding hardly ever is, so that truth alone would not see it.
"""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from exactly import U, dot, gamma, product, rational, root_down, root_up, semidefinite, solved, transposed, weighted

from allocopt.certify import canonical, certificate
from allocopt.certify import frame as frames
from allocopt.certify.canonical import Canonical
from allocopt.certify.certificate import best_scale, evaluate
from allocopt.certify.frame import Frame, frame
from allocopt.linear import floating

RHO, DOUBT = 2.0**-20, 2.0**-21


def in_both(monkeypatch, name, value):
    """Change a name in the modules of the frame and of the bounds, wherever these use it."""
    for module in (frames, certificate):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)


def instance(seed, r=2, n=6, m=3, rho=0.0, doubt=0.0, base=0, rough=0, ratios=False):
    """A canonical problem with a pair; ``rough``: nearly parallel rows in columns of very different units."""
    rng = np.random.default_rng([seed, r, n, m])
    rows = rng.normal(size=(n + m + base, r))
    if rough:
        rows = 1.0 + rows * 2.0 ** -rng.integers(1, rough, size=r)
        rows *= 2.0 ** rng.integers(-20, 21, size=r)
    features, targets, known = rows[:n], rows[n : n + m], rows[n + m :]
    factors = None
    if ratios:
        factors = np.exp(rng.normal(size=n))
        targets = features * factors[:, None]
    problem = Canonical(features, targets, known, ratios=factors, error=rho, bound_error=doubt)
    return problem, np.exp(rng.normal(size=n)), np.exp(rng.normal(size=len(targets)))


def instances(**options):
    """A few shapes, smooth and rough, with and without errors of the rows; most rows where sums of many terms matter."""
    for seed, (r, n, m) in enumerate(
        [(1, 1, 1), (1, 3, 2), (1, 120, 1), (1, 1, 120), (2, 5, 3), (3, 6, 40), (4, 9, 3)]
    ):
        for rho, doubt in ((0.0, 0.0), (RHO, 0.0), (0.0, DOUBT), (RHO, DOUBT)):
            yield instance(seed, r, n, m, rho, doubt, **options)
        if r > 1:
            yield instance(seed, r, n, m, 2.0**-46, 2.0**-46, rough=20, **options)


def framed(problem, alpha, lam):
    seen = frame(problem, alpha, lam)
    assert seen is not None
    return seen


def moved(rows, by):
    """Rows whose entries are all wrong by a factor 1 + ``by``."""
    return [[x * (1 + by) for x in row] for row in rational(rows)]


def worst_errors(seen, problem, rows):
    """(γ_r + ρ) ‖|a| |B|‖ of every row, just above."""
    unit = gamma(problem.rank) + rational(problem.error)
    sizes = product(rational(np.abs(rows)), rational(np.abs(seen.basis)))
    return [unit * root_up(dot(s, s)) for s in sizes]


def errors_hold(problem, alpha, lam):
    seen = framed(problem, alpha, lam)
    rows = np.concatenate([problem.features, problem.targets])
    images = rows @ seen.basis
    bounds = rational(seen.errors(rows, np.einsum("ij,ij->i", images, images)))
    if any(b < e for b, e in zip(bounds, worst_errors(seen, problem, rows), strict=True)):
        return False
    rho, basis = rational(problem.error), rational(seen.basis)
    for row, image, bound in zip(rows, rational(images), bounds, strict=True):
        for c in range(problem.rank):  # the direction that hurts column c most
            signs = np.sign(row * seen.basis[:, c])
            true = product([[x * (1 + rho * rational(s)) for x, s in zip(rational(row), signs, strict=True)]], basis)[0]
            off = [x - y for x, y in zip(true, image, strict=True)]
            if dot(off, off) > bound * bound:
                return False
    return True


def information(problem, alpha, by, weight_by):
    """M of rows and weights that are wrong by factors."""
    rows = [*moved(problem.features, by), *moved(problem.base, by)]
    weights = [rational(a) * (1 + weight_by) for a in alpha] + [1 + weight_by] * len(problem.base)
    return weighted(rows, weights, problem.rank)


def drift_holds(problem, alpha, lam):
    seen = framed(problem, alpha, lam)
    basis, delta = rational(seen.basis), rational(seen.drift)
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
    images = rational(rows @ seen.basis)
    n = len(rows)
    spread = sum((w * dot(x, x) for w, x in zip(weights, images, strict=True)), Fraction(0))
    errors = worst_errors(seen, problem, rows)
    wrong = root_down(sum((w * e * e for w, e in zip(weights, errors, strict=True)), Fraction(0)))
    need = gamma(n + 1) * spread + wrong * (2 * root_down(1 - gamma(n + 1) * spread) + wrong) + doubt
    return delta >= need


def normalised(lam):
    return lam[lam > 0] / float(lam[lam > 0].sum())


def strength_holds(problem, alpha, lam):
    seen = framed(problem, alpha, lam)
    basis, weights = rational(seen.basis), rational(normalised(lam))
    rho, doubt, strength = (rational(x) for x in (problem.error, problem.bound_error, seen.strength))
    matrix = information(problem, alpha, rho, doubt)
    targets = moved(problem.targets, -rho)
    if strength > sum((w * dot(b, solved(matrix, b)) for w, b in zip(weights, targets, strict=True)), Fraction(0)):
        return False
    images = product(rational(problem.targets), basis)
    least = [
        max(root_up(dot(z, z)) - e, Fraction(0))
        for z, e in zip(images, worst_errors(seen, problem, problem.targets), strict=True)
    ]
    whole = sum((w * x * x for w, x in zip(weights, least, strict=True)), Fraction(0))
    return strength * (1 + rational(seen.drift)) * (1 + gamma(len(weights))) <= whole


def wobble_holds(problem, alpha, lam):
    seen = framed(problem, alpha, lam)
    errors = worst_errors(seen, problem, problem.targets)
    need = sum((w * e * e for w, e in zip(rational(normalised(lam)), errors, strict=True)), Fraction(0))
    return rational(seen.wobble) ** 2 >= need * (1 + gamma(len(errors)))


def cost_holds(problem, alpha, lam):
    seen = framed(problem, alpha, lam)
    need = sum(rational(alpha)) * (1 + rational(problem.bound_error)) * (1 + gamma(len(alpha) - 1))
    return rational(seen.cost) >= need


def spectrum_holds(problem, alpha, lam):
    seen = framed(problem, alpha, lam)
    return dominates(seen.spectrum, problem.targets[lam > 0] @ seen.basis, normalised(lam))


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
    seen = framed(problem, alpha, lam)
    images = problem.targets @ seen.basis
    norm2 = np.einsum("ij,ij->i", images, images)
    bounds = rational(seen.most_constraint(norm2, seen.errors(problem.targets, norm2)))
    rho, doubt = rational(problem.error), rational(problem.bound_error)
    matrix = information(problem, alpha, -rho, -doubt)
    return all(dot(b, solved(matrix, b)) <= g for b, g in zip(moved(problem.targets, rho), bounds, strict=True))


def prices_hold(problem, alpha, lam):
    seen = framed(problem, alpha, lam)
    norm2, prices, errors = frames.images(seen, problem.features)
    bounds = rational(seen.most_price(prices, norm2, errors))
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
        wobble_holds,
        cost_holds,
        spectrum_holds,
        constraints_hold,
        prices_hold,
    )
}


# --- the parts on their own


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


def made(r, drift=0.0, wobble=0.0, spectrum=1.0, strength=1.0):
    return Frame(np.eye(r), np.full(r, spectrum), strength, drift, wobble, 0.0, 1.0)


@pytest.mark.parametrize("r", [1, 7, 60])
@pytest.mark.parametrize("drift", [0.0, 1e-13, 1e-3, 0.09])
def test_constraints_and_prices_in_the_worst_case(r, drift):
    """From |ŵ|² and prices that were rounded down as far as they can be, errors and drift of any size."""
    rng = np.random.default_rng(r)
    norm2 = np.exp(4.0 * rng.normal(size=50))
    for size in (0.0, 1e-13, 1e-3):
        errors = size * np.sqrt(norm2) * rng.uniform(size=50)
        for wobble, spectrum in ((0.0, 1.0), (1e-3, 1.0), (1e-3, 4.0), (0.5, 1e-4)):
            prices = norm2 * rng.uniform(0.01, 1.0, size=50) * spectrum
            seen = made(r, drift, wobble, spectrum)
            most_g = rational(seen.most_constraint(norm2, errors))
            most_p = rational(seen.most_price(prices, norm2, errors))
            d, w, s = rational(drift), rational(wobble), rational(spectrum)
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
        seen = made(3, strength=float(strength))
        exact = rational(strength) ** 2
        assert exact * (1 - gamma(200)) <= rational(seen.slope) <= exact / (1 + gamma(12))
    assert made(2, spectrum=3.0).steepest == 3.0


def test_a_drift_beyond_a_tenth_proves_nothing(monkeypatch):
    problem, alpha, lam = instance(0, 1, 1, 1, rho=0.03)
    assert 0.05 < framed(problem, alpha, lam).drift < 0.1
    assert frame(dataclasses.replace(problem, error=0.06), alpha, lam) is None
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


def gain(q, slope, prices, upper):
    """q·slope − Σ u (q p − 1)_+, exactly; None where an arm without bound costs more than 1."""
    total = q * slope
    for p, u in zip(prices, upper, strict=True):
        over = q * p - 1
        if over > 0:
            if u is None:
                return None
            total -= u * over
    return total


def best_gain(slope, prices, upper):
    gains = [gain(1 / p, slope, prices, upper) for p in prices if p > 0]
    return max((g for g in gains if g is not None), default=Fraction(0))


def bounds_of(upper, count):
    return [None] * count if upper is None else [None if np.isinf(u) else rational(u) for u in upper]


def scales():
    rng = np.random.default_rng(5)
    for turn in range(300):
        k = int(rng.integers(1, 6))
        prices = rng.uniform(0.1, 2.0, size=k)
        upper = None
        if turn % 3:
            upper = rng.uniform(0.01, 1.0, size=k)
            if turn % 3 == 1:
                upper[rng.integers(k)] = np.inf
            prices[rng.uniform(size=k) < 0.1] = 0.0
        yield float(rng.uniform(0.05, 2.0)), prices, upper


def scale_holds(slope, prices, upper):
    q, best = best_scale(slope, prices, upper)
    exact = best_gain(rational(slope), rational(prices), bounds_of(upper, len(prices)))
    if q == 0.0:
        return best == 0.0
    finite = bool(np.all(prices > 0)) and (upper is None or np.isinf(upper).any() or upper @ prices > slope)
    return best <= exact and (not finite or best >= exact - Fraction(1, 2**45))


def test_the_best_scale_is_not_exceeded(monkeypatch):
    for case in scales():
        assert scale_holds(*case)
    assert best_scale(0.0, np.ones(1), None) == (0.0, 0.0)
    assert best_scale(-1.0, np.ones(1), None) == (0.0, 0.0)
    assert best_scale(1.0, np.array([0.5]), np.array([0.1])) == (
        0.0,
        0.0,
    )  # bounds that leave no room: nothing is claimed
    q, best = best_scale(1.0, np.array([2.0, 1.0]), np.array([0.5, np.inf]))
    assert (q, best) == (0.5, pytest.approx(0.5, rel=1e-14))
    q, best = best_scale(2.0, np.array([2.0, 1.0]), np.array([0.5, np.inf]))
    assert (q, best) == (1.0, pytest.approx(1.5, rel=1e-14))
    in_both(monkeypatch, "UNIT", 0.0)
    assert not all(scale_holds(*case) for case in scales())


# --- the numbers of a frame


@pytest.mark.parametrize("name", CHECKS)
def test_the_numbers_of_a_frame_are_bounds(name):
    for seed, case in enumerate(instances()):
        assert CHECKS[name](*case), seed
    for seed, case in enumerate(instances(base=2)):
        if seed % 3 == 0 and name != "strength_holds":
            assert CHECKS[name](*case), seed


# --- both bounds as a whole


def exact_dual(problem, alpha, lam, row_by, target_by, weight_by, bound_by):
    """The dual's value at y_j = M^-1 b_j for rows, weights and bounds that are wrong by factors."""
    features, base = moved(problem.features, row_by), moved(problem.base, row_by)
    targets = moved(problem.targets, target_by)
    matrix = information(problem, alpha, row_by, weight_by)
    weights = rational(lam)
    directions = [solved(matrix, b) for b in targets]
    strength = sum((w * dot(b, y) for w, b, y in zip(weights, targets, directions, strict=True)), Fraction(0))

    def price(row):
        return sum((w * dot(row, y) ** 2 for w, y in zip(weights, directions, strict=True)), Fraction(0))

    slope = strength**2 / sum(weights) - sum((price(row) for row in base), Fraction(0))
    upper = [None if u is None else u * (1 + bound_by) for u in bounds_of(problem.upper, len(features))]
    dual = best_gain(slope, [price(row) for row in features], upper) if slope > 0 else Fraction(0)
    return max(dual, Fraction(0)) + rational(problem.offset) * (1 - abs(bound_by))


def evaluation_holds(problem, alpha, lam):
    bounds = evaluate(problem, alpha, lam)
    assert np.isfinite(bounds.upper)
    rho, doubt = rational(problem.error), rational(problem.bound_error)
    for sign in (1, -1):
        for target_sign in (1, -1):
            dual = exact_dual(problem, alpha, lam, sign * rho, target_sign * rho, sign * doubt, doubt)
            if rational(bounds.lower) > dual:
                return False
    matrix = information(problem, bounds.alpha, -rho, -doubt)
    if any(dot(b, solved(matrix, b)) > 1 for b in moved(problem.targets, rho)):
        return False
    cost = (sum(rational(bounds.alpha)) + rational(problem.offset)) * (1 + doubt)
    if problem.upper is not None and (bounds.alpha > problem.upper).any():
        return False
    return rational(bounds.upper) >= cost


def whole_instances():
    for doubt in (0.0, 2.0**-10):
        yield capped(doubt)
    for seed in range(6):
        for rho, doubt in ((0.0, 0.0), (RHO, DOUBT), (0.0, 2.0**-10), (2.0**-46, 2.0**-46)):
            problem, alpha, lam = instance(seed, 1 + seed % 3, 4, 3, rho, doubt, base=seed % 2, rough=15 * (seed == 5))
            yield problem, alpha, lam
            yield dataclasses.replace(problem, offset=3.0), alpha, lam
            yield dataclasses.replace(problem, offset=2.0**30 / 3), alpha, lam
            bounds = evaluate(problem, alpha, lam)
            upper = bounds.alpha * np.where(np.arange(4) < 3, 1.5, np.inf)
            yield dataclasses.replace(problem, upper=upper, offset=float(seed)), bounds.alpha, lam
    for seed in range(4):
        yield instance(seed, 1 + seed, 4 + seed, 0, RHO, DOUBT, ratios=True)
        problem, alpha, lam = instance(seed, 1 + seed, 4 + seed, 0, ratios=True)
        yield problem, alpha, lam


def test_both_bounds_hold():
    for case in whole_instances():
        assert evaluation_holds(*case)


def capped(doubt):
    """r = 1: a = (1, 1/2), u = (1/2, ∞), b = 1. Then value = u + 4 (1 − u), and errors of u have a factor of −3."""
    problem = Canonical(
        np.array([[1.0], [0.5]]), np.ones((1, 1)), np.zeros((0, 1)), np.array([0.5, np.inf]), bound_error=doubt
    )
    return problem, np.array([0.5, 2.0]), np.ones(1)


@pytest.mark.parametrize("doubt", [0.0, 2.0**-20, 2.0**-10])
def test_errors_of_upper_bounds_are_in_the_lower_one(doubt):
    problem, alpha, lam = capped(doubt)
    bounds = evaluate(problem, alpha, lam)
    for factor in (1, 4):  # the error itself, and the theorem's allowance for it
        most = rational(0.5) * (1 + factor * rational(doubt))
        assert rational(bounds.lower) <= most + 4 * (1 - most)
    assert bounds.lower == pytest.approx(2.5, rel=20 * doubt + 1e-12)
    assert bounds.upper == pytest.approx(2.5, rel=20 * doubt + 1e-2)
    assert bounds.upper >= 2.5


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e9])
@pytest.mark.parametrize("doubt", [0.0, 2.0**-10])
def test_what_is_fixed_costs_what_it_may_cost(offset, doubt):
    problem = Canonical(np.ones((1, 1)), np.ones((1, 1)), np.zeros((0, 1)), offset=offset, bound_error=doubt)
    bounds = evaluate(problem, np.ones(1), np.ones(1))
    total = 1 + rational(offset)
    assert rational(bounds.lower) <= 1 + rational(offset) * (1 - rational(doubt))
    assert rational(bounds.upper) >= total * (1 + rational(doubt))
    assert bounds.lower == pytest.approx(float(total), rel=5 * doubt + 1e-13)
    assert bounds.upper == pytest.approx(float(total), rel=5 * doubt + 1e-13)
    assert bounds.gap == (bounds.upper - bounds.lower) / bounds.lower


def test_feasible_allocations_stay_so_when_rounded():
    """Scaled by the worst constraint, with room for the roundings of the way back to the program's units."""
    rng = np.random.default_rng(3)
    problem, alpha, _ = instance(1, 2, 5, 3)
    for doubt in (0.0, 2.0**-10):
        problem = dataclasses.replace(problem, bound_error=doubt)
        for worst in rng.uniform(0.5, 2.0, size=100):
            scaled, cost = certificate._make_feasible(problem, alpha, np.array([0.1, worst]), float(alpha.sum()))
            need = rational(worst) * (1 + rational(doubt)) * (1 + 8 * U)
            assert all(x >= a * need for x, a in zip(rational(scaled), rational(alpha), strict=True))
            assert rational(cost) >= rational(float(alpha.sum())) * need


def test_bounded_allocations_are_proven_feasible_or_not_claimed():
    for seed in range(12):
        problem, alpha, lam = instance(seed, 2, 4, 3, base=seed % 2)
        good = evaluate(problem, alpha, lam).alpha
        for factor in (1.0 + 1e-9, 1.2, 3.0):
            bounded = dataclasses.replace(problem, upper=good * factor)
            found = evaluate(bounded, 0.3 * good, lam)
            assert np.isfinite(found.upper)
            assert (found.alpha <= bounded.upper).all()
            matrix = information(bounded, found.alpha, Fraction(0), Fraction(0))
            assert all(dot(b, solved(matrix, b)) <= 1 for b in rational(problem.targets))
            assert rational(found.upper) >= sum(rational(found.alpha))
        hopeless = dataclasses.replace(problem, upper=good * 1e-3)
        if not len(problem.base):
            assert np.isinf(evaluate(hopeless, 1e-4 * good, lam).upper)


def test_the_cost_is_that_of_what_was_scaled():
    rng = np.random.default_rng(8)
    problem, _, _ = instance(0, 1, 1, 1)
    for alpha, worst in rng.uniform(0.5, 2.0, size=(300, 2)):
        scaled, cost = certificate._make_feasible(problem, np.array([alpha]), np.array([worst]), float(alpha))
        assert rational(cost) >= rational(scaled[0])


def test_what_is_reported_beside_the_bounds():
    """λ in the dual's scale, so that its sum is the value; prices with it, g at the α that was passed, and what rounding costs."""
    for seed in range(3):
        problem, alpha, lam = instance(seed, 2, 5, 4)
        bounds = evaluate(problem, alpha, lam)
        assert bounds.multipliers.sum() == pytest.approx(bounds.lower, rel=1e-9)
        assert bounds.multipliers / bounds.multipliers.sum() == pytest.approx(lam / lam.sum())
        assert bounds.prices.max() == pytest.approx(1.0, rel=1e-9)
        matrix = np.linalg.inv(problem.features.T @ (problem.features * alpha[:, None]))
        assert bounds.constraints == pytest.approx(np.einsum("ij,jk,ik->i", problem.targets, matrix, problem.targets))
        assert 1e-16 < bounds.rounding < 1e-11
        directions = problem.targets @ matrix
        prices = ((problem.features @ directions.T) ** 2) @ lam
        assert bounds.prices == pytest.approx(prices / prices.max())


def test_tidying_is_taken_back_where_it_does_harm():
    """What complementarity says is zero becomes zero, unless the bounds suffer from it."""
    problem = Canonical(np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.3]]), np.eye(2), np.zeros((0, 2)))
    alpha, lam = np.array([1.0, 1.0, 1e-9]), np.ones(2)
    bounds = evaluate(problem, alpha, lam)
    tidied = certificate.tidy(problem, bounds, 1e-8)
    assert tidied.alpha[2] == 0.0 and (tidied.alpha[:2] > 0).all()
    assert tidied.gap <= max(bounds.gap, 0.5e-8)
    assert tidied.upper == pytest.approx(2.0) and tidied.lower == pytest.approx(2.0)
    slack = Canonical(np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]]), np.zeros((0, 2)))
    tidied = certificate.tidy(slack, evaluate(slack, np.ones(2), np.array([1.0, 1.0, 1e-9])), 1e-8)
    assert tidied.multipliers[2] == 0.0 and (tidied.multipliers[:2] > 0).all()
    needed = Canonical(np.array([[1.0, 0.0], [0.0, 1e6]]), np.eye(2), np.zeros((0, 2)))
    kept = evaluate(needed, np.array([1.0, 1e-12]), np.array([1.0, 1e-12]))
    assert certificate.tidy(needed, kept, 1e-8) is kept
    clean = evaluate(problem, np.array([1.0, 1.0, 0.5]), lam)
    assert certificate.tidy(problem, clean, 1e-8) is clean


def test_gap_of_bounds():
    def gap(upper, lower):
        return canonical.Bounds(upper, lower, *[np.zeros(1)] * 4, 0.0).gap

    assert gap(2.0, 1.0) == 1.0
    assert gap(0.0, 0.0) == 0.0
    assert gap(1.0, 0.0) == gap(np.inf, 1.0) == gap(np.inf, 0.0) == gap(0.0, -1.0) == np.inf


# --- the formulas of the theorem, so that no factor of them goes missing where another one would hide it

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
        seen, r = framed(problem, alpha, lam), problem.rank
        rows = np.concatenate([problem.features, problem.base])
        weights = np.concatenate([alpha, np.ones(len(problem.base))])
        images, n, doubt = rows @ seen.basis, len(rows), rational(problem.bound_error)
        gram = (images * weights[:, None]).T @ images - np.eye(r)
        spread = dot(rational(weights), rational(squared(images)))
        left = root_down(sum(x * x for row in rational(gram) for x in row)) + gamma(n + 4) * (1 + spread)
        errors = rational(seen.errors(rows, squared(images)))
        wrong = root_down(sum(w * e * e for w, e in zip(rational(weights), errors, strict=True)))
        drift = left + wrong * (2 * root_down(1 + left) + wrong)
        drift = (drift + (doubt + 8 * U) * (1 + drift)) * pad(r) * (1 + gamma(n))
        assert drift * (1 - SLIP) <= rational(seen.drift) <= drift * (1 + SLIP)
        cost = rational(float(alpha.sum())) * (1 + gamma(len(alpha)) + doubt) * pad(r)
        assert cost * (1 - SLIP / 4) <= rational(seen.cost) <= cost * (1 + SLIP / 4)


def test_the_numbers_of_the_dual_are_those_of_the_theorem():
    for problem, alpha, lam in formulas():
        seen, r = framed(problem, alpha, lam), problem.rank
        assert seen.unit == floating.gamma(r + 2) + problem.error
        images, weights, n = problem.targets @ seen.basis, rational(normalised(lam)), len(lam)
        errors = rational(seen.errors(problem.targets, squared(images)))
        least = [
            max(root_down(x) / pad(r) - e, Fraction(0)) for x, e in zip(rational(squared(images)), errors, strict=True)
        ]
        strength = sum(w * x * x for w, x in zip(weights, least, strict=True)) / pad(r)
        strength *= (1 - gamma(n + 8)) / (1 + rational(seen.drift))
        assert strength * (1 - SLIP) <= rational(seen.strength) <= strength * (1 + SLIP)
        wobble = root_down(sum(w * e * e for w, e in zip(weights, errors, strict=True))) * pad(r) * (1 + gamma(n))
        assert wobble * (1 - SLIP) <= rational(seen.wobble) <= wobble * (1 + SLIP)
        spectrum = diagonal(images, normalised(lam))
        for value, exact in zip(rational(seen.spectrum), spectrum, strict=True):
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
        seen = made(r, drift, wobble=0.3, spectrum=0.7)
        norm2 = rng.uniform(0.5, 2.0, size=20)
        prices, errors = norm2 * rng.uniform(0.1, 0.7, size=20), 0.2 * rng.uniform(size=20)
        most_g, most_p = seen.most_constraint(norm2, errors), seen.most_price(prices, norm2, errors)
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
        bounds, seen, r = evaluate(problem, alpha, lam), framed(problem, alpha, lam), problem.rank
        doubt, fixed, k = rational(problem.bound_error), rational(problem.offset), len(alpha)
        padded = rational(seen.most_price(*[frames.images(seen, problem.features)[i] for i in (1, 0, 2)]))
        known = Fraction(0)
        if len(problem.base):
            norm2, prices, errors = frames.images(seen, problem.base)
            known = sum(rational(seen.most_price(prices, norm2, errors))) * (1 + gamma(len(problem.base))) * pad(r)
        outer = [
            None if u is None else u * (1 + 4 * doubt) * pad(r) for u in bounds_of(problem.upper, len(problem.features))
        ]
        slope = rational(seen.strength) ** 2 / pad(r) - known
        lower = best_gain(slope, padded, outer) / pad(r) if slope > 0 else Fraction(0)
        least = fixed * (1 - 2 * doubt - gamma(k + 4)) / pad(r)
        assert rational(bounds.lower) <= max(lower, Fraction(0)) + least + SLIP / 4 * (lower + least)
        most = (sum(rational(bounds.alpha)) + fixed * (1 + gamma(k + 4))) * (1 + doubt) * pad(r)
        assert rational(bounds.upper) >= most * (1 - SLIP / 4)
        if problem.scalable:
            worst = rational(float(np.max(bounds.alpha / alpha)))
            assert rational(bounds.upper) >= rational(seen.cost) * worst * (1 + doubt) * pad(r) * (1 - SLIP / 4)


# --- and that all this can fail


def without(patch, **fields):
    """What `frame` makes, with some of its numbers changed."""

    def changed(problem, alpha, lam):
        seen = frame(problem, alpha, lam)
        return dataclasses.replace(seen, **{name: change(seen, problem) for name, change in fields.items()})

    patch.setitem(globals(), "framed", changed)


MISSING = {
    "γ": (("gamma", lambda n: 0.0), ("errors_hold", "drift_holds", "strength_holds", "wobble_holds", "cost_holds", "spectrum_holds")),
    "ρ": ({"unit": lambda seen, problem: floating.gamma(problem.rank + 2)}, ("errors_hold", "constraints_hold", "prices_hold")),
    "γ of the images": ({"unit": lambda seen, problem: problem.error}, ("errors_hold",)),
    "drift": ({"drift": lambda seen, problem: 0.0}, ("drift_holds", "constraints_hold", "prices_hold")),
    "half the drift": ({"drift": lambda seen, problem: 0.5 * seen.drift}, ("drift_holds", "constraints_hold", "prices_hold")),
    "wobble": ({"wobble": lambda seen, problem: 0.0}, ("wobble_holds", "prices_hold")),
    "strength": ({"strength": lambda seen, problem: seen.strength * (1 + 2.0**-30)}, ("strength_holds",)),
    "cost": ({"cost": lambda seen, problem: seen.cost * (1 - 2.0**-22)}, ("cost_holds",)),
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


@pytest.mark.parametrize("margin", ["padding", "error", "bound_error"])
def test_bounds_without_a_margin_are_seen(margin, monkeypatch):
    evaluated = evaluate
    if margin == "padding":
        in_both(monkeypatch, "padding", lambda r: 1.0)
        in_both(monkeypatch, "gamma", lambda n: 0.0)
        in_both(monkeypatch, "UNIT", 0.0)
    else:
        monkeypatch.setitem(
            globals(),
            "evaluate",
            lambda problem, alpha, lam: evaluated(dataclasses.replace(problem, **{margin: 0.0}), alpha, lam),
        )
    assert not all(evaluation_holds(*case) for case in whole_instances())
