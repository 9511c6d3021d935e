r"""Where Newton's method starts: cold (nothing is known), or warm (from the solution of a similar problem). Part of `newton`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from allocopt.base.validation import Array, IntArray
from allocopt.linear.dense import (
    back,
    cross,
    geometric_mean,
    lanes,
    larger,
    largest,
    smaller,
    smallest,
    squared_lengths,
    squared_ratios,
    total,
)
from allocopt.solvers.newton.problem import (
    DEFAULT,
    Problem,
    Tuning,
    by_arm,
    by_column,
    capped_arms,
    cut_to,
    metric,
    n_arms,
    n_capped,
    relative_gap,
    room_above,
    scalable,
    white,
)

__all__ = ["STEPS", "begin", "cold_allocation", "near_central_path", "warm_allocation"]


def cold_allocation(
    features: Array, targets: Array | None, ratios: Array, base: Array | None, upper: Array | None,
    owners: IntArray | None, alike: Array | None, tuning: Tuning | None,
) -> Array:  # fmt: skip
    """An interior α that costs little, scaled to meet the constraints with room to spare where it may be scaled.

    It is made of ``alike``, by which every arm adds a matrix of the same size in the metric of Σ b bᵀ, the information that would
    meet all constraints by itself (None: found here). Arms that are useless for their size would dominate the cost: so α is cut
    down, to its mean or its least entry, if this makes it very much cheaper.
    """
    numbers = DEFAULT if tuning is None else tuning
    k = n_arms(features, owners)
    even, trial = np.empty(k), np.empty(k)
    if alike is None:
        lengths = squared_lengths(cross(metric(features, targets, ratios, base, numbers.metric_trace), features))
        for i in lanes(k):
            even[i] = 1.0 / lengths[i]
    else:
        even = alike
    chosen = cap = largest(even)
    first_cost = least_cost = np.inf
    level = 1.0  # the largest g of the choice
    for attempt in range(3):
        if attempt == 1:
            cap = geometric_mean(even)
        if attempt == 2:
            cap = smallest(even)
        for i in lanes(k):
            trial[i] = smaller(even[i], cap)
        cut_to(trial, upper, 0.5)
        regular, _, _, _, g = white(features, targets, ratios, base, by_column(trial, owners))
        worst = largest(g) if regular else np.inf
        cost = total(trial) * worst  # once it is scaled
        if attempt == 0:
            first_cost, level = cost, worst
        if cost < least_cost:
            least_cost = cost
            if numbers.cheaper_start * cost < first_cost:
                chosen, level = cap, worst
    stretch = 1.0 if 0.5 * numbers.start_level <= level <= numbers.start_level else level / numbers.start_level
    if not scalable(base, upper):
        stretch = 1.0
    for i in lanes(k):
        trial[i] = smaller(even[i], chosen) * stretch
    return trial


def warm_allocation(
    features: Array, targets: Array | None, ratios: Array, base: Array | None, upper: Array | None, offset: float,
    owners: IntArray | None, alpha: Array, lam: Array, tuning: Tuning | None,
) -> Any:  # fmt: skip
    """How far from optimal the pair (α, λ) of a similar problem seems to be, and its α moved inwards by about as much."""
    numbers = DEFAULT if tuning is None else tuning
    k, m = len(alpha), len(lam)
    mean = total(alpha) / k
    start, nu = np.empty(k), np.empty(m)
    for i in lanes(k):  # a trace of every arm keeps M regular
        start[i] = alpha[i] + numbers.trace * mean
    _, basis, a, b, g = white(features, targets, ratios, base, by_column(start, owners))
    for j in lanes(m):
        nu[j] = lam[j] * g[j] * g[j]
    prices = by_arm(back(squared_ratios(cross(b, a), g), nu), owners)
    gap = relative_gap(total(start), g, lam, prices, b, base, basis, upper, offset)
    distance = numbers.cold_distance
    if gap < numbers.cold_distance:  # the first steps remove the rest of the gap
        distance = max(numbers.warm_shift * gap, numbers.least_warm_shift)
    for i in lanes(k):
        start[i] = alpha[i] + distance * mean
    cut_to(start, upper, 1.0 - 0.5 * distance)
    stretch = largest(white(features, targets, ratios, base, by_column(start, owners))[4]) * (1.0 + distance)
    if scalable(base, upper):
        for i in lanes(k):
            start[i] *= stretch
    return distance, start


def near_central_path(
    features: Array, targets: Array | None, ratios: Array, base: Array | None, upper: Array | None,
    owners: IntArray | None, alpha: Array, lam: Array, warm: bool, distance: float, tuning: Tuning | None,
) -> Any:  # fmt: skip
    """The start (x, y) at an interior α: products x y about equal, and so large that the gap is about ``distance``.

    ``warm``: λ is that of a similar problem, and ν and z are what it says they are where that is more.
    """
    numbers = DEFAULT if tuning is None else tuning
    k, m = len(alpha), len(lam)
    capped = capped_arms(upper)
    pairs = m + k + n_capped(capped)
    x, y, nu = np.empty(pairs), np.empty(pairs), np.empty(m)
    _, _, a, b, g = white(features, targets, ratios, base, by_column(alpha, owners))
    mu = distance * total(alpha) / pairs
    for j in lanes(m):
        x[j] = larger(1.0 / g[j] - 1.0, min(distance, numbers.start_slack))
        y[j] = larger(mu / x[j], lam[j] * g[j] * g[j] if warm else 0.0)
        nu[j] = y[j]
    prices = by_arm(back(squared_ratios(cross(b, a), g), nu), owners)
    x_alpha, z = x[m : m + k], y[m : m + k]
    for i in lanes(k):
        x_alpha[i] = alpha[i]
        z[i] = larger(mu / alpha[i], 1.0 - prices[i] if warm else 0.0)
    room_above(x, upper, capped)
    x_caps, v = x[m + k :], y[m + k :]
    for n in lanes(len(v)):
        v[n] = mu / x_caps[n]
    return x, y


def begin(problem: Problem, alpha: Array, lam: Array, warm: bool) -> Any:
    """The start (x, y), with the default numbers: from the pair (α, λ) of a similar problem if ``warm``, else from nothing."""
    features, targets, ratios, base, upper, offset, owners = problem
    distance = DEFAULT.cold_distance
    if warm:
        distance, start = warm_allocation(features, targets, ratios, base, upper, offset, owners, alpha, lam, None)
    else:
        start = cold_allocation(features, targets, ratios, base, upper, owners, None, None)
    return near_central_path(features, targets, ratios, base, upper, owners, start, lam, warm, distance, None)


STEPS: tuple[Callable[..., Any], ...] = (white, cold_allocation, warm_allocation, near_central_path)
"""What `begin` calls."""
