"""Very many arms in memory: pools of arms of their own and of classes that are one variable, priced against all."""

from __future__ import annotations

import numpy as np
import pytest

import allocopt as ao
from allocopt.certify.reduction import reduce
from allocopt.solvers.newton import pooled
from allocopt.solvers.settings import ActiveSetSettings

TINY = {"pool": 3, "pool_from": 1}  # so that programs of a few hundred arms are solved by pools


def drawn(seed: int, k: int = 300, d: int = 4, m: int = 60) -> tuple[np.ndarray, ...]:
    """Features, costs, targets and radii at random, and what the program costs without bounds."""
    rng = np.random.default_rng(seed)
    features, targets = rng.normal(size=(k, d)), rng.normal(size=(m, d))
    costs, radii = np.exp(rng.normal(size=k)), np.exp(rng.normal(size=m))
    free = ao.solve(ao.AllocationProgram(features, costs, targets, radii), tol=1e-6)
    return features, costs, targets, radii, np.exp(rng.normal(size=k)) * free.allocation.sum()


def same_interval(program: ao.AllocationProgram) -> tuple[ao.Solution, ao.Solution]:
    """The program by pools and by the interior point on all arms; both certified, with intervals that meet."""
    by_pools = ao.solve(program, method="active-set", tol=1e-7, **TINY)
    whole = ao.solve(program, method="interior-point", tol=1e-7)
    assert by_pools.status.name == whole.status.name == "CERTIFIED", (by_pools.stats, whole.stats)
    assert by_pools.lower <= whole.upper and whole.lower <= by_pools.upper
    assert "arms_in_pool" in by_pools.stats
    return by_pools, whole


@pytest.mark.parametrize("seed", range(4))
def test_pools_and_the_whole_program_have_the_same_value_without_bounds(seed: int) -> None:
    features, costs, targets, radii, _ = drawn(seed)
    same_interval(ao.AllocationProgram(features, costs, targets, radii))


@pytest.mark.parametrize("share", [1.0, 0.1, 0.02])
@pytest.mark.parametrize("seed", range(3))
def test_pools_and_the_whole_program_have_the_same_value_within_bounds(seed: int, share: float) -> None:
    features, costs, targets, radii, sizes = drawn(seed)
    upper = share * sizes
    upper[::5] = np.inf
    lower = np.where(np.arange(len(upper)) % 3 == 0, 1e-4 * sizes, 0.0)
    same_interval(ao.AllocationProgram(features, costs, targets, radii, np.minimum(lower, upper), upper))


def test_arms_that_are_played_as_much_as_they_may_are_not_variables_of_their_own() -> None:
    features, costs, targets, radii, sizes = drawn(7, k=1500)
    information = (features * sizes[:, None]).T @ features
    worst = (np.einsum("ij,ij->i", targets @ np.linalg.inv(information), targets) / radii).max()
    upper = 1.5 * worst * sizes  # about two thirds of all that is there is needed
    program = ao.AllocationProgram(features, costs, targets, radii, upper=upper)
    found = ao.solve(program, method="active-set", tol=1e-6, pool=20, pool_from=1)
    assert found.status.name == "CERTIFIED"
    assert (found.allocation > 0.999 * upper).sum() > 400 > 2 * found.stats["arms_in_pool"]


def test_arms_that_show_several_things_can_be_in_classes() -> None:
    features, costs, targets, radii, sizes = drawn(3)
    owners = np.repeat(np.arange(150), 2)
    information = (features * sizes[owners][:, None]).T @ features
    worst = (np.einsum("ij,ij->i", targets @ np.linalg.inv(information), targets) / radii).max()
    upper = 2.0 * worst * sizes[:150]
    by_pools, _ = same_interval(ao.AllocationProgram(features, costs[:150], targets, radii, upper=upper, owners=owners))
    assert (by_pools.allocation > 0.999 * upper).sum() > 20


def test_a_class_is_the_sum_of_its_arms() -> None:
    features, costs, targets, radii, sizes = drawn(5, k=40)
    program = ao.AllocationProgram(features, costs, targets, radii, upper=sizes)
    problem = reduce(program).canonical
    pool = pooled._Pool(np.arange(10), (np.arange(10, 40),), np.arange(len(problem.targets)))
    part = pooled._part(problem, pool)
    assert part.n_variables == 11
    together = np.append(np.zeros(10), part.upper[-1])
    alpha = np.where(np.arange(40) < 10, 0.0, problem.upper)
    mine = (part.features * part.by_row(together)[:, None]).T @ part.features
    whole = (problem.features * alpha[:, None]).T @ problem.features
    np.testing.assert_allclose(mine, whole, rtol=1e-10, atol=1e-10 * np.abs(whole).max())
    assert np.isclose(together.sum(), alpha.sum())


def test_where_the_arms_of_a_pool_do_not_suffice_all_others_are_one_more_class() -> None:
    features, costs, targets, radii, sizes = drawn(5, k=40)
    problem = reduce(ao.AllocationProgram(features, costs, targets, radii, upper=sizes)).canonical
    pool = pooled._with_all_others(problem, pooled._Pool(np.arange(5), (np.arange(5, 9),), np.arange(3)))
    assert [c.tolist() for c in pool.classes] == [list(range(5, 9)), list(range(9, 40))]


def test_without_time_the_method_stops_and_says_so() -> None:
    features, costs, targets, radii, sizes = drawn(1)
    program = ao.AllocationProgram(features, costs, targets, radii, upper=sizes)
    found = ao.solve(program, method="active-set", max_seconds=1e-9, **TINY)
    assert "max_seconds" in found.stats["reason"]


def test_every_look_at_all_arms_is_told_to_the_callback() -> None:
    features, costs, targets, radii, sizes = drawn(1)
    seen: list[float] = []
    program = ao.AllocationProgram(features, costs, targets, radii, upper=sizes)
    found = ao.solve(program, method="active-set", callback=lambda p: seen.append(p.gap), **TINY)
    assert len(seen) == found.stats["passes"] - 1
    assert seen[-1] <= 1e-8


def test_a_known_solution_shortens_the_way() -> None:
    features, costs, targets, radii, sizes = drawn(2)
    program = ao.AllocationProgram(features, costs, targets, radii, upper=sizes)
    first = ao.solve(program, method="active-set", **TINY)
    again = ao.solve(program, method="active-set", start=first, tol=1e-6, **TINY)
    assert again.stats["warm"] and again.stats["iterations"] == 0


def test_only_programs_much_larger_than_a_pool_are_solved_by_pools() -> None:
    features, costs, targets, radii, _ = drawn(0)
    problem = reduce(ao.AllocationProgram(features, costs, targets, radii)).canonical
    assert not pooled.is_large(problem, ActiveSetSettings())
    assert pooled.is_large(problem, ActiveSetSettings(pool=1, pool_from=1))


def test_narrow_optimism_of_many_arms_is_certified_in_few_passes() -> None:
    bandit = ao.instances.random_unit(5, 6000, seed=0)
    found = ao.solve(ao.programs.optimism(bandit, 0.49), tol=1e-6)
    assert found.status.name == "CERTIFIED"
    assert found.stats["passes"] <= 12
    assert ao.solve(ao.programs.optimism(bandit, 0.6), tol=1e-6).lower <= found.upper
