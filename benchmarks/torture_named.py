"""Families of the named programs for torture: on plain arms, and on the arms of every nasty family of bandits."""

from __future__ import annotations

from typing import Any

import numpy as np
from torture_families import FAMILIES, Family, Instance, Random, family, plain_arms, plain_theta

from allocopt.base.validation import Array

NAMED = ("variances", "contextual", "best_arm", "top_m", "threshold", "transductive", "duelling")
"""The programs; "variances" is the regret with one σ² per arm."""
_NASTY = [f for f in FAMILIES.values() if f.kind == "regret"]


def named(kind: str, rng: Random, arms: Array, theta: Array) -> Instance:
    """An instance of a kind from arms and θ: half of them with a variance per arm."""
    k = len(arms)
    means = arms @ theta
    noise = None
    if kind == "variances" or (kind != "duelling" and rng.uniform() < 0.5):
        spread = rng.choice([0.3, 1.0, 6.0])
        noise = np.exp(rng.normal(size=k) * spread) if rng.uniform() < 0.7 else np.round(rng.uniform(0.1, 3, k), 1)
    number: float | None = None
    items, cuts = None, ()
    if kind == "contextual":
        cuts = tuple(
            np.sort(rng.choice(np.arange(1, max(k, 2)), size=int(rng.integers(0, min(3, k))), replace=False)).tolist()
        )
        cuts = tuple(c for c in cuts if c < k)
    if kind == "best_arm":
        number = float(rng.choice([0.0, 0.25, float(np.ptp(means)) * rng.uniform(0.01, 1.2)]))
    if kind == "top_m":
        number = float(rng.integers(1, max(k, 2)))
    if kind == "threshold":
        number = float(
            rng.choice([rng.normal(), round(float(rng.normal()), 1), float(means[0]) + 10.0 ** rng.uniform(-9, 0)])
        )
    if kind == "transductive":
        items = _items(rng, arms)
    return Instance(kind, arms, theta, number=number, noise=noise, items=items, cuts=cuts)


def _items(rng: Random, arms: Array) -> Array:
    """Items in the span of the arms, only their differences in it, or anything."""
    k, d = arms.shape
    n = int(rng.integers(2, 7))
    what = rng.uniform()
    if what < 0.4:
        return arms[rng.integers(k, size=n)] * rng.choice([1.0, 0.5, -1.0, 2.0], size=(n, 1))
    if what < 0.7:
        inside: Array = rng.integers(-2, 3, (n, k)).astype(np.float64) @ arms
        return inside + plain_arms(rng, 1, d)
    return plain_arms(rng, n, d)


def _enter(kind: str) -> None:
    @family(f"{kind}, plain arms", kind)
    def _(rng: Random, d: int, k: int) -> Any:
        arms = plain_arms(rng, k, d)
        if rng.uniform() < 0.5:
            arms = np.hstack([arms, arms[:, :1]])
        return named(kind, rng, arms, plain_theta(rng, arms.shape[1]))

    @family(f"{kind}, nasty arms", kind)
    def _(rng: Random, d: int, k: int) -> Any:
        nasty: Family = _NASTY[int(rng.integers(len(_NASTY)))]
        made = nasty.make(rng, d, k)
        assert made.theta is not None
        return named(kind, rng, made.arms, made.theta)


for _kind in NAMED:
    _enter(_kind)


def _bounded(kind: str, number: float) -> None:
    @family(f"{kind}, variances", kind)
    def _(rng: Random, d: int, k: int) -> Any:
        arms = plain_arms(rng, k, d)
        noise = np.exp(rng.normal(size=k) * rng.choice([0.3, 2.0]))
        pulls = np.floor(10.0 ** rng.uniform(0, 5, k)) * (rng.uniform(size=k) < 0.5)
        return Instance(kind, arms, plain_theta(rng, d), number=number, noise=noise, pulls=pulls)


_bounded("optimism", 1.0)
_bounded("remaining", 10.0**6)
