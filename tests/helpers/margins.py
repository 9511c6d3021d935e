"""Canonical problems with a pair for each, whose rows, weights and bounds are wrong by as much as they may be."""

import dataclasses
from fractions import Fraction

import numpy as np
from exactly import rational, weighted

from allocopt.certify import certificate
from allocopt.certify import frame as frames
from allocopt.certify.canonical import Canonical
from allocopt.certify.certificate import evaluate
from allocopt.certify.frame import Frame, frame_of

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
    frame = frame_of(problem, alpha, lam)
    assert frame is not None
    return frame


def moved(rows, by):
    """Rows whose entries are all wrong by a factor 1 + ``by``."""
    return [[x * (1 + by) for x in row] for row in rational(rows)]


def information(problem, alpha, by, weight_by):
    """M of rows and weights that are wrong by factors."""
    rows = [*moved(problem.features, by), *moved(problem.base, by)]
    weights = [rational(a) * (1 + weight_by) for a in alpha] + [1 + weight_by] * len(problem.base)
    return weighted(rows, weights, problem.rank)


def normalised(lam):
    return lam[lam > 0] / float(lam[lam > 0].sum())


def made(r, drift=0.0, target_error=0.0, spectrum=1.0, strength=1.0):
    return Frame(np.eye(r), np.full(r, spectrum), strength, drift, target_error, 0.0, 1.0)


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


def capped(doubt):
    """r = 1: a = (1, 1/2), u = (1/2, ∞), b = 1. Then value = u + 4 (1 − u), and errors of u have a factor of −3."""
    problem = Canonical(
        np.array([[1.0], [0.5]]), np.ones((1, 1)), np.zeros((0, 1)), np.array([0.5, np.inf]), bound_error=doubt
    )
    return problem, np.array([0.5, 2.0]), np.ones(1)


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
