"""Families for torture of linear constraints, budgets, arms that show several things, side observations and semi-bandits."""

from __future__ import annotations

from typing import Any

import numpy as np
from torture_exact import even_allocation
from torture_families import Instance, Random, family, plain_arms, plain_theta, small_integers, two_decimals

from allocopt.base.validation import Array


def _parts(rng: Random, d: int, k: int) -> dict[str, Any]:
    """Features, costs (some of them 0), targets in the span, and radii."""
    make = (plain_arms, small_integers, two_decimals)[int(rng.integers(3))]
    features = make(rng, k, d)
    features[0] += not features.any()
    targets = features[rng.uniform(size=k) < 0.5]
    targets = features[:1] if not targets.any() else targets
    costs = rng.uniform(0.1, 2, k) * (rng.uniform(size=k) < 0.8)
    return {"features": features, "costs": costs, "targets": targets, "radii": rng.uniform(0.1, 2, len(targets))}


def _instance(parts: dict[str, Any], **more: Any) -> Instance:
    features = parts.pop("features")
    return Instance("general", features, general={**parts, **more})


def _rows(rng: Random, k: int, values: list[float]) -> Array:
    n = int(rng.integers(1, 4))
    return np.where(rng.uniform(size=(n, k)) < 0.6, rng.choice(values, size=(n, k)), 0.0)


@family("linear constraints with room", "constrained")
def _(rng: Random, d: int, k: int) -> Any:
    """Budgets that an even allocation meets."""
    parts = _parts(rng, d, k)
    even = even_allocation(parts["features"], None, None, parts["targets"], parts["radii"])
    matrix = _rows(rng, k, [1.0, 0.5, 2.0, 0.1])
    return _instance(parts, constraints=(matrix, even * matrix.sum(axis=1) * rng.uniform(1.01, 3) + 0.01))


@family("linear constraints, tight or impossible", "constrained")
def _(rng: Random, d: int, k: int) -> Any:
    parts = _parts(rng, d, k)
    even = even_allocation(parts["features"], None, None, parts["targets"], parts["radii"])
    matrix = _rows(rng, k, [1.0, 1.0, 0.5, -0.5])
    scale = even * (np.abs(matrix).sum(axis=1) + 0.1) * 10.0 ** rng.uniform(-3, 1, len(matrix))
    return _instance(parts, constraints=(matrix, scale * rng.choice([1.0, 1.0, -0.1], size=len(matrix))))


@family("floors, bands and bounds", "constrained")
def _(rng: Random, d: int, k: int) -> Any:
    parts = _parts(rng, d, k)
    even = even_allocation(parts["features"], None, None, parts["targets"], parts["radii"])
    row = _rows(rng, k, [1.0, 2.0, 0.3])[:1]
    total = float(even * row.sum()) * rng.uniform(0.1, 2) + 0.1
    matrix, limits = np.vstack([row, -row]), np.array([total * (1 + rng.choice([1e-3, 0.1])), -total])
    upper = np.where(rng.uniform(size=k) < 0.6, np.inf, even * rng.uniform(0.5, 4, k) + 0.1)
    lower = np.where(rng.uniform(size=k) < 0.6, 0.0, np.minimum(even * rng.uniform(0, 0.5, k), upper))
    return _instance(parts, constraints=(matrix, limits), lower=lower, upper=upper)


def _owners(rng: Random, k: int) -> Array:
    return np.sort(np.concatenate([np.arange(k), rng.integers(k, size=int(rng.integers(1, 4)))]))


@family("matrices", "general")
def _(rng: Random, d: int, k: int) -> Any:
    """Arms of several rows, with a variance for each row half of the time."""
    owners = _owners(rng, k)
    parts = _parts(rng, d, len(owners))
    parts["costs"] = parts["costs"][:k]
    noise = {} if rng.uniform() < 0.5 else {"noise_variance": np.exp(rng.normal(size=len(owners)))}
    return _instance(parts, owners=owners, **noise)


@family("matrices with linear constraints", "constrained")
def _(rng: Random, d: int, k: int) -> Any:
    owners = _owners(rng, k)
    parts = _parts(rng, d, len(owners))
    parts["costs"] = parts["costs"][:k]
    noise = np.exp(rng.normal(size=len(owners)))
    even = even_allocation(parts["features"], owners, noise, parts["targets"], parts["radii"])
    matrix = _rows(rng, k, [1.0, 0.5, 2.0])
    limits = even * matrix.sum(axis=1) * rng.choice([0.3, 1.1, 2.0]) + 0.01
    return _instance(parts, owners=owners, noise_variance=noise, constraints=(matrix, limits))


@family("side observations", "side_observations")
def _(rng: Random, d: int, k: int) -> Any:
    means = np.round(rng.normal(size=k), 2) if rng.uniform() < 0.5 else rng.normal(size=k)
    variances = np.where(rng.uniform(size=(k, k)) < 0.4, 10.0 ** rng.uniform(-2, 2, (k, k)), np.inf)
    shown = rng.uniform(size=k) < 0.8
    np.fill_diagonal(variances, np.where(shown, 1.0, np.diag(variances)))
    return Instance("side_observations", variances, means)


@family("semi-bandits", "semi_bandit")
def _(rng: Random, d: int, k: int) -> Any:
    arms = (rng.uniform(size=(k, d + 1)) < 0.5).astype(np.float64)
    return Instance("semi_bandit", arms, plain_theta(rng, d + 1), number=float(rng.choice([1.0, 0.5, 0.3])))


@family("contexts with a budget", "contextual_budget")
def _(rng: Random, d: int, k: int) -> Any:
    arms = plain_arms(rng, k, d)
    cuts = tuple(sorted(set(rng.integers(1, max(k, 2), size=int(rng.integers(0, 3))).tolist()) & set(range(1, k))))
    number = float(10.0 ** rng.uniform(0, 6))
    return Instance("contextual_budget", arms, plain_theta(rng, d), number=number, cuts=cuts)
