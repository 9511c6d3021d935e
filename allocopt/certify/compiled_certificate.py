r"""The certificate of small programs, number by number: the theorem of docs/certificates.md, section 4, as loops.

Canonical features a_i are the columns, targets b_j = ratio_j a_j (as in `programs.horizon_at_level`) or ratio_j times columns of
their own, and there are no bounds. Letters are those of the theorem: images ŵ of the columns in a basis B, their errors e, δ (drift)
for the distance of BᵀMB from I, prices p. Other than in `certificate.evaluate`, Σλ_j(ŵ_iᵀŵ_j)² is taken product by product, so that
γ_{r+4}|ŵ_i| is added to τ_i and a trace stands for max D.

It is written in the words of `linear.dense`; `kernel` compiles it with those of `linear.loops`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from allocopt.base.tolerances import SUPPORT
from allocopt.base.validation import Array, IntArray
from allocopt.linear.dense import back, cross, largest, squared_lengths, squared_ratios, weighted, whitener
from allocopt.linear.floating import ENTRY_ERROR, UNIT

__all__ = ["CHOICES", "STEPS", "certify"]

_NEAR_IDENTITY = 0.1  # distance from I after the first change of basis that the second one removes safely
_LARGEST_DRIFT = 0.1  # δ beyond which nothing is claimed


def tidied_pair(
    tidied: bool, found_alpha: Array, z: Array, found_lam: Array, g: Array, alpha: Array, lam: Array
) -> None:
    """The pair to certify, for all columns and targets: what was found for the first of them, and zeros.

    ``tidied``: what complementarity says is zero is set to zero.
    """
    top_alpha, top_lam, top_g = largest(found_alpha), largest(found_lam), largest(g)
    for i in range(len(alpha)):
        alpha[i] = 0.0
    for j in range(len(lam)):
        lam[j] = 0.0
    for i in range(len(found_alpha)):
        idle = tidied and found_alpha[i] < SUPPORT * top_alpha and z[i] > SUPPORT
        alpha[i] = 0.0 if idle else found_alpha[i]
    for j in range(len(found_lam)):
        slack = tidied and found_lam[j] < SUPPORT * top_lam and g[j] < (1.0 - SUPPORT) * top_g
        lam[j] = 0.0 if slack else found_lam[j]


def both_bases(columns: Array, alpha: Array) -> Any:
    """Whether M(α) is regular enough; the basis in which it is about I, what is left to do there, and all columns after both.

    The second, nearly orthogonal, change of basis removes what the first one left.
    """
    regular, first = whitener(columns, alpha, None)
    if not regular:
        return False, first, first, columns
    images = cross(first, columns)
    regular, second = whitener(images, alpha, None)
    return regular and near_identity(second), first, second, cross(second, images)


def image_sizes(columns: Array, basis: Array, sizes: Array) -> None:
    """|| |a_i|ᵀ|B| ||² of every column, for an upper triangular B: the size of the terms of an image."""
    r, k = columns.shape
    for i in range(k):
        sizes[i] = 0.0
    for c in range(r):
        for i in range(k):
            entry = 0.0
            for e in range(c + 1):
                entry += abs(columns[e, i] * basis[e, c])
            sizes[i] += entry * entry


def near_identity(basis: Array) -> bool:
    """Whether an upper triangular matrix is so close to I that it enlarges errors by no more than `_NEAR_IDENTITY`."""
    r = len(basis)
    for c in range(r):
        for e in range(c, r):
            if not abs(basis[c, e] - (1.0 if c == e else 0.0)) <= _NEAR_IDENTITY / r:
                return False
    return True


def image_errors(sizes: Array, inflation: float, product_error: float, data: float) -> None:
    """Lemma 3: e_i, in place of the sizes: rounding of a column, of the data, and of both changes of basis.

    The second change, close to I, enlarges the errors of the first by a tenth.
    """
    share = (1.0 + 2.0 * _NEAR_IDENTITY) * (2.0 * product_error + ENTRY_ERROR + data) * inflation
    for i in range(len(sizes)):
        sizes[i] = share * math.sqrt(sizes[i])


def target_images(
    targets: Array | None, first: Array, second: Array, white: Array, norms: Array, errors: Array,
    inflation: float, product_error: float, data: float,
) -> Any:  # fmt: skip
    """Images of the targets after both changes of basis, their squared lengths and errors; of the features, if they are these."""
    if targets is None:
        return white, norms, errors
    own = np.empty(targets.shape[1])
    image_sizes(targets, first, own)
    image_errors(own, inflation, product_error, data)
    images = cross(second, cross(first, targets))
    return images, squared_lengths(images), own


def drift_of(gram: Array, alpha: Array, norms: Array, errors: Array, inflation: float, data: float) -> float:
    """Lemma 4: δ, what is left of BᵀMB − I, what rounding did to the images, and to their sum."""
    r, k = len(gram), len(alpha)
    spread = image_error = 0.0
    for i in range(k):
        spread += alpha[i] * norms[i]
        image_error += alpha[i] * errors[i] * errors[i]
    drift = 0.0
    for c in range(r):
        for e in range(r):
            entry = gram[c, e] - (1.0 if c == e else 0.0)
            drift += entry * entry
    drift = math.sqrt(drift) + UNIT * (k + 8) * 1.01 * (1.0 + spread)
    image_error = math.sqrt(image_error)
    drift += image_error * (2.0 * math.sqrt(1.0 + drift) + image_error)
    return (drift + (data + 8.0 * UNIT) * (1.0 + drift)) * inflation * (1.0 + UNIT * 1.01 * k)


def dual_sums(lam: Array, ratios: Array, norms: Array, errors: Array, inflation: float) -> Any:
    """Σλ_j(|ŵ_j| − e_j)₊², Σλ_j|ŵ_j|², Σλ_je_j² of the targets, and Σλ_j: not yet rounded outwards."""
    strength = total = trace = target_error = 0.0
    for i in range(len(lam)):
        least = max(math.sqrt(norms[i]) / inflation - errors[i], 0.0) * ratios[i]
        strength += lam[i] * least * least
        trace += lam[i] * ratios[i] * ratios[i] * norms[i]
        target_error += lam[i] * ratios[i] * ratios[i] * errors[i] * errors[i]
        total += lam[i]
    return strength, trace, target_error, total


def largest_constraint(ratios: Array, norms: Array, errors: Array, drift: float, inflation: float) -> float:
    """The theorem: an upper bound on max_j g_j."""
    worst = 0.0
    for j in range(len(norms)):
        length = math.sqrt(norms[j]) * inflation + errors[j]
        worst = max(worst, ratios[j] * ratios[j] * length * length * inflation / (1.0 - drift))
    return worst


def largest_price(
    norms: Array, errors: Array, prices: Array, drift: float, inflation: float, sum_inflation: float,
    product_error: float, largest_weight: float, target_error: float,
) -> float:  # fmt: skip
    """The theorem: an upper bound on max_i p_i."""
    top = 0.0
    for i in range(len(norms)):
        length = math.sqrt(norms[i]) * inflation + errors[i]
        shift = errors[i] + drift / (1.0 - drift) * inflation * length
        root = (
            math.sqrt(prices[i]) * inflation * sum_inflation
            + largest_weight * (shift + product_error * length)
            + target_error * (length + shift)
        )
        top = max(top, root * root * inflation)
    return top


def write_pair(
    which: IntArray, asked: IntArray, costs: Array, alpha: Array, lam: Array, alpha_factor: float, unit: float,
    lam_factor: float, total: float, alpha_out: Array, lam_out: Array,
) -> None:  # fmt: skip
    """The pair in the units of the program: α scaled to feasibility (inf on free arms), λ to the scale of the dual."""
    for i in range(len(costs)):
        alpha_out[i] = np.inf if costs[i] == 0.0 else 0.0
    for j in range(len(lam_out)):
        lam_out[j] = 0.0
    for i in range(len(which)):
        alpha_out[which[i]] = alpha[i] * alpha_factor * unit / costs[which[i]]
    for j in range(len(asked)):
        lam_out[asked[j]] = lam[j] * lam_factor * unit / total


def certify(
    problem: tuple[IntArray, IntArray, float, Array, Array, Array | None], found: tuple[Array, Array, Array, Array],
    tidied: bool, costs: Array, data_error: float, alpha_out: Array, lam_out: Array, info: Array,
) -> None:  # fmt: skip
    """Lower bound, upper bound and rounding into ``info``, and the pair that they hold for.

    ``problem``: the arms that count and the places of the targets among the multipliers, the unit of cost, the columns of these
    arms, the ratios, and the columns of the targets (None: those of the arms). ``found``: x, y, λ and g as Newton's method leaves
    them, of all columns or of the first of them. ``data_error`` is the relative error of costs and of the roots of radii.
    """
    which, asked, unit, columns, ratios, targets = problem
    x, y, found_lam, g = found
    r, k = columns.shape
    m = len(ratios)
    alpha, lam, errors, inverse = np.empty(k), np.empty(m), np.empty(k), np.empty(m)
    tidied_pair(tidied, x[len(found_lam) :], y[len(found_lam) :], found_lam, g, alpha, lam)
    info[0], info[1], info[2] = 0.0, np.inf, np.inf
    regular, first, second, white = both_bases(columns, alpha)
    if not regular:
        return
    image_sizes(columns, first, errors)
    norms = squared_lengths(white)
    inflation, sum_inflation = (
        1.0 + UNIT * (4 * r + 64) * 1.01,
        1.0 + UNIT * (max(k, m) + 8) * 1.01,
    )  # 1 + γ of so many roundings
    product_error, data = UNIT * (r + 4) * 1.01, data_error + 8.0 * UNIT
    image_errors(errors, inflation, product_error, data)
    drift = drift_of(weighted(white, alpha), alpha, norms, errors, inflation, data)
    if not drift <= _LARGEST_DRIFT:
        return
    goals, goal_norms, goal_errors = target_images(
        targets, first, second, white, norms, errors, inflation, product_error, data
    )
    strength, trace, target_error, total = dual_sums(lam, ratios, goal_norms, goal_errors, inflation)
    if not 0.0 < strength * strength < np.inf:
        return
    strength = strength / (inflation * sum_inflation * (1.0 + drift))
    largest_weight = math.sqrt(trace) * inflation * sum_inflation
    target_error = math.sqrt(target_error) * inflation * sum_inflation
    cost = 0.0
    for i in range(k):
        cost += alpha[i]
    for j in range(m):
        inverse[j] = 1.0 / ratios[j]
    prices = back(squared_ratios(cross(goals, white), inverse), lam)  # Σλ_j (a_i·b_j)²
    worst = largest_constraint(ratios, goal_norms, goal_errors, drift, inflation)
    top = largest_price(
        norms, errors, prices, drift, inflation, sum_inflation, product_error, largest_weight, target_error
    )
    if not (0.0 < top < np.inf and worst < np.inf):
        return
    worst *= (1.0 + 32.0 * UNIT) * (1.0 + data)  # so that α stays feasible when it is rounded on its way back
    scale = strength * strength / (total * top)  # with λ as it is: value >= strength²/(total·top)
    write_pair(which, asked, costs, alpha, lam, worst, unit, scale, total, alpha_out, lam_out)
    info[0] = unit * scale / (inflation * inflation * sum_inflation * sum_inflation)
    info[1] = unit * cost * worst * inflation * sum_inflation * (1.0 + data)
    info[2] = 2.0 * drift + (top / largest(prices) - 1.0)


STEPS: tuple[Callable[..., Any], ...] = (
    tidied_pair,
    near_identity,
    both_bases,
    image_sizes,
    image_errors,
    drift_of,
    dual_sums,
    largest_constraint,
    largest_price,
    write_pair,
)
"""What `certify` calls."""

CHOICES: tuple[Callable[..., Any], ...] = (image_sizes, image_errors, target_images)
"""What is left to small functions because something may be absent (None), and what these call."""
