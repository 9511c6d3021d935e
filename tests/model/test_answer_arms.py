"""Which arms are the answer, against exact means; what binding targets are called; which arms `support` has."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import allocopt as ao
from allocopt.model.solution import SparseVector

P = ao.programs


def exact_means(arms: np.ndarray, theta: np.ndarray) -> list[Fraction]:
    return [sum((Fraction(x) * Fraction(t) for x, t in zip(row, theta, strict=True)), Fraction()) for row in arms]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), m=st.integers(1, 4))
def test_the_answer_is_that_of_exact_means(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    arms, theta = rng.integers(-30, 31, (6, 3)) / 10, rng.integers(-9, 10, 3) / 7
    means = exact_means(arms, theta)
    tau = float(rng.integers(-20, 21)) / 9
    best = {i for i, mean in enumerate(means) if mean == max(means)}
    top = set(sorted(range(6), key=lambda i: (-means[i], i))[:m])
    above = {i for i, mean in enumerate(means) if mean > Fraction(tau)}
    try:
        bandit = ao.LinearBandit(arms, theta)
    except ao.InvalidInstance:
        return
    assert best <= set(bandit.optimal_arms.tolist())
    best = set(bandit.optimal_arms.tolist())  # with ties up to rounding, which a solution says are assumed
    for make, expected in (
        (lambda: P.best_arm(bandit), best), (lambda: P.regret(bandit), best), (lambda: P.duelling(bandit), best),
        (lambda: P.top_m(bandit, m), top), (lambda: P.threshold(bandit, tau), above),
        (lambda: P.transductive(np.eye(3), arms, theta), best),
    ):  # fmt: skip
        try:
            solution = ao.solve(make())
        except (ao.InvalidInstance, ao.InvalidOption):  # ties, means at τ: no answer to be had
            continue
        assert set(solution.answer_arms.tolist()) == expected
        assert len(solution.binding_names) == len(solution.binding)


def test_within_an_epsilon_the_answer_is_the_cheapest() -> None:
    bandit = ao.LinearBandit([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.9, 0.3, 0.1]], [1, 0.5, 0])
    solution = ao.solve(P.best_arm(bandit, epsilon=0.3))
    assert solution.answer_arms.tolist() == [solution.program.origin.answer]


def test_programs_that_ask_for_no_arm_have_no_answer() -> None:
    assert not len(ao.solve(P.g_optimal(np.eye(2))).answer_arms)
    assert not len(ao.solve(ao.AllocationProgram(np.eye(2), [1, 1], np.eye(2), [1, 1])).answer_arms)


def test_binding_targets_have_names() -> None:
    arms, theta = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [1, 0.5, 0]
    named = ao.solve(P.top_m(ao.LinearBandit(arms, theta, labels=["x", "y", "z"]), 2))
    assert set(named.binding_names) == {"x over z", "y over z"}
    plain = ao.solve(P.top_m(ao.LinearBandit(arms, theta), 2))
    assert set(plain.binding_names) == {"arm 0 over arm 2", "arm 1 over arm 2"}
    assert ao.regret_constant(arms, theta).binding_names == ("arm 1", "arm 2")
    general = ao.solve(ao.AllocationProgram(np.eye(2), [1, 1], [[1, 1]], [1]))
    assert general.binding_names == ("target 0",)
    items = ao.solve(P.transductive(np.eye(2), [[1, 0], [0.9, 0.2]], [1, 0]))
    assert items.binding_names == ("item 0 over item 1",)
    shown = named._repr_html_() + repr(named.plot().axes[1].get_yticklabels())
    assert "x over z" in shown and "target" not in shown


@pytest.mark.parametrize("road", ["numpy", "compiled"])
@pytest.mark.parametrize("seed", range(8))
def test_the_support_does_not_depend_on_the_road(road: str, seed: int) -> None:
    bandit = ao.instances.random_unit(4, 15, seed=seed)
    one, other = (ao.solve(P.regret(bandit), road=r) for r in (road, "numpy"))
    assert one.support.tolist() == other.support.tolist()


def test_the_support_leaves_out_what_is_left_of_a_zero() -> None:
    program = P.regret(ao.LinearBandit([[1, 0], [0, 1], [0.5, 0.5]], [1, 0]))
    made = ao.solve(program)

    def played(alpha: list[float] | SparseVector) -> list[int]:
        given = np.array(alpha) if isinstance(alpha, list) else alpha
        s = ao.Solution(program, given, made.multipliers, made.lower, made.upper, made.status, "x", 1e-8, made.binding)
        return s.support.tolist()

    top = made.allocation[1:].max()
    assert played([np.inf, top, 1e-10 * top]) == [1]
    assert played([np.inf, top, 1e-5 * top]) == [1, 2]
    assert played([np.inf, 0.0, 0.0]) == []
    places, none = np.array([1, 2]), np.array([0])
    assert played(SparseVector(3, places, np.array([top, 1e-10 * top]), none)) == [1]
    # Few pulls that are dear are no noise: 1 pull in 1e9 costs as much as the others together.
    dear = ao.AllocationProgram(np.eye(2), [1e-9, 1.0], np.eye(2), [1e-9, 1.0])
    assert ao.solve(dear).support.tolist() == [0, 1]
    # Nor are few pulls that are cheap, where nobody else shows their direction.
    assert ao.regret_constant(np.eye(4), [0, -1, -2, -1e-9]).support.tolist() == [1, 2, 3]


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["regret", "matrices", "variances"]))
def test_without_what_the_support_leaves_out_every_constraint_holds_to_a_millionth(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    arms, theta = rng.normal(size=(12, 3)), rng.normal(size=3)
    if kind == "matrices":
        program = ao.AllocationProgram(arms.reshape(6, 2, 3), rng.uniform(0.1, 1, 6), arms, rng.uniform(0.1, 1, 12))
    else:
        program = P.regret(ao.LinearBandit(arms, theta, rng.uniform(0.1, 9, 12) if kind == "variances" else 1.0))
    made = ao.solve(program)
    left = np.flatnonzero(made.allocation == 0)
    noise = made.allocation.copy()
    noise[left] = made.allocation[made.support].max() * 10.0 ** rng.uniform(-13, -7, len(left))
    solution = ao.Solution(
        program, noise, made.multipliers, made.lower, made.upper, made.status, "x", 1e-8, made.binding
    )
    kept = np.where(np.isin(np.arange(program.n_arms), solution.support) | np.isinf(noise), noise, 0.0)
    all_of_it, some = constraints(program, noise), constraints(program, kept)
    assert (some <= all_of_it * (1 + 2e-6)).all()
    assert set(made.support.tolist()) <= set(solution.support.tolist())


def constraints(program: ao.AllocationProgram, alpha: np.ndarray) -> np.ndarray:
    """||t||² of every target, the free arms played very often."""
    weights = np.where(np.isinf(alpha), 1e7 * alpha[np.isfinite(alpha)].max(), alpha)[program.row_owners]
    if program.noise_variance is not None:
        weights = weights / program.noise_variance
    H = program.features.T @ (program.features * weights[:, None])
    return np.einsum("ij,jk,ik->i", program.targets, np.linalg.inv(H), program.targets)
