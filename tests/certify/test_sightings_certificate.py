"""The certificate over the list of what arms show, in balls of few bits and from pairs that prove nothing."""

import numpy as np
import pytest

import allocopt as ao
from allocopt.certify.exact_arithmetic.sightings import interval_by_sight

INF = np.inf


def seen_and_solved(seed):
    rng = np.random.default_rng(seed)
    k = 6
    variances = np.where(rng.random((k, k)) < 0.6, rng.uniform(0.5, 2.0, size=(k, k)), INF)
    np.fill_diagonal(variances, 1.0)
    program = ao.programs.side_observations(rng.uniform(0.0, 1.0, size=k), variances)
    return program.origin.sightings, ao.solve(program)


@pytest.mark.parametrize("seed", range(6))
def test_few_bits_widen_the_interval_and_never_narrow_it(seed):
    seen, solution = seen_and_solved(seed)
    exact = interval_by_sight(seen, solution.allocation, solution.multipliers, 256)
    assert exact.lower <= exact.upper <= exact.lower * (1 + 1e-6)
    for bits in (4, 8, 16, 53):
        found = interval_by_sight(seen, solution.allocation, solution.multipliers, bits)
        assert found.lower <= exact.lower and found.upper >= exact.upper


@pytest.mark.parametrize("seed", range(6))
def test_pairs_without_information_or_multipliers_prove_nothing(seed):
    seen, solution = seen_and_solved(seed)
    nothing = np.zeros(6)
    played = np.where(np.isfinite(solution.allocation), solution.allocation, 0.0)
    assert interval_by_sight(seen, played, nothing).lower == 0.0
    found = interval_by_sight(seen, nothing, solution.multipliers)
    assert (found.lower, found.upper) == (0.0, INF)
    for arm in np.flatnonzero(played):
        less = played * (np.arange(6) != arm)
        found = interval_by_sight(seen, less, solution.multipliers)
        assert found.lower <= solution.upper and found.upper >= solution.lower
