"""Conic on programs whose targets are all met by free arms: what is left is a linear program."""

import numpy as np
import pytest
from scipy.optimize import linprog

import allocopt as ao

WAYS = [{}, {"formulation": "lmi"}, {"solver": "SCS"}]


def nothing_to_explore(seed):
    """A free arm that shows all that is asked, and floors and ceilings on arms that cost something."""
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    features = rng.integers(-2, 3, size=(k, d)).astype(float)
    features[0] = np.arange(1, d + 1)
    rows = rng.uniform(-1, 1, size=(3, k))
    rows[:, 0] = 0.0
    costs = np.r_[0.0, rng.uniform(0.1, 1, size=k - 1)]
    limits = rows @ rng.uniform(0.5, 2, size=k) + 0.1
    return features, costs, features[:1], np.array([0.7]), rows, limits


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("seed", range(12))
def test_what_is_left_without_targets_is_the_linear_program(seed, how):
    features, costs, targets, radii, rows, limits = nothing_to_explore(seed)
    program = ao.AllocationProgram(features, costs, targets, radii, constraints=(rows, limits))
    solution = ao.solve(program, method="conic", tol=1e-6, **how)
    value = linprog(costs, rows, limits, bounds=(0, None)).fun
    assert solution.lower <= value * (1 + 1e-9) + 1e-12 and value <= solution.upper * (1 + 1e-9) + 1e-12
    if value > 1e-6:
        assert solution.status is ao.Status.CERTIFIED


def test_row_multipliers_that_are_too_large_by_rounding_still_prove_something():
    """A band around the only arm that costs something: the dual wants κ + (Bᵀμ) = 0 exactly, and solvers miss it by rounding."""
    program = ao.AllocationProgram(
        [[-1.0, -1.0, 2.0, -1.0], [-2.0, 1.0, -2.0, 0.0]], [0.0, 0.13463469018070823], [[-1.0, -1.0, 2.0, -1.0]], [0.678],
        constraints=([[0.0, 0.3], [-0.0, -0.3]], [0.6969197260929085, -0.6335633873571895]),
    )  # fmt: skip
    solution = ao.solve(program, method="conic", tol=1e-6)
    assert solution.status is ao.Status.CERTIFIED
    assert solution.value == pytest.approx(0.13463469018070823 * 0.6335633873571895 / 0.3, rel=1e-6)
