"""Programs whose targets are not their features, and well conditioned: every method reaches the same certified value."""

import numpy as np
import pytest
from strategies import answered

import allocopt as ao


def other_targets(dim, seed):
    """One feature per coordinate, and three more targets than coordinates in random directions."""
    rng = np.random.default_rng(seed)
    costs, targets = rng.uniform(0.1, 2.0, dim), rng.normal(size=(dim + 3, dim))
    return ao.AllocationProgram(np.eye(dim), costs, targets, np.ones(len(targets)))


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_first_and_second_order_methods_reach_the_same_value(dim):
    for seed in range(40):
        s = ao.solve(other_targets(dim, seed), "active-set")
        rough = ao.solve(other_targets(dim, seed), "frank-wolfe", tol=1e-3)
        assert answered(s) and answered(rough)
        assert max(s.lower, rough.lower) <= min(s.upper, rough.upper) * (1 + 1e-12)


@pytest.mark.parametrize("method", ["auto", "interior-point", "active-set"])
def test_newtons_method_reaches_it_in_more_dimensions_too(method):
    assert all(answered(ao.solve(other_targets(dim, seed), method)) for dim in (4, 5, 8) for seed in range(40))
